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
from drive import Session, client_main
from limit_pipe import LimitPipe, LineReader

AGENT = Path(__file__).with_name("limit_agent.py")


class Client(LineReader):
    """Routes replies to futures and updates to the handler, inside `data_received`."""

    def __init__(self, on_update: script.OnUpdate) -> None:
        super().__init__()
        self._on_update = on_update
        self._decode = msgspec.json.Decoder(wire.Inbound).decode
        self.pending: dict[int, asyncio.Future[wire.Result]] = {}

    def lines_received(self, lines: list[bytes]) -> None:
        for line in lines:
            message = self._decode(line)
            if message.params is not None:
                self._on_update(wire.text_of_update(message.params))
            elif message.result is not None:
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

    def prompt(self, text: str) -> asyncio.Future[wire.Result]:
        self._last_id = request_id = self._last_id + 1
        self._out.send_soon(wire.prompt_message(request_id, text))
        future = self._create_future()
        self._pending[request_id] = future
        return future

    def _ask(self, message: wire.Initialize | wire.NewSession) -> asyncio.Future[wire.Result]:
        self._out.send_soon(message)
        self._pending[message.id] = future = self._create_future()
        return future

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


@asynccontextmanager
async def connect(loop_name: str, on_update: script.OnUpdate) -> AsyncIterator[Session]:
    assert loop_name == "uvloop"
    command = [sys.executable, str(AGENT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        client, out = Client(on_update), LimitPipe()
        await out.open(client, child.stdout, child.stdin)
        yield LimitSession(client, out, child.pid)
        out.close()
        await client.closed


if __name__ == "__main__":
    client_main(connect)
