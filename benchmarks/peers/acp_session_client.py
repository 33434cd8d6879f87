"""The client on `acprt.acp` as its guide shows it: a session, and a loop over the updates of each prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
import script
from acprt import acp
from acprt.acp import v1
from drive import Session, Wanted, agent_command, client_main

AGENT = Path(__file__).with_name("acp_wing_agent.py")


class PromptSession(Session):
    """One prompt at a time, as the protocol has it."""

    def __init__(self, cx: acprt.Connection, on_update: script.OnUpdate) -> None:
        child = cx.status().child
        assert child is not None
        self.agent_pid = child.pid
        self._cx = cx
        self._on_update = on_update

    async def initialize(self) -> Any:
        return await acp.initialize(self._cx)

    async def new_session(self) -> Any:
        self._session = await acp.session(self._cx, cwd="/")

    async def prompt(self, text: str) -> None:
        on_update = self._on_update
        async for update in self._session.prompt(text):
            if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextContent):
                on_update(update.content.text)


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    client = acp.Client("benchmark-client", version="1")

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return acp.allow_first(request)

    command = agent_command(AGENT, wanted)
    async with client.connect(acprt.AgentProcess(*command)) as cx:
        yield PromptSession(cx, wanted.on_update)


if __name__ == "__main__":
    client_main(connect)
