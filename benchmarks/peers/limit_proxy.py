"""The limit's proxy: `limit_proxy.py LOOP COMMAND…` passes bytes on as they come, whatever they say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import IO

import stock_pipe
from loops import loop_factory


class Passage(asyncio.Protocol):
    """One direction: what is read here is written there, and so is its end."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, read_end: IO[bytes], write_end: IO[bytes]) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(loop, asyncio.SelectorEventLoop):
            self._out: asyncio.WriteTransport | stock_pipe.StockWriter = stock_pipe.StockWriter(self, write_end)
            stock_pipe.read_lines_into(self, read_end)
        else:
            self._out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, write_end)
            await loop.connect_read_pipe(lambda: self, read_end)

    def data_received(self, data: bytes) -> None:
        self._out.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._out.close()
        self.closed.set_result(None)

    def pause_writing(self) -> None:
        """A round trip at a time never fills a pipe, so nothing has to wait here."""

    def resume_writing(self) -> None: ...


async def main(command: list[str]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        onward, back = Passage(), Passage()
        await back.open(child.stdout, sys.stdout.buffer)
        await onward.open(sys.stdin.buffer, child.stdin)
        await asyncio.gather(onward.closed, back.closed)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(main(sys.argv[2:]))
