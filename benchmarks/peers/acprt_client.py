"""The acprt client: an endpoint with typed handlers, connected to a spawned agent or to a proxy in front of one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
import script
from acprt_messages import (
    AgentMessageChunk,
    Capabilities,
    Initialize,
    NewSession,
    Permission,
    PermissionReply,
    Prompt,
    Selected,
    SessionUpdate,
    Text,
)
from drive import Session, Wanted, agent_command, client_main

AGENT = Path(__file__).with_name("acprt_agent.py")
PROXY = Path(__file__).with_name("acprt_proxy.py")


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

    async def storm(self, count: int, held: asyncio.Event) -> None:
        ended = Countdown(count)
        prompt = Prompt(session_id=script.SESSION_ID, prompt=[Text(script.park_text(count))])
        sent = [self._cx.send_request(prompt) for _ in range(count)]
        for request in sent:
            request.on_receiving_result(ended.one_more)
        await held.wait()
        for request in sent:
            request.cancel()
        await ended.reached.wait()


class Countdown:
    """Sets `reached` with the last of so many ends."""

    def __init__(self, count: int) -> None:
        self._left = count
        self.reached = asyncio.Event()

    async def one_more(self, _result: object) -> None:
        self._left -= 1
        if not self._left:
            self.reached.set()


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    client, on_update = acprt.Endpoint("benchmark-client"), wanted.on_update

    @client.on_receive_notification
    async def update(note: SessionUpdate, cx: acprt.Connection) -> None:
        chunk = note.update
        if isinstance(chunk, AgentMessageChunk) and isinstance(chunk.content, Text):
            on_update(chunk.content.text)

    @client.method
    async def permission(request: Permission) -> PermissionReply:
        return PermissionReply(Selected(request.options[0].option_id))

    command = agent_command(AGENT, wanted)
    if wanted.proxied:
        command = [sys.executable, str(PROXY), wanted.loop, *command]
    async with client.connect(acprt.AgentProcess(*command)) as cx:
        yield AcprtSession(cx)


if __name__ == "__main__":
    client_main(connect)
