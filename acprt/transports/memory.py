"""Two transports joined in one process: what one writes the other reads, in order, on the next turn of the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from acprt.limits import Limits
from acprt.transports.base import ChildStatus, Sink
from acprt.wire.lines import LineSplitter

__all__ = ["MemoryTransport", "memory_pair"]

_HIGH_BYTES = 1024 * 1024  # what an end may hold for a peer that does not read before its writer is paused


class MemoryTransport:
    """One end of a pair. It speaks bytes, so the wire is the real one."""

    def __init__(self, *, peer_is_child: bool = False) -> None:
        self._peer_is_child = peer_is_child
        self._other: MemoryTransport | None = None
        self._sink: Sink | None = None
        self._splitter: LineSplitter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._at_eof = False  # the other end writes no more
        self._eof_delivered = False
        self._reading_paused = False
        self._delivery_due = False
        self._writer_paused = False  # this end's writer was told to wait
        self._write_closed = False
        self._lost = False  # this end was told that it failed; it is told nothing more
        self._closed = False
        self._drain_waiters: list[asyncio.Future[None]] = []

    @property
    def peer_is_child(self) -> bool:
        """Whether this end counts as the one that spawned the other."""
        return self._peer_is_child

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start delivering what the other end wrote, also before this. RuntimeError when it is open already."""
        if self._loop is not None:
            raise RuntimeError("this end of the pair is open already")
        self._sink = sink
        self._splitter = LineSplitter(limits.line_bytes)
        self._loop = asyncio.get_running_loop()
        self._schedule_delivery()

    def write(self, data: bytes) -> None:
        """Hand `data` to the other end; it reads it on the next turn of the loop."""
        other = self._other
        assert other is not None, "ends are made in pairs"
        if self._write_closed or self._closed:
            return
        if other._closed:
            self._lose()
            return
        other._unread.append(data)
        other._unread_bytes += len(data)
        if other._unread_bytes > _HIGH_BYTES and not self._writer_paused and self._sink is not None:
            self._writer_paused = True
            self._sink.pause_writing()
        other._schedule_delivery()

    async def drain(self) -> None:
        """Wait until the other end has read everything. BrokenPipeError when it closed before that."""
        other = self._other
        assert other is not None, "ends are made in pairs"
        assert self._loop is not None, "drain belongs to an open transport"
        while other._unread and not other._closed and not self._closed:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter
        if other._closed and other._unread:
            raise _broken_pipe()

    def pause_reading(self) -> None:
        """Deliver nothing, EOF included, until `resume_reading`."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Deliver again."""
        self._reading_paused = False
        self._schedule_delivery()

    def close_write(self) -> None:
        """Half-close: the other end sees EOF behind what was written."""
        other = self._other
        assert other is not None, "ends are made in pairs"
        if not self._write_closed:
            self._write_closed = True
            other._at_eof = True
            other._schedule_delivery()

    async def aclose(self) -> None:
        """Close both directions. What the other end wrote and this end has not read is lost, as in a pipe."""
        self.close_write()
        self._closed = True
        self._sink = None  # the other end may be kept for long, and must not keep what was above this one
        self._wake()
        if self._other is not None:
            self._other._wake()
            if self._other._writer_paused:
                self._other._lose()  # it waits for room that will never come

    def facts(self) -> dict[str, Any]:
        """Nothing is known about the end of a pair."""
        return {}

    def child_status(self) -> ChildStatus | None:
        """None: there is no process behind it."""
        return None

    def _schedule_delivery(self) -> None:
        if self._loop is not None and not self._delivery_due and not self._reading_paused:
            self._delivery_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivery_due = False
        sink, splitter, other = self._sink, self._splitter, self._other
        if sink is None or splitter is None or other is None or self._lost:
            return
        try:
            self._hand_on(sink, splitter, other)
        except Exception as error:  # the receiver failed: it is told, else what is unread would wait for ever
            self._lost = True
            sink.connection_lost(error)

    def _hand_on(self, sink: Sink, splitter: LineSplitter, other: MemoryTransport) -> None:
        while self._unread and not self._reading_paused:
            data = self._unread.popleft()
            self._unread_bytes -= len(data)
            lines = splitter.feed(data)
            if lines:
                sink.lines_received(lines)
        if not self._unread:
            other._taken()
            if self._at_eof and not self._eof_delivered and not self._reading_paused:
                self._eof_delivered = True
                lines = splitter.finish()
                if lines:
                    sink.lines_received(lines)
                sink.eof_received()

    def _taken(self) -> None:
        """The other end has read everything this end wrote."""
        self._wake()
        if self._writer_paused and self._sink is not None:
            self._writer_paused = False
            self._sink.resume_writing()

    def _wake(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _lose(self) -> None:
        """The other end is closed and takes nothing more: this end learns it on the next turn of the loop."""
        self._write_closed = True
        if self._loop is not None:
            self._loop.call_soon(self._deliver_loss)

    def _deliver_loss(self) -> None:
        if self._sink is not None and not self._lost:
            self._lost = True
            self._sink.connection_lost(_broken_pipe())


def _broken_pipe() -> BrokenPipeError:
    return BrokenPipeError("the other end of the memory pair is closed")


def memory_pair(*, left_is_parent: bool = False) -> tuple[MemoryTransport, MemoryTransport]:
    """Two joined ends. With `left_is_parent` the left end behaves as if it had spawned the right one (DEC-23)."""
    left, right = MemoryTransport(peer_is_child=left_is_parent), MemoryTransport()
    left._other, right._other = right, left
    return left, right
