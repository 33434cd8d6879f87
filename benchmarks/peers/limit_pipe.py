"""The byte side of the limit: the loop's fastest pipes, bulk reads split once, writes joined per tick.

Knows no messages beyond "a struct is a line". Holds no queue, task or future; must stay as fast as a loop over pipes
can be, because every ratio of the benchmark divides by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import IO

import msgspec

import stock_pipe

__all__ = ["LimitPipe", "LineReader"]

JOIN_AT_MOST = 150
"""Messages joined into one write: about 32 KiB of small ones, half of what a pipe holds."""


class LineReader(asyncio.Protocol):
    """Joins chunks into lines and hands over all complete lines of a read at once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # a list, joined once at its newline: adding to bytes is quadratic for long lines
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._parts.append(data)
            return
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
        rest = lines.pop()
        if rest:
            self._parts.append(rest)
        self.lines_received(lines)

    def lines_received(self, lines: list[bytes]) -> None:
        raise NotImplementedError

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class LimitPipe(asyncio.BaseProtocol):
    """Writes structs as lines: the first of a tick at once, the rest of it in one write (fastest of three ways)."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._encoder = msgspec.json.Encoder()
        self._waiting: list[msgspec.Struct] = []
        self._flush_scheduled = False
        self.paused = False

    async def open(self, reader: LineReader, read_end: IO[bytes], write_end: IO[bytes]) -> None:
        """Connect both ends, the write side first: input may arrive while the read side is being connected."""
        if isinstance(self._loop, asyncio.SelectorEventLoop):
            self._transport: asyncio.WriteTransport | stock_pipe.StockWriter = stock_pipe.StockWriter(self, write_end)
            stock_pipe.read_lines_into(reader, read_end)
        else:
            self._transport, _ = await self._loop.connect_write_pipe(lambda: self, write_end)
            await self._loop.connect_read_pipe(lambda: reader, read_end)

    def send_soon(self, message: msgspec.Struct) -> None:
        """Send at once if it is the first of this tick, else with everything that follows it in the tick."""
        if self._flush_scheduled:
            self._waiting.append(message)
            if len(self._waiting) >= JOIN_AT_MOST:
                self._write_waiting()
        else:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)
            self.send_now((message,))

    def send_now(self, messages: Sequence[msgspec.Struct]) -> None:
        """Send several in one write."""
        self._transport.write(self._encoder.encode_lines(messages))

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._waiting:
            self._write_waiting()

    def _write_waiting(self) -> None:
        self.send_now(self._waiting)
        self._waiting.clear()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def close(self) -> None:
        self._transport.close()
