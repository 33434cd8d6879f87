"""The incumbent's client, written the way its documentation shows: `spawn_agent_process` and a Client subclass."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp import schema

import script
from drive import Session, client_main

AGENT = Path(__file__).with_name("incumbent_agent.py")
LINE_LIMIT = 50 * 1024 * 1024
"""What its own agent side allows; its client leaves asyncio's 64 KiB, which slows long lines."""


class BenchmarkClient(acp.Client):
    """Hands each message chunk to the workload."""

    def __init__(self, on_update: script.OnUpdate) -> None:
        self._on_update = on_update

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if isinstance(update, schema.AgentMessageChunk) and isinstance(update.content, schema.TextContentBlock):
            self._on_update(update.content.text)


class IncumbentSession(Session):
    def __init__(self, connection: Any, pid: int) -> None:
        self.agent_pid = pid
        self._connection = connection

    async def initialize(self) -> Any:
        return await self._connection.initialize(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self) -> Any:
        return await self._connection.new_session(cwd="/")

    def prompt(self, text: str) -> Awaitable[Any]:
        answer: Awaitable[Any] = self._connection.prompt(session_id=script.SESSION_ID, prompt=[acp.text_block(text)])
        return answer


@asynccontextmanager
async def connect(loop_name: str, on_update: script.OnUpdate) -> AsyncIterator[Session]:
    command = (sys.executable, str(AGENT), loop_name)
    options = {"limit": LINE_LIMIT}
    async with acp.spawn_agent_process(BenchmarkClient(on_update), *command, transport_kwargs=options) as spawned:
        connection, process = spawned
        yield IncumbentSession(connection, process.pid)


if __name__ == "__main__":
    client_main(connect)
