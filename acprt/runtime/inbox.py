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
from typing import Any

from msgspec import UNSET, Struct

from acprt.limits import Limits
from acprt.runtime.batch import BatchReply
from acprt.runtime.dialect import Dialect
from acprt.runtime.inbound import InboundTable
from acprt.runtime.responder import InboundRequest
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


class InboundBatch(Struct):
    """A batch as the dispatch loop takes it: its members in order and the array its answers go to."""

    members: list[InboundRequest | NotificationFrame | ResponseFrame | MalformedFrame]
    reply: BatchReply


Item = InboundRequest | NotificationFrame | ResponseFrame | InboundBatch | MalformedFrame | EndOfInput


class _Chunk(Struct):
    items: list[Item]
    frames: int  # a batch counts as many as it has members, or a line of them would pass for one
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
        fail: Callable[[Exception], None],
    ) -> None:
        self.tap: Callable[[Line], None] | None = None
        self.bad_lines = 0
        self.first_bad_line = ""
        self.run_ahead: Callable[[list[Item]], list[Item]] | None = None
        """Set by the dispatch loop. While it waits for input, what needs no waiting is begun at receipt; the rest is
        given back. It saves a lone message a turn of the event loop (bench-core w1)."""
        self.receives = True  # cleared when the connection ends: what still comes is discarded
        self._dialect = dialect
        self._parse = parse if type(dialect).parse is Dialect.parse else dialect.parse
        self._admit = None if type(dialect).admit is Dialect.admit else dialect.admit
        self._follow = None if type(dialect).follow is Dialect.follow else dialect.follow
        self._asks_dialect = self._admit is not None or self._follow is not None
        self._cancel_methods = dialect.cancel_methods
        self._inbound = inbound
        self._transport = transport
        self._limits = limits
        self._loop = loop
        self._opening: list[NotificationFrame] | None = [] if dialect.opening_buffer else None
        self._put = put
        self._watchdog = watchdog
        self._fail = fail
        self._answers_unreadable = not transport.peer_is_child
        self._chunks: deque[_Chunk] = deque()
        self._current: _Chunk | None = None
        self._count = 0
        self._bytes = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None

    def receive(self, lines: list[Line]) -> None:
        """Take what the transport delivered. An error of the dialect ends the connection, by its name: a reader that
        died of it would leave a connection that is open and hears nothing.
        """
        if not self.receives:
            return
        try:
            if self.tap is not None:
                for line in lines:
                    self.tap(line)
            items: list[Item] = []
            size = extra = 0
            now = monotonic()
            cancel_methods, inbound, parse = self._cancel_methods, self._inbound, self._parse
            # Whether the dialect has a say in every call.
            asks = (self._asks_dialect and not self._dialect.admits_all) or self._opening is not None
            for line in lines:
                size += len(line)
                frame = parse(line)
                # By exact type: `isinstance` costs five times as much when it says no to a Struct (bench-core w1).
                if type(frame) is NotificationFrame:
                    if asks or frame.method in cancel_methods:
                        self._take_call(frame, items, now)
                    else:
                        items.append(frame)
                elif type(frame) is ResponseFrame:
                    items.append(frame)
                elif type(frame) is RequestFrame:
                    if asks:
                        self._take_call(frame, items, now)
                    elif (request := inbound.register(frame, now)) is not None:
                        items.append(request)
                elif type(frame) is BatchFrame:
                    items.append(self._open_batch(frame, line, now))
                    extra += len(frame.entries) - 1
                elif not _is_blank(line):  # blank lines are ignored (PY-53)
                    items.append(frame)
            if items and self._waiter is not None and self.run_ahead is not None:
                items = self.run_ahead(items)
            if items:
                self._append(items, len(items) + extra, size, now)
        except Exception as error:
            self._fail(error)

    def end(self) -> None:
        """Put EOF behind everything received."""
        if self.receives:
            self._append([EndOfInput()], 1, 0, monotonic())

    def next_items(self) -> list[Item] | None:
        """The next items to dispatch; None when there are none. What was taken before counts as done."""
        done = self._current
        if done is not None:
            self._count -= done.frames
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
        self._current = None
        self._count = self._bytes = 0

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

    def _append(self, items: list[Item], count: int, size: int, now: float) -> None:
        self._chunks.append(_Chunk(items, count, size, now))
        if not self._watchdog.armed:
            self._watchdog.arm()
        self._count += count
        self._bytes += size
        if not self._paused and (self._bytes > self._limits.inbox_bytes or self._count > self._limits.inbox_frames):
            self._paused = True
            self._transport.pause_reading()
        self.wake()

    def _take_call(
        self, frame: RequestFrame | NotificationFrame, taken: list[Any], now: float, batch: BatchReply | None = None
    ) -> None:
        """Append to `taken` what is to be dispatched of a call: nothing, itself, or what was held back until it came.

        The one place where calls are registered, cancels applied and the dialect asked, for a line, a member of a
        batch and a notification before the first request alike; `_receive` only leaves out what cannot matter.
        """
        admit = self._admit
        if isinstance(frame, RequestFrame):
            request = self._inbound.register(frame, now, batch)
            if request is None:
                return
            refusal = None if admit is None else admit(frame)
            if refusal is not None:
                if self._dialect.answers_refused:
                    request.fail(refusal)
                else:
                    logger.warning("dropped %s (id %r): %s", frame.method, frame.id, refusal)
                    request.end_silently()
                return
            watch = None if self._follow is None else self._follow(frame)
            if watch is not None:
                self._inbound.follow(request, watch)
            held, self._opening = self._opening, None
            taken += [earlier for earlier in held or () if admit is None or admit(earlier) is None]
            taken.append(request)
        elif frame.method in self._cancel_methods and (instead := self._cancel(frame)) is not frame:
            taken += [] if instead is None else [instead]
        elif self._opening is not None:
            self._hold_back(frame, self._opening)
        elif admit is None or admit(frame) is None:
            taken.append(frame)

    def _cancel(self, frame: NotificationFrame) -> NotificationFrame | ResponseFrame | None:
        """Apply a cancel at receipt and return what handlers see: the cancel, the end of a request of ours that it is
        in truth, or nothing of one that the dialect does not heed (CA-07).
        """
        notice = self._dialect.parse_cancel(frame)
        if notice is None:
            logger.warning("dropped a malformed %s, or one that is not allowed here", frame.method)
        elif not isinstance(notice, ResponseFrame):
            self._inbound.cancel(notice)
            return frame
        return notice

    def _hold_back(self, frame: NotificationFrame, opening: list[NotificationFrame]) -> None:
        """Keep a notification that came before the first request; what is over the dialect's buffer is dropped."""
        if len(opening) < self._dialect.opening_buffer:
            opening.append(frame)
        else:
            logger.warning("dropped %s: too many notifications before the first request", frame.method)

    def _open_batch(self, frame: BatchFrame, line: Line, now: float) -> InboundBatch | MalformedFrame:
        if not self._dialect.accepts_batches:
            assert not isinstance(line, OversizedLine), "an over-long line is never parsed into a batch"
            return malformed_from_json(line, "batches are not supported")
        reply = BatchReply(self._put, self._limits.line_out_bytes)
        members: list[InboundRequest | NotificationFrame | ResponseFrame | MalformedFrame] = []
        for entry in frame.entries:
            if isinstance(entry, RequestFrame | NotificationFrame):
                self._take_call(entry, members, now, reply)
            elif isinstance(entry, MalformedFrame):
                if self.deserves_answer(entry):
                    reply.fill(reply.new_slot(), encode_error(entry.answer_id, entry.error))  # in source order (BA-03)
                if entry.reply_id is UNSET:
                    self.count_bad(entry)  # here, since a line holds thousands and each is much larger than its text
                else:
                    members.append(entry)
            else:
                members.append(entry)
        return InboundBatch(members, reply)

    def count_bad(self, frame: MalformedFrame) -> None:
        """Count and log a line, or a member of a batch, that is no message."""
        self.bad_lines += 1
        self.first_bad_line = self.first_bad_line or frame.excerpt()
        logger.warning("unreadable line (%s): %s", frame.error.data.get("error", ""), frame.excerpt())

    def deserves_answer(self, frame: MalformedFrame) -> bool:
        """Whether its sender is told: never for an answer, by a spawner only for what is plainly a request (DEC-23)."""
        if frame.is_reply or not self._dialect.answers_refused:
            return False
        return self._answers_unreadable or frame.is_request


def _is_blank(line: Line) -> bool:
    return not isinstance(line, OversizedLine) and not line.strip()
