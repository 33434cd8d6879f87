"""The table of the peer's requests in flight: registered when they are read, gone when they are answered.

The reader registers and cancels here, synchronously, so that a cancel is never later than the work it stops.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

from msgspec import UNSET

from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.runtime.batch import BatchReply
from acprt.runtime.dialect import CancelGroup, CancelNotice, Dialect
from acprt.runtime.outbox import Outbox
from acprt.runtime.responder import ANSWERED, QUEUED, InboundRequest
from acprt.wire.frames import NO_PARAMS, RequestFrame, ResponseFrame, answer_of, encode, encode_error
from acprt.wire.lines import OutLine
from acprt.wire.payloads import line_too_long

__all__ = ["InboundTable"]

logger = logging.getLogger("acprt.dispatch")

_SHOWN = 200  # characters of a method in an error that replaces an answer: the method may be why it is too long
_UNWRITTEN_KEPT = 1024  # answers that a late cancel may still find in the outbox; past it the oldest stays sent

Watch = Callable[[ResponseFrame | None], ResponseFrame | None]


class InboundTable:
    """The peer's requests without an answer yet. One per connection."""

    def __init__(
        self,
        dialect: Dialect,
        outbox: Outbox,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        spawn: Callable[[Any], None],
    ) -> None:
        self.thread_id = threading.get_ident()
        self._dialect = dialect
        self._key = None if type(dialect).key is Dialect.key else dialect.key
        self._outbox = outbox
        self._put = outbox.put
        self._loop = loop
        self.line_out_bytes = limits.line_out_bytes
        self._limit = limits.in_flight_requests
        self._spawn = spawn
        self._withdraws = dialect.withdraws_queued
        self._grouped_methods = dialect.grouped_methods
        self._ungrouped: dict[InboundRequest, None] = {}  # of these methods, and the dialect was not asked yet
        self._groups: dict[Hashable, dict[InboundRequest, None]] = {}
        self._group_of: dict[InboundRequest, Hashable] = {}
        self._followed: dict[InboundRequest, Watch] = {}  # by the dialect
        self._looks_at_answers = self._withdraws or type(dialect).follow is not Dialect.follow
        self._newest: dict[Hashable, InboundRequest] = {}
        self._shadowed: set[InboundRequest] = set()  # older requests whose id the peer used again in flight (CA-12)
        self.outlived: set[InboundRequest] = set()  # answered while the task of their `method` handler still runs
        self._unwritten: dict[Hashable, InboundRequest] = {}  # answered last, when the dialect withdraws what is queued
        self._batches: set[BatchReply] = set()  # whose arrays are not written yet
        self._when_empty: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._newest) + len(self._shadowed)

    def __iter__(self) -> Iterator[InboundRequest]:
        yield from list(self._shadowed)
        yield from list(self._newest.values())

    def register(self, frame: RequestFrame, now: float, batch: BatchReply | None = None) -> InboundRequest | None:
        """Enter a request that was read at `now`. None: refused and answered, since too many are in flight (DEC-12)."""
        request = InboundRequest(frame.id, frame.method, frame.params, self, now)
        if batch is not None:
            request.batch, request.slot = batch, batch.new_slot()
            batch.limit = self.line_out_bytes
            self._hold_batch(batch)
        newest = self._newest
        if len(newest) + len(self._shadowed) >= self._limit:
            request.fail(RpcError.internal_error(f"too many requests in flight (over {self._limit})"))
            return None
        key = frame.id if self._key is None else self._key(frame.id)
        if key in newest:
            logger.debug("the peer used id %r again while it is in flight", frame.id)
            self._shadowed.add(newest[key])
        newest[key] = request
        if self._grouped_methods and request.method in self._grouped_methods:
            self._ungrouped[request] = None
        return request

    def find(self, key: Hashable) -> InboundRequest | None:
        """The request that the peer means by an id, looked up as the dialect does."""
        return self._newest.get(key)

    def follow(self, request: InboundRequest, watch: Watch) -> None:
        """Call `watch` with the answer to `request` when there is one, and write what it returns in its place."""
        self._followed[request] = watch

    def of_group(self, group: Hashable) -> list[InboundRequest]:
        """The requests in flight of one group, as they came. Each is looked into once, however many groups are asked
        for: a storm of cancels must not cost cancels times requests.
        """
        ungrouped, self._ungrouped = self._ungrouped, {}
        for request in ungrouped:
            its_group = self._dialect.group(request.params)
            if its_group is not None:
                self._group_of[request] = its_group
                self._groups.setdefault(its_group, {})[request] = None
        return list(self._groups.get(group, ()))

    def cancel(self, notice: CancelNotice | CancelGroup) -> None:
        """The peer cancels: mark the request, stop its `method` task, end what has not begun (DEC-9, DEC-10)."""
        if isinstance(notice, CancelGroup):
            for request in self.of_group(notice.group):
                self._cancel(request, notice.answer)
            return
        named = self._newest.get(notice.key)
        if named is None:
            self._take_back(notice.key)
        else:
            self._cancel(named)

    def _cancel(self, request: InboundRequest, answer: Any = UNSET) -> None:
        if not self._dialect.may_cancel_incoming(request.method):
            return
        if answer is UNSET:
            answer = self._dialect.cancelled_answer(request.method)
        if answer is not UNSET:
            request.cancelled_answer = answer
        if request.is_cancelled:
            return
        logger.debug("the peer cancelled %s (id %r)", request.method, request.id)
        request.cancel()
        if self._withdraws:
            self._outbox.withdraw(request)
        for call in tuple(request.nested or ()):
            call.cancel()
        if request.state is QUEUED:
            self.end_cancelled(request)  # its handler never begins
        elif request.task is not None:
            request.task.cancel()

    def end_cancelled(self, request: InboundRequest) -> None:
        """End a cancelled request that produced no answer of its own."""
        if self._dialect.answers_cancelled:
            request.fail(RpcError.request_cancelled())
        else:
            request.end_silently()

    def finish(self, request: InboundRequest, line: OutLine | None) -> None:
        """A request has its answer, or ends without one: out of the table, and onto the wire unless its dialect keeps
        the answer back. Every answer passes here.
        """
        if line is not None and len(line) > self.line_out_bytes:
            line = self._too_long(request, len(line))
        request.state = ANSWERED
        request.params = NO_PARAMS  # a handle may be kept long after its answer; it must not keep the input
        if request.cancel_listeners is not None:  # writing to a Struct costs ten times a read (bench-core w2)
            request.cancel_listeners = None
        key = request.id if self._key is None else self._key(request.id)
        newest = self._newest.pop(key, None)
        if newest is not request:
            if newest is not None:
                self._newest[key] = newest
            self._shadowed.discard(request)
        if request.task is not None:
            self.outlived.add(request)
        if self._grouped_methods and request.method in self._grouped_methods:
            self._ungroup(request)
        if request.is_cancelled and not self._dialect.answers_cancelled:
            line = None
        if self._looks_at_answers:
            line = self._look_at_answer(key, request, line)
        if request.batch is not None:
            request.batch.fill(request.slot, None if line is None else bytes(line))
        elif line is not None:
            self._put(line, request)
        if self._when_empty and not self:
            waiters, self._when_empty = self._when_empty, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        if line is None:
            request.is_silent = True
        if request.hooks is not None:
            hooks, request.hooks = request.hooks, None
            self.run_hooks(request, hooks)

    def answer_rest(self) -> None:
        """The endpoint ends: whoever still waits is told, as the dialect wants it (DEC-25)."""
        for request in self:
            try:
                error = self._dialect.answer_on_shutdown(request.method)
                if request.is_cancelled:
                    self.end_cancelled(request)
                elif error is None:
                    request.end_silently()
                else:
                    request.fail(error)
            except Exception:  # out of a dialect: the others wait, too
                logger.exception("%s (id %r) could not be answered at the end", request.method, request.id)
        for batch in list(self._batches):
            batch.dispatched()

    async def empty(self) -> None:
        """Wait until every accepted request has its answer."""
        while self:
            waiter = self._loop.create_future()
            self._when_empty.append(waiter)
            await waiter

    def run_hooks(self, request: InboundRequest, hooks: list[Callable[[], Any]]) -> None:
        """Run what a handler wants done after its answer; nothing of it when there is none."""
        if request.is_silent:
            return
        for hook in hooks:
            if request.batch is None:
                self._run_hook(hook)
            else:  # the answer leaves with the array
                request.batch.when_written(partial(self._run_hook, hook))

    def call_on_loop(self, callback: Callable[[], None]) -> None:
        """From another thread: run `callback` on the loop; when that is closed there is nobody to tell."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            logger.debug("the loop is closed: a finalizer had nothing left to do")

    def _run_hook(self, hook: Callable[[], Any]) -> None:
        """What it returns to await is spawned."""
        try:
            outcome = hook()
        except Exception:
            logger.exception("a callback given to after_response failed")
            return
        if inspect.isawaitable(outcome):
            self._spawn(outcome)

    def _too_long(self, request: InboundRequest, size: int) -> bytes:
        limit = self.line_out_bytes
        method = request.method
        logger.error("the answer to %s (id %r) is %d bytes, over the limit of %d", method, request.id, size, limit)
        return encode_error(request.id, line_too_long(method[:_SHOWN], size, limit))

    def _ungroup(self, request: InboundRequest) -> None:
        self._ungrouped.pop(request, None)
        group = self._group_of.pop(request, None)
        if group is not None:
            members = self._groups[group]
            del members[request]
            if not members:
                del self._groups[group]

    def _hold_batch(self, batch: BatchReply) -> None:
        if batch not in self._batches:
            self._batches.add(batch)
            batch.when_written(lambda: self._batches.discard(batch))

    def _look_at_answer(self, key: Hashable, request: InboundRequest, line: OutLine | None) -> OutLine | None:
        """Keep hold of an answer that may be withdrawn; show one that is followed to the dialect. What is written."""
        if self._withdraws and line is not None and request.batch is None:
            self._unwritten[key] = request
            if len(self._unwritten) > _UNWRITTEN_KEPT:
                del self._unwritten[next(iter(self._unwritten))]
        watch = self._followed.pop(request, None) if self._followed else None
        if watch is not None:
            instead = watch(None if line is None else answer_of(request.id, bytes(line)))
            if instead is not None and line is not None:
                return encode(instead)
        return line

    def _take_back(self, key: Hashable) -> None:
        """A cancel for no request in flight: where the dialect withdraws, an answer not yet written is not written."""
        request = self._unwritten.pop(key, None)
        if request is not None and self._dialect.may_cancel_incoming(request.method):
            self._outbox.withdraw(request)
