"""Frames on their way out: in order, joined into few writes, bounded.

A frame that comes alone leaves at once, which a round trip wants. Frames of a burst leave in growing pieces, the rest
of a tick as one: a write that wakes the peer for one frame of many costs more than the frame, but the peer should begin
while the burst is made (bench-core w1, w2, w3). A burst is known by its pace and by what the last write was, which
costs less than a turn of the loop to mark the tick. While the transport is full, frames that a dialect may take back
wait here one by one; others are joined and wait in the transport.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from time import monotonic

from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.runtime.dialect import Dialect
from acprt.transports.base import Transport
from acprt.wire.lines import LongLine, OutLine

__all__ = ["Outbox"]

_FLUSH_BYTES = 64 * 1024  # a pipe takes no more at once, and a handler that never waits would buffer its whole stream
_FIRST_PIECE = 8  # frames: the peer begins on them while the rest of a burst is made; each next piece is twice as long
_LONE_SECONDS = 25e-6  # a frame this long after the last write is alone: it is a round trip's, not a burst's
_WITHDRAWN = b""
_REQUEST = rb'\{"jsonrpc":"2\.0","id":\d+,"method":'  # as we write them; no answer and no notification


class Outbox:
    """What was sent and is not written yet. `put` never waits; `drained` does."""

    __slots__ = (
        "_bytes",
        "_drain_waiters",
        "_flush_due",
        "_frames",
        "_handed_frames",
        "_handed_over",
        "_in_burst",
        "_limits",
        "_loop",
        "_oldest",
        "_on_overflow",
        "_owned",
        "_paused",
        "_piece",
        "_to_wire",
        "_tracks_owners",
        "_transport",
        "_withdrawn",
        "_wrote_at",
        "busy",
        "closed",
        "tap",
    )

    def __init__(
        self,
        transport: Transport,
        limits: Limits,
        dialect: Dialect,
        loop: asyncio.AbstractEventLoop,
        on_overflow: Callable[[RpcError], None],
    ) -> None:
        self.closed = False
        self.busy = False  # a frame is on its way; the collector may run a finalizer that sends, in the midst of it
        self.tap: Callable[[bytes], None] | None = None
        self._transport = transport
        self._limits = limits
        self._loop = loop
        self._on_overflow = on_overflow
        self._tracks_owners = dialect.withdraws_queued
        self._to_wire = None if type(dialect).to_wire is Dialect.to_wire else dialect.to_wire
        self._frames: list[OutLine] = []
        self._bytes = 0
        self._handed_over = 0  # bytes the transport may hold: of the last write, and of all since while it is full
        self._handed_frames = 0  # frames among them that were handed over while it was full
        self._oldest = 0.0
        self._wrote_at = 0.0
        self._flush_due = False
        self._in_burst = False  # the last write joined several frames: the next one will, too
        self._piece = _FIRST_PIECE
        self._paused = False
        self._owned: dict[object, list[int]] = {}  # owner -> places of its frames in _frames
        self._withdrawn = 0  # places in _frames whose frame was taken back
        self._drain_waiters: list[asyncio.Future[None]] = []

    def put(self, frame: OutLine, owner: object = None, now: float | None = None) -> None:
        """Queue one frame, without its terminator. `owner` names the request it belongs to, for `withdraw`; `now` is
        given by a caller who knows the time.
        """
        if self.closed:
            return
        if self.busy:
            self._loop.call_soon(self.put, frame, owner)
            return
        if self._to_wire is not None:
            frame = self._to_wire(bytes(frame))
        if self.tap is not None:
            self.tap(bytes(frame))
        self.busy = True
        try:
            if not self._frames:
                if now is None:
                    now = monotonic()
                if now - self._wrote_at > _LONE_SECONDS and not self._in_burst and not self._paused:
                    self._wrote_at = now
                    if type(frame) is LongLine:
                        self._write_parts(frame)
                    else:
                        self._handed_over = len(frame) + 1
                        self._transport.write(frame + b"\n")
                    return
                self._oldest = now
                if not self._flush_due and not self._paused:
                    self._flush_due = True
                    self._loop.call_soon(self._end_of_tick)
            if self._tracks_owners and owner is not None:
                self._owned.setdefault(owner, []).append(len(self._frames))
            self._frames.append(frame)
            self._bytes += len(frame) + 1
            if self._paused:
                if self.size > self._limits.outbox_max_bytes:
                    self._overflow()
                elif self._bytes >= _FLUSH_BYTES and not self._tracks_owners:
                    self._flush()  # they wait as well in the transport, joined, as one object for hundreds (w6)
            elif self._bytes >= _FLUSH_BYTES or len(self._frames) >= self._piece:
                self._piece *= 2
                self._flush()
        finally:
            self.busy = False

    def withdraw(self, owner: object) -> int:
        """Take back the queued frames of `owner`; how many there were. Frames already handed to the transport stay."""
        if self.busy:
            return 0
        return self._take_back(self._owned.pop(owner, ()))

    def withdraw_requests(self) -> int:
        """Take back our own queued requests: the input has ended, nobody can answer them any more (OU-05, EO-06)."""
        return self._take_back([place for place, frame in enumerate(self._frames) if re.match(_REQUEST, bytes(frame))])

    def pause(self) -> None:
        """The transport holds bytes: keep frames here."""
        self._paused = True

    def resume(self) -> None:
        """The transport is empty again."""
        self._paused = False
        self._handed_over = self._handed_frames = 0
        self._flush_alone()
        self._wake_if_drained()

    def hand_over(self) -> None:
        """Give everything to the transport, full or not: the connection closes and the transport bounds the rest."""
        self._flush_alone()

    async def drained(self) -> None:
        """Wait until less than `Limits.outbox_high_bytes` are unwritten. Returns when the outbox is closed, too."""
        while not self.closed and self.size > self._limits.outbox_high_bytes:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter

    def close(self) -> None:
        """Take no more frames and forget those queued; waiters go on."""
        self.closed = True
        self._frames.clear()
        self._owned.clear()
        self._withdrawn = 0
        self._bytes = 0
        self._wake_if_drained()

    @property
    def count(self) -> int:
        """Frames that wait: here, or joined in a transport that is full."""
        return len(self._frames) - self._withdrawn + self._handed_frames

    @property
    def size(self) -> int:
        """Unwritten bytes, those that the transport holds included (rounded up to whole writes)."""
        return self._bytes + (self._handed_over if self._paused else 0)

    @property
    def oldest_age(self) -> float:
        """Seconds that the oldest queued frame has waited."""
        return monotonic() - self._oldest if self._frames else 0.0

    def _take_back(self, places: Sequence[int]) -> int:
        count = 0
        for place in places:
            frame = self._frames[place]
            if frame is not _WITHDRAWN:
                self._bytes -= len(frame) + 1
                self._frames[place] = _WITHDRAWN
                count += 1
        self._withdrawn += count
        self._wake_if_drained()
        return count

    def _end_of_tick(self) -> None:
        self._flush_due = False
        self._piece = _FIRST_PIECE
        if self._frames and not self._paused:
            self._flush_alone()
            self._wake_if_drained()

    def _flush_alone(self) -> None:
        self.busy = True
        try:
            self._flush()
        finally:
            self.busy = False

    def _flush(self) -> None:
        if self._frames:
            frames, self._frames = self._frames, []
            self._in_burst = len(frames) > 1
            self._bytes = 0
            if self._owned:
                self._owned.clear()
            if self._withdrawn:
                self._withdrawn = 0
                frames = [frame for frame in frames if frame is not _WITHDRAWN]
                if not frames:
                    return
            self._wrote_at = monotonic()
            if self._paused:
                self._handed_frames += len(frames)
            first = frames[0]
            if len(frames) == 1 and type(first) is LongLine:
                self._write_parts(first)
                return
            frames.append(b"")
            try:
                data = b"\n".join(frames)  # type: ignore[arg-type]  # next to never there is a long line among them
            except TypeError:
                data = b"\n".join(map(bytes, frames))
            self._handed_over = len(data) + (self._handed_over if self._paused else 0)
            self._transport.write(data)

    def _write_parts(self, frame: LongLine) -> None:
        """One by one: a copy of a long text costs more than two small writes (bench-core w4)."""
        self._handed_over = len(frame) + 1 + (self._handed_over if self._paused else 0)
        *parts, last = frame.parts
        for part in (*parts, last + b"\n"):
            self._transport.write(part)

    def _wake_if_drained(self) -> None:
        if self._drain_waiters and (self.closed or self.size <= self._limits.outbox_high_bytes):
            waiters, self._drain_waiters = self._drain_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def _overflow(self) -> None:
        limit = self._limits.outbox_max_bytes
        self._on_overflow(
            RpcError.internal_error(
                {
                    "reason": "outbox_full",
                    "error": f"over {limit} bytes are unwritten because the peer does not read; "
                    "wait with `await cx.drain()` between messages, or raise Limits(outbox_max_bytes=…)",
                    "size": self.size,
                    "limit": limit,
                    "option": "Limits.outbox_max_bytes",
                }
            )
        )
