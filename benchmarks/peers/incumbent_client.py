"""The incumbent's client, written the way its documentation shows: `spawn_agent_process` and a Client subclass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp import schema

import script
from drive import Session, Wanted, agent_command, client_main

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

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return acp.RequestPermissionResponse(outcome=chosen)


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

    async def storm(self, count: int, held: asyncio.Event) -> None:
        """It cancels turns, not requests, and a session has one turn at a time: so every prompt has its own session."""
        block = acp.text_block(script.park_text(count))
        names = [f"{script.SESSION_ID}-{i}" for i in range(count)]
        turns = [asyncio.create_task(self._connection.prompt(session_id=name, prompt=[block])) for name in names]
        await held.wait()
        for name in names:
            await self._connection.cancel(session_id=name)
        await asyncio.gather(*turns)


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    command = agent_command(AGENT, wanted)
    options = {"limit": LINE_LIMIT}
    async with acp.spawn_agent_process(
        BenchmarkClient(wanted.on_update), *command, transport_kwargs=options
    ) as spawned:
        connection, process = spawned
        yield IncumbentSession(connection, process.pid)


if __name__ == "__main__":
    client_main(connect)
