"""A client on the PyPI package `agent-client-protocol`: `python_client.py AGENT ARGS…` spawns AGENT and drives it.

It sends one prompt and reads it to its end, sends a long one and cancels it at its first update, and prints what it
saw as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block

PROMPT = "one two three"
LONG_PROMPT = "again " * 10_000


class Listener(Client):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.heard = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.texts.append(update.content.text)
        self.heard.set()


async def main(command: list[str]) -> None:
    listener = Listener()
    async with spawn_agent_process(listener, *command) as (agent, process):
        initialized = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = await agent.new_session(cwd="/", mcp_servers=[])
        whole = await agent.prompt(session_id=session.session_id, prompt=[text_block(PROMPT)])
        texts, listener.texts = listener.texts, []
        listener.heard.clear()
        prompt = asyncio.create_task(agent.prompt(session_id=session.session_id, prompt=[text_block(LONG_PROMPT)]))
        await listener.heard.wait()
        await agent.cancel(session_id=session.session_id)
        cut_short = await prompt
    seen = {
        "version": initialized.protocol_version,
        "texts": texts,
        "stop_reason": whole.stop_reason,
        "cancelled_texts": len(listener.texts),
        "cancelled_stop_reason": cut_short.stop_reason,
        "exit_status": process.returncode,
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1:]), 30))
