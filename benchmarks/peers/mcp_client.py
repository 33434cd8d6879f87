"""The client on mcp: `stdio_client` and a ClientSession; a prompt is a call of the server's one tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

import script
from drive import Session, Wanted, agent_command, client_main

AGENT = Path(__file__).with_name("mcp_agent.py")


class McpSession(Session):
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def initialize(self) -> Any:
        result = await self._session.initialize()
        self.agent_pid = int(result.server_info.version)

    async def new_session(self) -> Any:
        return await self._session.list_tools()  # it asks for them before the first call anyway

    def prompt(self, text: str) -> Awaitable[Any]:
        answer: Awaitable[Any] = self._session.call_tool("prompt", {"text": text})
        return answer

    async def storm(self, count: int, held: asyncio.Event) -> None:
        arguments = {"text": script.park_text(count)}
        calls = [asyncio.create_task(self._session.call_tool("prompt", arguments)) for _ in range(count)]
        await held.wait()
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    on_update = wanted.on_update

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        on_update(params.data)

    command, *words = agent_command(AGENT, wanted)
    server = StdioServerParameters(command=command, args=words)
    async with (
        stdio_client(server) as (reader, writer),
        ClientSession(reader, writer, logging_callback=log) as session,
    ):
        yield McpSession(session)


if __name__ == "__main__":
    client_main(connect)
