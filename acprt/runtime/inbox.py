"""From lines to frames: what the reader does at receipt, before anything waits its turn.

Request ids are registered and cancels are applied here, in wire order, so that a cancel overtakes the work it stops.
What is left waits in the inbox, which is bounded by pausing the transport, never by dropping.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from acprt.limits import Limits
from acprt.runtime.dialect import Dialect
from acprt.runtime.inbound import InboundTable
from acprt.runtime.responder import BatchReply, InboundRequest
from acprt.runtime.watchdog import Watchdog
from acprt.transports.base import Transport
from acprt.wire.frames import (
    BatchFrame,
    MalformedFrame,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    encode_error,
    parse,
)
from acprt.wire.lines import Line, OversizedLine
from acprt.wire.malformed import malformed_from_json

__all__ = ["EndOfInput", "InboundBatch", "Inbox", "Item"]

logger = logging.getLogger("acprt.wire")


class EndOfInput:
    """The tail of the input: EOF is dispatched like a frame, after everything received before it (EO-01)."""


class InboundBatch(NamedTuple):
    """A batch as the dispatch loop takes it: its members in order and the array its answers go to."""

    members: list[InboundRequest | NotificationFrame | ResponseFrame | MalformedFrame]
    reply: BatchReply


Item = InboundRequest | NotificationFrame | ResponseFrame | InboundBatch | MalformedFrame | EndOfInput


class _Chunk(NamedTuple):
    items: list[Item]
    size: int
    received_at: float


class Inbox:
    """Frames between the reader and the dispatch loop. The reader calls `receive`, the loop `next_items` and `wait`."""

    def __init__(
        self,
        dialect: Dialect,
        inbound: InboundTable,
        transport: Transport,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        put: Callable[[bytes], None],
        watchdog: Watchdog,
    ) -> None:
        self.tap: Callable[[Line], None] | None = None
        self.bad_lines = 0
        self.first_bad_line = ""
        self.run_ahead: Callable[[list[Item]], list[Item]] | None = None
        """Set by the dispatch loop. While it waits for input, what needs no waiting is begun at receipt; the rest is
        given back. It saves a lone message a turn of the event loop (bench-core w1)."""
        self.receives = True  # cleared when the connection ends: what still comes is discarded
        self._dialect = dialect
        self._admit = None if type(dialect).admit is Dialect.admit else dialect.admit
        self._cancel_methods = dialect.cancel_methods
        self._inbound = inbound
        self._transport = transport
        self._limits = limits
        self._loop = loop
        self._opening: list[NotificationFrame] | None = [] if dialect.opening_buffer else None
        self._put = put
        self._watchdog = watchdog
        self._answers_unreadable = not transport.peer_is_child
        self._chunks: deque[_Chunk] = deque()
        self._current: _Chunk | None = None
        self._count = 0
        self._bytes = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None

    def receive(self, lines: list[Line]) -> None:
        """Take what the transport delivered."""
        if not self.receives:
            return
        if self.tap is not None:
            for line in lines:
                self.tap(line)
        items: list[Item] = []
        size = 0
        now = monotonic()
        cancel_methods, admit, inbound = self._cancel_methods, self._admit, self._inbound
        for line in lines:
            size += len(line)
            frame = parse(line)
            if isinstance(frame, NotificationFrame):
                if self._opening is not None:
                    self._hold_back(frame)
                elif (frame.method not in cancel_methods or self._cancel(frame)) and (
                    admit is None or admit(frame) is None
                ):
                    items.append(frame)
            elif isinstance(frame, ResponseFrame):
                items.append(frame)
            elif isinstance(frame, RequestFrame):
                request = inbound.register(frame, now) if admit is None else self._register(frame, now)
                if request is not None:
                    if self._opening is not None:
                        items += self._end_opening()
                    items.append(request)
            elif isinstance(frame, BatchFrame):
                items.append(self._open_batch(frame, line, now))
            elif not _is_blank(line):  # blank lines are ignored (house plan §4)
                items.append(frame)
        if items and self._waiter is not None and self.run_ahead is not None:
            items = self.run_ahead(items)
        if items:
            self._append(items, size, now)

    def end(self) -> None:
        """Put EOF behind everything received."""
        self._append([EndOfInput()], 0, monotonic())

    def next_items(self) -> list[Item] | None:
        """The next items to dispatch; None when there are none. What was taken before counts as done."""
        done = self._current
        if done is not None:
            self._count -= len(done.items)
            self._bytes -= done.size
            if (
                self._paused
                and self._bytes <= self._limits.inbox_bytes // 2
                and (self._count <= self._limits.inbox_frames // 2)
            ):
                self._paused = False
                self._transport.resume_reading()
        if not self._chunks:
            self._current = None
            return None
        self._current = self._chunks.popleft()
        return self._current.items

    async def wait(self) -> None:
        """Wait for `receive`, `end` or `wake`."""
        if not self._chunks:
            self._waiter = self._loop.create_future()
            await self._waiter

    def wake(self) -> None:
        """Let the dispatch loop look around."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Discard what is queued and whatever still comes."""
        self.receives = False
        self._chunks.clear()

    @property
    def has_more(self) -> bool:
        """Whether items wait behind those being dispatched."""
        return bool(self._chunks)

    @property
    def count(self) -> int:
        """Frames held: waiting, or in the chunk being dispatched."""
        return self._count

    @property
    def size(self) -> int:
        """Their size on the wire."""
        return self._bytes

    @property
    def oldest_age(self) -> float:
        """Seconds since the oldest of them was received."""
        oldest = self._current or (self._chunks[0] if self._chunks else None)
        return monotonic() - oldest.received_at if oldest is not None else 0.0

    def _append(self, items: list[Item], size: int, now: float) -> None:
        self._chunks.append(_Chunk(items, size, now))
        if not self._watchdog.armed:
            self._watchdog.arm()
        self._count += len(items)
        self._bytes += size
        if not self._paused and (self._bytes > self._limits.inbox_bytes or self._count > self._limits.inbox_frames):
            self._paused = True
            self._transport.pause_reading()
        self.wake()

    def _register(self, frame: RequestFrame, now: float, batch: BatchReply | None = None) -> InboundRequest | None:
        request = self._inbound.register(frame, now, batch)
        if request is not None and self._admit is not None:
            refusal = self._admit(frame)
            if refusal is not None:
                request.fail(refusal)
                return None
        return request

    def _cancel(self, frame: NotificationFrame) -> bool:
        """Apply a cancel at receipt; False drops a malformed one, which handlers never see (CA-07)."""
        notice = self._dialect.parse_cancel(frame)
        if notice is None:
            logger.warning("dropped a malformed %s", frame.method)
            return False
        self._inbound.cancel(notice)
        return True

    def _hold_back(self, frame: NotificationFrame) -> None:
        """Keep a notification that came before the first request; what is over the dialect's buffer is dropped."""
        assert self._opening is not None, "asked by the caller"
        if len(self._opening) < self._dialect.opening_buffer:
            self._opening.append(frame)
        else:
            logger.warning("dropped %s: too many notifications before the first request", frame.method)

    def _end_opening(self) -> list[Item]:
        """The first request was admitted: what was held back takes its place in front of it, if it is admitted now. A
        cancel among it came before every request, so there is nothing that it could cancel (CA-06).
        """
        held, self._opening = self._opening or [], None
        return [
            frame
            for frame in held
            if (frame.method not in self._cancel_methods or self._dialect.parse_cancel(frame) is not None)
            and (self._admit is None or self._admit(frame) is None)
        ]

    def _open_batch(self, frame: BatchFrame, line: Line, now: float) -> InboundBatch | MalformedFrame:
        if not self._dialect.accepts_batches:
            assert not isinstance(line, OversizedLine), "an over-long line is never parsed into a batch"
            return malformed_from_json(line, "batches are not supported")
        reply = BatchReply(self._put)
        members: list[InboundRequest | NotificationFrame | ResponseFrame | MalformedFrame] = []
        for entry in frame.entries:
            if isinstance(entry, RequestFrame):
                request = self._register(entry, now, reply)
                if request is not None:
                    members.append(request)
            elif isinstance(entry, NotificationFrame):
                if entry.method in self._cancel_methods and not self._cancel(entry):
                    continue
                if self._admit is None or self._admit(entry) is None:
                    members.append(entry)
            else:
                if isinstance(entry, MalformedFrame) and self.deserves_answer(entry):
                    reply.fill(reply.new_slot(), encode_error(entry.answer_id, entry.error))  # in source order (BA-03)
                members.append(entry)
        return InboundBatch(members, reply)

    def deserves_answer(self, frame: MalformedFrame) -> bool:
        """Whether its sender is told: never for an answer, by a spawner only for what is plainly a request (DEC-23)."""
        return not frame.is_reply and (self._answers_unreadable or frame.is_request)


def _is_blank(line: Line) -> bool:
    return not isinstance(line, OversizedLine) and not line.strip()
