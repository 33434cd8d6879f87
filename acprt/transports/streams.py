"""Any pair of asyncio streams as a transport: TCP, Unix sockets, whatever offers `read`, `write` and `drain`.

Bulk reads, never `readline`: the stream's own line limit must not become ours. This room must never touch what is
underneath the streams, and never let a peer that does not read hold up the close.
"""

from __future__ import annotations

import asyncio
import errno
from typing import Any

from acprt.limits import Limits
from acprt.transports.base import ChildStatus, Sink
from acprt.wire.lines import LineSplitter

__all__ = ["StreamsTransport", "streams"]

_READ_BYTES = 64 * 1024  # what a stream has at most by default before it stops reading
_CLOSE_SECONDS = 1.0  # how long written bytes may take to leave at close: a peer that reads needs milliseconds


def streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, peer_is_child: bool = False
) -> StreamsTransport:
    """The two halves of an open stream, as `asyncio.open_connection` gives them; the transport closes them.

    `peer_is_child=True` says that this side started its peer: then it answers no line that it cannot read (DEC-23).
    """
    return StreamsTransport(reader, writer, peer_is_child=peer_is_child)


class StreamsTransport:
    """The transport behind `streams()`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, peer_is_child: bool = False
    ) -> None:
        self.peer_is_child = peer_is_child
        self._reader = reader
        self._writer = writer
        self._reading_allowed = asyncio.Event()
        self._reading_allowed.set()
        self._reading: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None  # waits until it has
        self._write_closed = False
        self._cut_off = False  # closed with bytes that the peer has not taken
        self._closing: asyncio.Task[None] | None = None
        self._over = False  # the connection was lost or closed: nothing more is delivered

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start reading."""
        self._sink = sink
        self._splitter = LineSplitter(limits.line_bytes)
        self._writer.transport.set_write_buffer_limits(0)  # so that `drain` means: all of it has left the process
        self._loop = asyncio.get_running_loop()
        self._reading = self._loop.create_task(self._read())

    def write(self, data: bytes) -> None:
        """Take `data`, whole. What does not fit now stays in the stream's buffer and is announced to the sink, here and
        now: with buffer limits of 0 either loop has tried to send it by the time `write` returns.
        """
        if self._over or self._write_closed:
            return
        try:
            self._writer.write(data)
        except RuntimeError as error:  # how uvloop says that the peer has reset the stream meanwhile
            self._write_closed = True
            lost = ConnectionResetError(errno.ECONNRESET, f"the stream is closed: {error}")
            self._loop.call_soon(self._lost, lost)
            return
        if self._draining is None and self._writer.transport.get_write_buffer_size():
            self._draining = self._loop.create_task(self._wait_until_written())
            self._sink.pause_writing()

    async def drain(self) -> None:
        """Wait until what was accepted so far has left the process. Raises OSError when it cannot any more."""
        await self._writer.drain()
        if self._cut_off:
            raise BrokenPipeError(errno.EPIPE, "closed before everything was written")

    def pause_reading(self) -> None:
        """Deliver no more lines until `resume_reading`; the stream's buffer fills, then the peer's."""
        self._reading_allowed.clear()

    def resume_reading(self) -> None:
        """Deliver again."""
        self._reading_allowed.set()

    def close_write(self) -> None:
        """Half-close once everything is written. Where there is no such thing (TLS), the peer sees EOF at `aclose`."""
        if not self._write_closed:
            self._write_closed = True
            if not self._writer.is_closing() and self._writer.can_write_eof():
                self._writer.write_eof()

    async def aclose(self) -> None:
        """Close both halves; what was written may take a second to leave. Goes on in the background if cancelled."""
        if self._closing is None:
            self._over = True
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    def facts(self) -> dict[str, Any]:
        """Nothing is known about the end of a stream."""
        return {}

    def child_status(self) -> ChildStatus | None:
        """None: there is no process here, even where the peer is one."""
        return None

    async def _read(self) -> None:
        try:
            await self._deliver()
        except Exception as error:  # whatever the stream was lost with, or the receiver raised: never a silent end
            self._lost(error)

    async def _deliver(self) -> None:
        while True:
            data = await self._reader.read(_READ_BYTES)
            await self._reading_allowed.wait()
            lines = self._splitter.feed(data) if data else self._splitter.finish()
            if lines and not self._over:
                self._sink.lines_received(lines)
            if not data:
                break
        if not self._over:
            self._sink.eof_received()

    async def _wait_until_written(self) -> None:
        try:
            await self._writer.drain()
        except Exception as error:  # as above
            self._lost(error)
        self._draining = None
        if not self._over:
            self._sink.resume_writing()

    def _lost(self, error: Exception) -> None:
        if not self._over:
            self._over = True
            self._sink.connection_lost(error)

    async def _close(self) -> None:
        for task in (self._reading, self._draining):
            if task is not None:
                task.cancel()
        self._writer.close()
        closed = asyncio.ensure_future(self._writer.wait_closed())
        closed.add_done_callback(lambda done: done.cancelled() or done.exception())  # why it was lost is no news here
        try:
            await asyncio.wait([closed], timeout=_CLOSE_SECONDS)
        finally:
            if not closed.done():
                self._cut_off = True
                self._writer.transport.abort()
        await asyncio.wait([closed], timeout=_CLOSE_SECONDS)
