"""The peer's requests: their one answer, their cancellation, and the handles that handlers hold.

`InboundRequest` is the state, made by the reader when the frame arrives; `Responder` is the handle. The first answer
wins, and a request whose last handle is dropped unanswered is answered -32603 (DEC-14).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import msgspec
from msgspec import UNSET, Raw

from acprt.errors import RpcError, for_another_peer
from acprt.runtime.batch import BatchReply
from acprt.runtime.results import Err, Ok, Result
from acprt.wire.frames import encode_error, encode_response
from acprt.wire.ids import RequestId
from acprt.wire.payloads import UNENCODABLE, encoding_error

if TYPE_CHECKING:
    from acprt.runtime.inbound import InboundTable

__all__ = [
    "ANSWERED",
    "QUEUED",
    "RUNNING",
    "InboundRequest",
    "RequestCancellation",
    "RequestState",
    "Responder",
    "current_request",
]

logger = logging.getLogger("acprt.dispatch")

T = TypeVar("T")

current_request: ContextVar[InboundRequest | None] = ContextVar("acprt_current_request", default=None)
"""The peer's request that the running code serves; `send_*` and `after_response` read it (DEC-13)."""


class RequestState(Enum):
    """Where a request of the peer is on its way. It moves down this list; only a parked one is queued again."""

    QUEUED = auto()  # read, or parked: no handler has it, nor did a `method` handler's task take its first step
    RUNNING = auto()  # offered to a handler
    ANSWERED = auto()  # its answer is queued, or its dialect wants none


QUEUED, RUNNING, ANSWERED = RequestState  # an attribute of an Enum class costs 60 ns on 3.11 (bench-core w2)


@final
class InboundRequest(msgspec.Struct, eq=False):
    """One request of the peer, from the reader to its answer. Handlers see it through a `Responder`.

    A Struct, since making one costs a third of what a Python `__init__` does (bench-core w2).
    """

    id: RequestId
    method: str
    params: Raw
    table: InboundTable
    received_at: float
    state: RequestState = QUEUED
    is_cancelled: bool = False  # the peer asked
    cancelled_answer: Any = UNSET  # what it gets in the place of any error, if its dialect says so
    task: asyncio.Task[None] | None = None
    batch: BatchReply | None = None
    slot: int = 0
    nested: set[Any] | None = None  # requests sent while serving this one, when the dialect cascades
    _handles: int = 0
    _held: bool = False  # a handler walk is under way, or it is parked: a drop is not final yet (BA-15)
    is_silent: bool = False  # it ended without an answer
    cancel_listeners: dict[object, Callable[[], object]] | None = None  # by the key to forget them by
    hooks: list[Callable[[], Any]] | None = None  # to be run after its answer

    def answer(self, result: Any) -> None:
        """Queue the successful answer, unless there is one already."""
        if self.state is ANSWERED:
            self._log_duplicate()
            return
        if result is None and self.cancelled_answer is not UNSET:
            result = self.cancelled_answer  # of a handler that swallowed its cancel and had nothing to return
        try:
            line = encode_response(self.id, result)
        except UNENCODABLE as error:
            logger.error("the answer to %s (id %r) cannot be written as JSON: %s", self.method, self.id, error)
            if result is self.cancelled_answer:
                self.cancelled_answer = UNSET  # nor can it be written in the place of this error
            self.fail(encoding_error(error))
        else:
            self.table.finish(self, line)

    def fail(self, error: RpcError) -> None:
        """Queue an error answer, unless there is an answer already. That a connection ended, this one or another that
        the handler uses, is told in neutral words (SR-11).
        """
        if self.state is ANSWERED:
            self._log_duplicate()
            return
        if self.cancelled_answer is not UNSET:
            self.answer(self.cancelled_answer)
            return
        try:
            line = encode_error(self.id, for_another_peer(error))
        except UNENCODABLE as unencodable:
            logger.error("the error for %s (id %r) cannot be written as JSON: %s", self.method, self.id, unencodable)
            line = encode_error(self.id, RpcError.internal_error())  # OU-13
        self.table.finish(self, line)

    def end_silently(self) -> None:
        """End without an answer: the dialect wants none."""
        if self.state is not ANSWERED:
            self.table.finish(self, None)

    def cancel(self) -> None:
        """Set the marker and wake what waits for it. The caller decides what else a cancel means."""
        self.is_cancelled = True
        listeners, self.cancel_listeners = self.cancel_listeners, None
        for listener in listeners.values() if listeners else ():
            try:
                listener()
            except Exception:  # the reader is at work: what else it read must not be lost with one listener
                logger.exception("a cancellation listener of %s (id %r) failed", self.method, self.id)

    def on_cancel(self, listener: Callable[[], object], key: object) -> None:
        """Call `listener` when the peer cancels; at once if it has. `key` is what to forget it by."""
        if self.is_cancelled:
            listener()
        elif self.state is ANSWERED:
            return  # a cancel that comes now finds nothing to stop
        elif self.cancel_listeners is None:
            self.cancel_listeners = {key: listener}
        else:
            self.cancel_listeners[key] = listener

    def forget_listener(self, key: object) -> None:
        """Undo `on_cancel`."""
        if self.cancel_listeners:
            self.cancel_listeners.pop(key, None)

    def after_response(self, callback: Callable[[], Any]) -> None:
        """Call `callback` once the answer is queued; at once if it is; never when there will be none."""
        if self.state is ANSWERED:
            self.table.run_hooks(self, [callback])
        elif self.hooks is None:
            self.hooks = [callback]
        else:
            self.hooks.append(callback)

    def add_nested(self, call: Any) -> None:
        """A request of ours was sent in the service of this one."""
        if self.nested is None:
            self.nested = set()
        self.nested.add(call)

    def hold(self) -> None:
        """A handler walk begins: dropping the responder is provisional until it ends."""
        self._held = True
        if self.state is QUEUED:
            self.state = RUNNING

    def release(self, *, parked: bool = False) -> None:
        """The walk claimed the request, or it was parked; a claimed one that nobody can answer any more is failed."""
        self._held = parked
        if self.state is ANSWERED:
            return
        if parked:
            self.state = QUEUED
        elif self._handles == 0:
            self.fail_dropped()

    def handle_dropped(self) -> None:
        """A responder was dropped; the last one takes the chance of an answer with it."""
        self._handles -= 1
        if self._handles == 0 and not self._held and self.state is not ANSWERED:
            self.fail_dropped()

    def fail_dropped(self) -> None:
        """Nobody can answer any more."""
        logger.warning("the handler of %s (id %r) dropped its responder: Internal error", self.method, self.id)
        self.fail(RpcError.internal_error(f"request handler dropped its responder for `{self.method}`"))

    def _log_duplicate(self) -> None:
        if not self.is_cancelled:  # an answer that a cancel has overtaken is nobody's mistake
            logger.warning("a second answer to %s (id %r) was ignored: the first one wins", self.method, self.id)


class Responder(Generic[T]):
    """The right to answer one request, once, now or later, from anywhere on the loop.

    The first answer wins; a later one is ignored with a warning. Dropping the last responder of an unanswered
    request answers it -32603.
    """

    __slots__ = ("__weakref__", "_request")

    def __init__(self, request: InboundRequest) -> None:
        self._request = request
        request._handles += 1

    @property
    def id(self) -> RequestId:
        """The request's id, as the peer wrote it."""
        return self._request.id

    @property
    def method(self) -> str:
        """The request's method."""
        return self._request.method

    @property
    def cancellation(self) -> RequestCancellation:
        """Whether the peer still wants the answer."""
        return RequestCancellation(self._request)

    def respond(self, value: T) -> None:
        """Answer with `value`: a Struct or any JSON value. Like the other answers, from any thread."""
        self._on_loop(self._request.answer, value)

    def respond_with_error(self, error: RpcError) -> None:
        """Answer with `error`, as it is. Only one that acprt made for the end of a connection goes in neutral words."""
        self._on_loop(self._request.fail, error)

    def respond_with_result(self, result: Result[T]) -> None:
        """Answer with an `Ok` value or an `Err` error."""
        match result:
            case Ok(value):
                self.respond(value)
            case Err(error):
                self.respond_with_error(error)
            case _:
                raise TypeError(f"respond_with_result takes acprt.Ok or acprt.Err, not {result!r}")

    def respond_with_internal_error(self, text: str) -> None:
        """Answer -32603 with `text` as its data."""
        self.respond_with_error(RpcError.internal_error(text))

    def _on_loop(self, answer: Callable[[Any], None], what: Any) -> None:
        table = self._request.table
        if table.thread_id == threading.get_ident():
            answer(what)
        else:  # by way of this handle, so that it is not dropped before its answer is there
            table.call_on_loop(partial(self._on_loop, answer, what))

    def __repr__(self) -> str:
        return f"<Responder {self.method} id={self.id!r} {self._request.state.name.lower()}>"

    def __del__(self) -> None:
        request = getattr(self, "_request", None)
        if request is None or request.state is ANSWERED:  # never completed its construction, or nothing is left to do
            return
        if request.table.thread_id == threading.get_ident():
            request.handle_dropped()
        else:  # a collector ran on another thread; the connection is not thread-safe (PY-03)
            request.table.call_on_loop(request.handle_dropped)


class RequestCancellation:
    """Whether the peer asked to cancel a request it sent. Markers of one request share their state."""

    __slots__ = ("_request",)

    def __init__(self, request: InboundRequest) -> None:
        self._request = request

    @property
    def is_cancelled(self) -> bool:
        """Whether the peer has asked."""
        return self._request.is_cancelled

    async def cancelled(self) -> None:
        """Wait until the peer asks; at once if it has. A request that is never cancelled waits until its task is."""
        if self._request.is_cancelled:
            return
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not asked.done():
                asked.set_result(None)

        self._request.on_cancel(wake, asked)
        try:
            await asked
        finally:
            self._request.forget_listener(asked)

    async def run_until_cancelled(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or RpcError -32800 when the peer cancels first.

        Work is cancelled and its clean-up awaited; when both are ready the result wins; work is never started for a
        request that is cancelled already (CA-03).
        """
        if self._request.is_cancelled:
            work.close()
            raise RpcError.request_cancelled()
        task = asyncio.ensure_future(work)
        stopped: list[bool] = []
        stop = partial(_stop, task, stopped)
        self._request.on_cancel(stop, stop)
        try:
            return await task
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if stopped and own is not None and not own.cancelling():
                raise RpcError.request_cancelled() from None
            raise
        finally:
            self._request.forget_listener(stop)
            try:
                if not task.done():
                    task.cancel()
                    await asyncio.wait([task])
            finally:
                del task, stop  # its error holds this frame: whoever catches it must not hold the task in turn (DEC-14)

    def on_cancel(self, listener: Callable[[], object]) -> None:
        """Call `listener()` once when the peer asks, on the loop; at once if it has. It must be quick."""
        self._request.on_cancel(listener, object())

    def __repr__(self) -> str:
        return f"<RequestCancellation of {self._request.method} id={self._request.id!r} cancelled={self.is_cancelled}>"


def _stop(task: asyncio.Future[Any], stopped: list[bool]) -> None:
    stopped.append(task.cancel())
