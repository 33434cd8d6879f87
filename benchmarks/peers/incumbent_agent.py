"""The incumbent's agent, written the way its documentation shows: an Agent subclass given to `run_agent`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acp
from acp import schema

import script
from loops import loop_factory

OPTIONS = [schema.PermissionOption(option_id=id, name=name, kind=kind) for id, name, kind in script.OPTIONS]
CALL = schema.ToolCallUpdate(tool_call_id=script.CALL_ID, title=script.CALL_TITLE)


class BenchmarkAgent(acp.Agent):
    """Answers prompts by the commands of `script`."""

    def __init__(self) -> None:
        self._parked = 0
        self._held: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, *_: Any, **__: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=script.SESSION_ID)

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> acp.PromptResponse:
        block = prompt[0]
        text = block.text if isinstance(block, schema.TextContentBlock) else ""
        command, number = script.command_of(text)
        if command == script.ECHO:
            await self._update(session_id, text)
        elif command == script.UPDATES:
            for i in range(number):
                await self._update(session_id, script.UPDATE_TEXTS[i & script.UPDATE_MASK])
        elif command == script.PARK:
            self._parked += 1
            if not self._parked % number:
                await self._update(session_id, script.PARKED)
            held = self._held[session_id] = asyncio.Event()
            await held.wait()
            return acp.PromptResponse(stop_reason="cancelled")
        elif command == script.NAP:
            await asyncio.sleep(number / 1000)
        elif command == script.CALL:
            await self._client.request_permission(session_id=session_id, tool_call=CALL, options=OPTIONS)
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._held.pop(session_id).set()

    async def _update(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id=session_id, update=acp.update_agent_message_text(text))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(acp.run_agent(BenchmarkAgent()))
