"""A client on the PyPI package `agent-client-protocol`: `python_client.py AGENT ARGS…` spawns AGENT and drives it.

It sends one prompt and reads it to its end, one in which the agent asks for permission, and one that it cancels at the
first update, and prints what it saw as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse


class Listener(Client):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.heard = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.texts.append(update.content.text)
        self.heard.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        option = next(option for option in options if option.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    def take_texts(self) -> list[str]:
        texts, self.texts = self.texts, []
        self.heard.clear()
        return texts


async def main(command: list[str]) -> None:
    listener = Listener()
    async with spawn_agent_process(listener, *command) as (agent, process):
        initialized = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd="/", mcp_servers=[])

        def ask(text: str) -> Any:
            return agent.prompt(session_id=session.session_id, prompt=[text_block(text)])

        whole = await ask("one two three")
        texts = listener.take_texts()
        asked = await ask("ASK")
        asked_texts = listener.take_texts()
        prompt = asyncio.create_task(ask("WAIT"))
        await listener.heard.wait()
        await agent.cancel(session_id=session.session_id)
        cancelled = await prompt
    seen = {
        "version": initialized.protocol_version,
        "texts": texts,
        "stop_reason": whole.stop_reason,
        "asked_texts": asked_texts,
        "asked_stop_reason": asked.stop_reason,
        "cancelled_texts": listener.take_texts(),
        "cancelled_stop_reason": cancelled.stop_reason,
        "exit_status": process.returncode,
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1:]), 30))
