"""Our own requests in flight: the state behind a `SentRequest`, the table by id, and the tombstones.

A call is settled once: by its response, or by a local end that has a reason. What waits for it learns from here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, final

import msgspec

from acprt.errors import INCOMING_TRANSPORT_CLOSED, EndFacts, RpcError
from acprt.runtime.responder import InboundRequest, current_request
from acprt.runtime.results import Err, Ok, Result
from acprt.wire.frames import ResponseFrame
from acprt.wire.payloads import Decoder, decode_result

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["CallTable", "Mapped", "OutgoingCall", "closed_error"]

logger = logging.getLogger("acprt.dispatch")

_SAME_TIME = 0.001  # seconds within which requests share a time of sending: one for each is as large as the handle (w6)

Callback = Callable[[Result[Any]], Awaitable[None]]
Follower = Callable[[ResponseFrame | RpcError], ResponseFrame | RpcError | None]


@final
class Mapped(NamedTuple):
    """How a result becomes a value that a `map` changes further."""

    decoder: Decoder | None
    fn: Callable[[Any], Any]


class OutgoingCall(msgspec.Struct, eq=False):
    """One request of ours, from `send_request` to its answer. A Struct for what making one costs (bench-core w2)."""

    id: int
    method: str
    decoder: Decoder | Mapped | None
    owner: InboundRequest | None  # the peer's request in whose service it was sent
    table: CallTable
    sent_at: float
    outcome: ResponseFrame | RpcError | None = None
    waiter: asyncio.Future[None] | None = None
    callback: Callback | None = None  # chosen before the response is routed: the barrier (OB-01)
    errors_to: Callable[[RpcError], None] | None = None  # who is told of a local failure, whatever else ends
    watched: list[InboundRequest] | None = None  # requests whose cancellation cancels it, once it is waited for
    cancel_sent: bool = False
    held: bool = False  # its response walks the handlers, or is parked: a dropped router is not final yet
    routers: int = 0  # handles through which handlers may deliver the response

    def settle(self, outcome: ResponseFrame | RpcError) -> bool:
        """The end of the call. False: it had one already. The caller runs the ordered callback, if there is one."""
        if self.outcome is not None:
            return False
        if self.table.followers:
            outcome = self.table.followed(self.id, outcome)
        self.outcome = outcome if type(outcome) is ResponseFrame else _fresh(outcome)
        if self.watched is not None:
            self._unwatch()
        if self.owner is not None:
            if self.owner.nested is not None:
                self.owner.nested.discard(self)
            if self.callback is None:
                self.owner = None  # a callback still works for that request
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return True

    def cancel(self, reason: str | None = None) -> None:
        """Ask the peer to stop, once; nothing after the response was routed (SR-18)."""
        if self.outcome is None and not self.cancel_sent:
            self.cancel_sent = True
            self.table.send_cancel(self, reason)

    def abandon(self, reason: str | None = None) -> None:
        """Nobody waits for the answer any more: cancel, and let a late answer be recognised."""
        self.cancel(reason)
        self.leave()

    def leave(self) -> None:
        """Nobody waits; the request itself runs on (detach)."""
        if self.watched is not None:
            self._unwatch()
        self.table.abandoned(self)

    def watch(self, request: InboundRequest) -> None:
        """Let a cancellation of a request of the peer cancel this one, while it is waited for (SR-20)."""
        if self.outcome is not None:
            return
        if self.watched is None:
            self.watched = [request]
        else:
            self.watched.append(request)
        if self.waiter is not None or self.callback is not None:
            request.on_cancel(self.cancel, self)

    def awaited(self) -> None:
        """Somebody waits from now on: heed what is watched, also what has fired already."""
        for request in self.watched or ():
            request.on_cancel(self.cancel, self)
            if self.outcome is not None:  # it had fired, and the dialect answers no cancelled request
                request.forget_listener(self)
                return

    def _unwatch(self) -> None:
        """The end, for whoever waited: a long request must not keep every short one that it once would have stopped."""
        watched, self.watched = self.watched, None
        for request in watched or ():
            request.forget_listener(self)

    def result(self) -> Any:
        """The settled value, decoded; raises the settled error. Decoding happens at the waiter (SR-02)."""
        outcome = self.outcome
        if type(outcome) is ResponseFrame and outcome.error is None:
            decoder = self.decoder
            if type(decoder) is Mapped:
                return decoder.fn(decode_result(decoder.decoder, outcome.result))
            return decode_result(decoder, outcome.result)
        raise self._error()

    def as_result(self) -> Result[Any]:
        """The settled outcome as a value. What a `map` makes of it is for whoever is told."""
        outcome = self.outcome
        if type(outcome) is not ResponseFrame or outcome.error is not None:
            return Err(self._error())
        try:
            decoder = self.decoder
            return Ok(decode_result(decoder.decoder if type(decoder) is Mapped else decoder, outcome.result))
        except RpcError as error:
            return Err(error.with_traceback(None))

    def _error(self) -> RpcError:
        outcome = self.outcome
        error = outcome.error if type(outcome) is ResponseFrame else outcome
        assert isinstance(error, RpcError), "asked for the result of a call that is not settled"
        return _fresh(error)


def _fresh(error: RpcError) -> RpcError:
    """The same error without a traceback. One that is kept must never be raised itself: its traceback holds the frames
    it went through, and those hold the call and the responder of whoever waited (DEC-14).
    """
    fresh = RpcError(error.code, error.message, error.data)
    fresh.__cause__ = error.__cause__
    return fresh


class CallTable:
    """Our requests by id: those awaited, and those abandoned whose answer may still come."""

    def __init__(
        self,
        cx: Connection,
        tombstone_limit: int,
        send_cancel: Callable[[OutgoingCall, str | None], None],
        run_late: Callable[[OutgoingCall], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.cx = cx
        self.loop = loop
        self.thread_id = threading.get_ident()
        self.send_cancel = send_cancel
        self.being_dispatched: OutgoingCall | None = None  # its response is being offered to handlers now
        self.followers: dict[int, Follower] = {}  # the dialect's, by the ids of calls that it follows
        self.late_responses = 0
        self.unmatched_responses = 0
        self._run_late = run_late
        self._tombstone_limit = tombstone_limit
        self._calls: dict[int, OutgoingCall] = {}
        self._tombstones: OrderedDict[int, OutgoingCall] = OrderedDict()
        self._retained: set[OutgoingCall] = set()  # a handler claimed the response and keeps its router
        self._last_id = 0
        self._sent_at = 0.0
        self._unmatched_logged_at = 0.0
        self._closed: Callable[[str], RpcError] | None = None

    def __iter__(self) -> Any:
        return iter(list(self._calls.values()))

    def new(self, method: str, decoder: Decoder | None, owner: InboundRequest | None, now: float) -> OutgoingCall:
        """Enter a call under the next id, counted up from 1 and never used again. A closed table settles it at once."""
        self._last_id = id = self._last_id + 1
        if now - self._sent_at > _SAME_TIME:
            self._sent_at = now
        call = OutgoingCall(id, method, decoder, owner, self, self._sent_at)
        if self._closed is not None:
            call.outcome = self._closed(method)
        else:
            self._calls[id] = call
        return call

    def take(self, id: Any) -> OutgoingCall | None:
        """The call that a response answers, out of the table; None for an unknown id (DL-04)."""
        if type(id) is int:
            call = self._calls.pop(id, None)
            if call is not None:
                return call
            call = self._tombstones.pop(id, None)
            if call is not None:
                if call.cancel_sent:  # else it was detached: its answer was always to be ignored
                    self.late_responses += 1
                    logger.debug("late answer to abandoned %s (id %d)", call.method, id)
                return call
        self.unmatched_responses += 1
        now = self.loop.time()
        if now - self._unmatched_logged_at >= 1.0 or self.unmatched_responses == 1:
            self._unmatched_logged_at = now
            logger.warning("a response to no request of ours: id %r (%d so far)", id, self.unmatched_responses)
        return None

    def followed(self, id: int, outcome: ResponseFrame | RpcError) -> ResponseFrame | RpcError:
        """The outcome as the dialect's follower wants it."""
        follower = self.followers.pop(id, None)
        return outcome if follower is None else follower(outcome) or outcome

    def put_back(self, call: OutgoingCall) -> None:
        """Undo `take`: the response waits its turn."""
        self._calls[call.id] = call

    def find(self, id: Any) -> OutgoingCall | None:
        """The pending call of that id; it stays in the table."""
        return self._calls.get(id) if type(id) is int else None

    def fail(self, call: OutgoingCall, error: RpcError) -> None:
        """Settle one call locally: there is no barrier, its ordered callback runs as a task (OB-09)."""
        self._calls.pop(call.id, None)
        if call.settle(error) and call.callback is not None:
            self.run_late(call)

    def abandoned(self, call: OutgoingCall) -> None:
        """Keep an abandoned call as a tombstone; past the limit the oldest is forgotten."""
        if self._calls.pop(call.id, None) is None:
            return
        self._tombstones[call.id] = call
        if len(self._tombstones) > self._tombstone_limit:
            id, _forgotten = self._tombstones.popitem(last=False)
            self.followers.pop(id, None)

    def close(self, error_for: Callable[[str], RpcError]) -> int:
        """From now on calls fail with `error_for(method)`: new ones at once, pending ones now (EO-02). How many did."""
        self._closed = error_for
        calls, self._calls = list(self._calls.values()), {}
        for id in self._tombstones:
            self.followers.pop(id, None)
        self._tombstones.clear()
        for call in calls:
            if call.settle(error_for(call.method)) and call.callback is not None:
                self.run_late(call)
        return len(calls)

    def end(self, error_for: Callable[[str], RpcError]) -> None:
        """The connection is over: a response that a handler still keeps to itself fails its waiter (RR-03)."""
        for call in list(self._retained):
            if call.outcome is None:
                self.route(call, error_for(call.method))
            elif call.callback is not None:  # it has an outcome, but the turn of its callback was cut short
                self.run_late(call)
        self._retained.clear()

    def refusal(self, method: str) -> RpcError | None:
        """What a new call would fail with; None while the table takes calls."""
        return None if self._closed is None else self._closed(method)

    def refuse_new(self, error_for: Callable[[str], RpcError]) -> None:
        """New calls fail at once; pending ones still wait for what the end of the connection brings."""
        self._closed = error_for

    def run_late(self, call: OutgoingCall) -> None:
        """Run a callback outside the response's own dispatch, or for a call that failed here: no barrier (OB-08).

        An error that is somebody else's answer needs no task, so it arrives even while the connection is torn down.
        """
        errors_to, call.errors_to = call.errors_to, None
        if errors_to is not None and isinstance(call.outcome, RpcError):
            call.callback = None
            errors_to(call.outcome)
        elif call.owner is None:
            self._run_late(call)
        else:
            token = current_request.set(call.owner)
            call.owner = None
            try:
                self._run_late(call)
            finally:
                current_request.reset(token)

    def route(self, call: OutgoingCall, outcome: ResponseFrame | RpcError) -> None:
        """A handler that kept the router delivers. Inside the response's own dispatch the loop runs the callback
        behind the barrier; later it runs as a task (OB-10).
        """
        self._retained.discard(call)
        if not call.settle(outcome):
            logger.debug("the response to %s (id %d) was already routed", call.method, call.id)
        elif call.callback is not None and self.being_dispatched is not call:
            self.run_late(call)

    def cut_short(self, call: OutgoingCall) -> None:
        """The dispatch of its response was cancelled, for the connection ends: whoever waits is told at `end`."""
        if call.outcome is None or call.callback is not None:
            call.held = True  # until then no dropped router is final
            self._retained.add(call)

    def is_cut_short(self, call: OutgoingCall) -> bool:
        """Whether `end` will tell who waits for it."""
        return call in self._retained

    def release(self, call: OutgoingCall, *, parked: bool = False) -> None:
        """The walk ended with a claim, or parked the response; a claimed one that nobody can route any more is lost."""
        call.held = parked
        if call.outcome is None and call.routers:
            self._retained.add(call)
        self._lose_unroutable(call)

    def router_dropped(self, call: OutgoingCall) -> None:
        """A handler let go of a router; the last one takes the response with it."""
        call.routers -= 1
        self._lose_unroutable(call)

    def _lose_unroutable(self, call: OutgoingCall) -> None:
        """The handler that claimed the response dropped it: the waiter is told (RR-03)."""
        if call.outcome is None and not call.routers and not call.held:
            logger.warning("the response to %s (id %d) was claimed by a handler and dropped", call.method, call.id)
            text = f"response to `{call.method}` never received: its handler dropped it"
            self.route(call, RpcError.internal_error(text))

    def call_on_loop(self, callback: Callable[[], None]) -> None:
        """From another thread: run `callback` on the loop; when that is closed there is nobody to tell."""
        try:
            self.loop.call_soon_threadsafe(callback)
        except RuntimeError:
            logger.debug("the loop is closed: a finalizer had nothing left to do")


def closed_error(method: str, facts: dict[str, Any]) -> RpcError:
    """What a request pending at clean EOF gets (EO-03); `facts` tell how a child ended."""
    data = {"reason": INCOMING_TRANSPORT_CLOSED, "method": method, **facts}
    return RpcError(-32603, "Incoming transport closed", EndFacts(data))
