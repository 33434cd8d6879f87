"""The acprt client: an endpoint with one typed update handler, connected to a spawned agent."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
import script
from acprt_messages import AgentMessageChunk, Capabilities, Initialize, NewSession, Prompt, SessionUpdate, Text
from drive import Session, client_main

AGENT = Path(__file__).with_name("acprt_agent.py")


class AcprtSession(Session):
    def __init__(self, cx: acprt.Connection) -> None:
        child = cx.status().child
        assert child is not None
        self.agent_pid = child.pid
        self._cx = cx

    async def initialize(self) -> Any:
        request = Initialize(protocol_version=1, client_capabilities=Capabilities())
        return await self._cx.send_request(request).block_task()

    async def new_session(self) -> Any:
        return await self._cx.send_request(NewSession(cwd="/", mcp_servers=[])).block_task()

    def prompt(self, text: str) -> Awaitable[Any]:
        return self._cx.send_request(Prompt(session_id=script.SESSION_ID, prompt=[Text(text)])).block_task()


@asynccontextmanager
async def connect(loop_name: str, on_update: script.OnUpdate) -> AsyncIterator[Session]:
    client = acprt.Endpoint("benchmark-client")

    @client.on_receive_notification
    async def update(note: SessionUpdate, cx: acprt.Connection) -> None:
        chunk = note.update
        if isinstance(chunk, AgentMessageChunk) and isinstance(chunk.content, Text):
            on_update(chunk.content.text)

    async with client.connect(acprt.AgentProcess(sys.executable, str(AGENT), loop_name)) as cx:
        yield AcprtSession(cx)


if __name__ == "__main__":
    client_main(connect)
