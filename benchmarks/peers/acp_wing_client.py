"""The client on `acprt.acp`, with typed requests on its connection and a handler for every update."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
import script
from acprt import acp
from acprt.acp import v1
from drive import Session, Wanted, agent_command, client_main

AGENT = Path(__file__).with_name("acp_wing_agent.py")


class WingSession(Session):
    def __init__(self, cx: acprt.Connection) -> None:
        child = cx.status().child
        assert child is not None
        self.agent_pid = child.pid
        self._cx = cx

    async def initialize(self) -> Any:
        return await acp.initialize(self._cx)

    async def new_session(self) -> Any:
        return await self._cx.send_request(v1.NewSessionRequest(cwd="/", mcp_servers=[])).block_task()

    def prompt(self, text: str) -> Awaitable[Any]:
        prompt = v1.PromptRequest(session_id=script.SESSION_ID, prompt=[v1.TextContent(text=text)])
        return self._cx.send_request(prompt).block_task()

    async def storm(self, count: int, held: asyncio.Event) -> None:
        prompt = v1.PromptRequest(session_id=script.SESSION_ID, prompt=[v1.TextContent(text=script.park_text(count))])
        sent = [self._cx.send_request(prompt) for _ in range(count)]
        waiting = [asyncio.create_task(request.block_task()) for request in sent]
        await held.wait()
        for request in sent:
            request.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    client, on_update = acp.Client("benchmark-client", version="1"), wanted.on_update

    @client.on_receive_notification
    async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
        chunk = note.update
        if isinstance(chunk, v1.AgentMessageChunk) and isinstance(chunk.content, v1.TextContent):
            on_update(chunk.content.text)

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return acp.allow_first(request)

    command = agent_command(AGENT, wanted)
    async with client.connect(acprt.AgentProcess(*command)) as cx:
        yield WingSession(cx)


if __name__ == "__main__":
    client_main(connect)
