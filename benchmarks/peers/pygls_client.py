"""The client on pygls: features of a JsonRPCClient, which spawns its server and speaks Content-Length frames."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pygls.client import JsonRPCClient

import pygls_messages as messages
import script
from drive import Session, Wanted, client_main

AGENT = Path(__file__).with_name("pygls_agent.py")


class PyglsSession(Session):
    def __init__(self, client: Any) -> None:
        self.agent_pid = client._server.pid  # it shows its process to nobody
        self._protocol = client.protocol
        self._storm_ids = itertools.count(1)

    async def initialize(self) -> Any:
        return await self._protocol.send_request_async("initialize", messages.InitializeParams(1, {}))

    async def new_session(self) -> Any:
        return await self._protocol.send_request_async("session/new", messages.NewSessionParams("/", []))

    def prompt(self, text: str) -> Awaitable[Any]:
        params = messages.Prompt(script.SESSION_ID, [messages.Text(text, "text")])
        answer: Awaitable[Any] = self._protocol.send_request_async("session/prompt", params)
        return answer

    async def storm(self, count: int, held: asyncio.Event) -> None:
        params = messages.Prompt(script.SESSION_ID, [messages.Text(script.park_text(count), "text")])
        ids = [f"storm-{next(self._storm_ids)}" for _ in range(count)]
        sent = [self._protocol.send_request_async("session/prompt", params, msg_id=id) for id in ids]
        await held.wait()
        for id in ids:
            self._protocol.notify("$/cancelRequest", {"id": id})
        await asyncio.gather(*sent, return_exceptions=True)


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    client, on_update = JsonRPCClient(messages.Protocol, messages.converter), wanted.on_update

    @client.feature("session/update")
    def update(params: Any) -> None:
        chunk = params.update
        if isinstance(chunk, messages.AgentMessageChunk) and isinstance(chunk.content, messages.Text):
            on_update(chunk.content.text)

    @client.feature("session/request_permission")
    def permission(params: Any) -> Any:
        return messages.PermissionResult(messages.Selected(params.options[0].optionId, "selected"))

    await client.start_io(sys.executable, str(AGENT))
    try:
        yield PyglsSession(client)
    finally:
        with suppress(ProcessLookupError):
            client._server.terminate()  # its server ends with an `exit` of LSP only
        await client.stop()


if __name__ == "__main__":
    client_main(connect)
