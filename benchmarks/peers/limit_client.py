"""The limit's client: a dict from id to future, filled by `data_received`, and nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

import script
import wire
from drive import Session, Wanted, client_main
from limit_pipe import LimitPipe, LineReader

AGENT = Path(__file__).with_name("limit_agent.py")
PROXY = Path(__file__).with_name("limit_proxy.py")


class Client(LineReader):
    """Routes replies to futures and updates to the handler, inside `data_received`."""

    def __init__(self, on_update: script.OnUpdate, out: LimitPipe) -> None:
        super().__init__()
        self._on_update = on_update
        self._out = out
        self._decode = msgspec.json.Decoder(wire.Inbound).decode
        self.pending: dict[int, asyncio.Future[wire.Result | None]] = {}

    def lines_received(self, lines: list[bytes]) -> None:
        for line in lines:
            message = self._decode(line)
            if message.params is not None:
                if message.params.options is None:
                    self._on_update(wire.text_of_update(message.params))
                else:
                    self._out.send_soon(wire.permission_answer(message.id, message.params.options))
            else:  # no result: the prompt was cancelled
                self.pending.pop(message.id).set_result(message.result)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in self.pending.values():
            future.set_exception(exc or EOFError("the agent has gone"))
        super().connection_lost(exc)


class LimitSession(Session):
    def __init__(self, client: Client, out: LimitPipe, pid: int) -> None:
        self.agent_pid = pid
        self._pending = client.pending
        self._out = out
        self._create_future = asyncio.get_running_loop().create_future
        self._last_id = 0

    async def initialize(self) -> Any:
        return await self._ask(wire.initialize_message(self._new_id()))

    async def new_session(self) -> Any:
        return await self._ask(wire.new_session_message(self._new_id()))

    def prompt(self, text: str) -> asyncio.Future[wire.Result | None]:
        self._last_id = request_id = self._last_id + 1
        self._out.send_soon(wire.prompt_message(request_id, text))
        future = self._create_future()
        self._pending[request_id] = future
        return future

    async def storm(self, count: int, held: asyncio.Event) -> None:
        text = script.park_text(count)
        sent = [self.prompt(text) for _ in range(count)]
        await held.wait()
        for request_id in range(self._last_id - count + 1, self._last_id + 1):
            self._out.send_soon(wire.cancel_message(request_id))
        await asyncio.gather(*sent)

    def _ask(self, message: wire.Initialize | wire.NewSession) -> asyncio.Future[wire.Result | None]:
        self._out.send_soon(message)
        self._pending[message.id] = future = self._create_future()
        return future

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


@asynccontextmanager
async def connect(wanted: Wanted) -> AsyncIterator[Session]:
    command = [sys.executable, str(AGENT), wanted.loop]
    if wanted.proxied:
        command = [sys.executable, str(PROXY), wanted.loop, *command]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        out = LimitPipe()
        client = Client(wanted.on_update, out)
        await out.open(client, child.stdout, child.stdin)
        yield LimitSession(client, out, child.pid)
        out.close()
        await client.closed


if __name__ == "__main__":
    client_main(connect)
