"""The incumbent's agent, written the way its documentation shows: an Agent subclass given to `run_agent`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acp
from acp import schema

import script
from drive import loop_factory


class BenchmarkAgent(acp.Agent):
    """Answers prompts by the commands of `script`."""

    def __init__(self) -> None:
        self._parked = 0

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
            if self._parked == number:
                await self._update(session_id, script.PARKED)
            await asyncio.Event().wait()
        return acp.PromptResponse(stop_reason="end_turn")

    async def _update(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id=session_id, update=acp.update_agent_message_text(text))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(acp.run_agent(BenchmarkAgent()))
