"""`Connection`: the user's handle on one open connection, called `cx`.

It sends, spawns, registers dynamic handlers and tells state. How frames are read, dispatched and ended is the business
of the rooms it joins together; it belongs to one event loop and is not thread-safe.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import copy_context
from functools import partial
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec import Raw, Struct

from acprt.errors import DispatchLoopBlocked, RpcError, mask_secrets
from acprt.limits import Limits
from acprt.runtime.calls import CallTable, OutgoingCall
from acprt.runtime.dialect import Dialect
from acprt.runtime.dispatch import DispatchLoop
from acprt.runtime.dynamic import DynamicHandlers, HandlerGuard
from acprt.runtime.ends import CloseCallback, Ends
from acprt.runtime.handlers import Chains
from acprt.runtime.inbound import InboundTable
from acprt.runtime.inbox import Inbox
from acprt.runtime.live import opened
from acprt.runtime.messages import Notification, Request, Shape, shape_of
from acprt.runtime.methods import MethodTasks
from acprt.runtime.outbox import Outbox
from acprt.runtime.responder import InboundRequest, current_request
from acprt.runtime.sent import SentRequest
from acprt.runtime.sink import TransportSink
from acprt.runtime.status import ConnectionStatus, Counters, InFlight, Pending, Queue, plain_id
from acprt.runtime.tasks import SpawnedTasks
from acprt.runtime.watchdog import Watchdog
from acprt.trace import Tap, TraceSink
from acprt.transports.base import HasChild, Transport
from acprt.wire.frames import encode_notification, encode_request, fill_notification, fill_request
from acprt.wire.lines import OutLine
from acprt.wire.payloads import UNENCODABLE, decoder_for, encoding_error, line_too_long

if TYPE_CHECKING:
    from acprt.runtime.endpoint import Endpoint

__all__ = ["Connection"]

R = TypeVar("R")

_SCALARS = (str, bytes, bytearray, int, float, bool)
_STDERR_SHOWN = 500  # characters of a child's last words in the text of a timeout


class Rooms(Struct):
    """The parts of one connection, joined."""

    transport: Transport
    dialect: Dialect
    outbox: Outbox
    calls: CallTable
    tasks: SpawnedTasks
    inbound: InboundTable
    inbox: Inbox
    dynamic: DynamicHandlers
    methods: MethodTasks
    watchdog: Watchdog


class Connection:
    """One open connection. Made by `Endpoint.connect`, `open` and `serve`; handlers get it as `cx`."""

    def __init__(
        self, endpoint: Endpoint, transport: Transport, chains: Chains, limits: Limits, dialect: Dialect
    ) -> None:
        loop = asyncio.get_running_loop()
        self.name = endpoint.name
        """The endpoint's name."""
        self.peer: Any = None
        """What is known of the peer; wings set it (a negotiated version, capabilities)."""
        self.attachments: dict[object, Any] = {}
        """What wings keep for as long as the connection lives, each under a key of its own."""
        self.loop = loop
        self.thread_id = get_ident()
        self.limits = limits
        outbox = Outbox(transport, limits, dialect, loop, self.fail)
        calls = CallTable(self, limits.tombstones, self._send_cancel, self._run_late_callback, loop)
        tasks = SpawnedTasks(loop, self.fail)
        inbound = InboundTable(dialect, outbox, loop, limits, self._spawn_hook)
        watchdog = Watchdog(self, limits.slow_handler_seconds)
        inbox = Inbox(dialect, inbound, transport, limits, loop, outbox.put, watchdog, self.fail)
        dynamic = DynamicHandlers(limits.parked_messages, inbox.wake, self.call_on_loop)
        methods = MethodTasks(self, inbound, dialect, limits.sync_threads, loop)
        rooms = Rooms(transport, dialect, outbox, calls, tasks, inbound, inbox, dynamic, methods, watchdog)
        self.ends = Ends(self, rooms, endpoint.close_callbacks)
        self.dispatch = DispatchLoop(self, rooms, chains, on_end=self.ends.end_of_input)
        watchdog.watch(self.dispatch)
        self._rooms = rooms
        self._sink = TransportSink(self.ends, inbox, outbox)
        self._transport = transport
        self._dialect = dialect
        self._on_request_sent = (
            None if type(dialect).on_request_sent is Dialect.on_request_sent else dialect.on_request_sent
        )
        self._follow_sent = None if type(dialect).follow_sent is Dialect.follow_sent else dialect.follow_sent
        self._cascades = dialect.cascades_cancel
        self._owns_frames = dialect.gates_frames or dialect.withdraws_queued
        self._line_out_bytes = limits.line_out_bytes
        self._outbox = outbox
        self._calls = calls
        self._inbound = inbound
        self._inbox = inbox
        self._route_of = endpoint.dynamic_route
        self.dispatch_task: asyncio.Task[None] | None = None

    # -- sending ------------------------------------------------------------------------------------------------

    @overload
    def send_request(self, message: Request[R], /) -> SentRequest[R]: ...

    @overload
    def send_request(self, message: str, /, params: Any = None, *, reply_type: type[R]) -> SentRequest[R]: ...

    @overload  # a union, or another type form that is no class
    def send_request(self, message: str, /, params: Any = None, *, reply_type: Any = None) -> SentRequest[Any]: ...

    def send_request(
        self, message: Request[Any] | str, /, params: Any = None, *, reply_type: Any = None
    ) -> SentRequest[Any]:
        """Queue a request: a typed message, or a method name and params (object, array or None).

        Never waits, and raises only TypeError: whatever else goes wrong arrives through the handle (OU-02, DEC-20).
        `reply_type` is what an untyped request's result is decoded to; plain values without it.
        """
        if get_ident() != self.thread_id:
            raise RuntimeError("send_request() from another thread: use cx.loop.call_soon_threadsafe(…)")
        refusal: RpcError | None = None
        template: bytes | None = None
        payload: Any = params
        shape: Shape | None = None
        if type(message) is not str:  # `isinstance` that says no is slow (bench-core w1)
            try:
                shape = type(message).__acprt_shape__  # type: ignore[union-attr]  # half the price of a `getattr`
            except AttributeError:
                shape = None
        if shape is None and isinstance(message, str):
            method = message
            decoder = None if reply_type is None else decoder_for(reply_type)
            if isinstance(params, _SCALARS):
                refusal = RpcError.invalid_params("JSON-RPC params must be an object or array")  # OU-06
        else:
            shape = shape or shape_of(type(message))
            if not shape.is_request:
                raise TypeError(f"{type(message).__qualname__} is a notification: send it with send_notification")
            if params is not None or reply_type is not None:
                raise TypeError(f"{type(message).__qualname__} brings its own params and reply type")
            method, decoder, template, payload = shape.method, shape.decoder, shape.line, message
        owner = current_request.get()
        if owner is not None and owner.table is not self._inbound:
            owner = None  # a request of another connection's peer: the dialects may differ, and the ends do
        if owner is not None and owner.is_cancelled and refusal is None and self._dialect.gates_frames:
            refusal = RpcError.request_cancelled()  # nothing more may be said for a cancelled request
        now = monotonic()
        call = self._calls.new(method, decoder, owner, now)
        if call.outcome is None:
            if self._on_request_sent is not None and refusal is None:
                verdict = self._on_request_sent(call.id, method, payload)
                if isinstance(verdict, Raw):
                    payload = verdict
                else:
                    refusal = verdict
            if self._follow_sent is not None and refusal is None:
                follower = self._follow_sent(call.id, method)
                if follower is not None:
                    self._calls.followers[call.id] = follower
            if refusal is not None:
                self._calls.fail(call, refusal)
            else:
                try:
                    if template is None:
                        line = encode_request(call.id, method, payload)
                    else:
                        line = fill_request(template, call.id, payload)
                except UNENCODABLE as error:
                    self._calls.fail(call, encoding_error(error))  # OU-03
                else:
                    if len(line) > self._line_out_bytes:
                        self._calls.fail(call, line_too_long(method, len(line), self._line_out_bytes))
                    else:
                        if self._cascades and call.owner is not None:
                            call.owner.add_nested(call)
                        self._outbox.put(line, call, now)
        return SentRequest(call)

    def send_notification(self, message: Notification | str, /, params: Any = None) -> None:
        """Queue a notification: a typed message, or a method name and params (object, array or None).

        Never waits; a producer of many waits in `drain()`. Raises RpcError when the connection is closed
        (`reason` `connection_closed`) or the message cannot be written as JSON; TypeError for scalar params.
        """
        shape: Shape | None = getattr(type(message), "__acprt_shape__", None)  # asked first: it is cheaper (w3)
        if shape is None and isinstance(message, str):
            method = message
            if isinstance(params, _SCALARS):
                raise TypeError(f"params of {method} must be an object or an array, not {type(params).__name__}")
        else:
            shape = shape or shape_of(type(message))
            if shape.is_request:
                raise TypeError(f"{type(message).__qualname__} is a request: send it with send_request")
            if params is not None:
                raise TypeError(f"{type(message).__qualname__} brings its own params")
            method = shape.method
        if self.ends.is_ending:
            raise self.ends.closed_error(method)
        owner = None
        if self._owns_frames:
            owner = current_request.get()
            if owner is not None and owner.table is not self._inbound:
                owner = None  # as above
            if owner is not None and owner.is_cancelled and self._dialect.gates_frames:
                return  # nothing more may be said for a cancelled request
        try:
            line = encode_notification(method, params) if shape is None else fill_notification(shape.line, message)
        except UNENCODABLE as error:
            raise encoding_error(error) from error
        if len(line) > self._line_out_bytes:
            raise line_too_long(method, len(line), self._line_out_bytes)
        if get_ident() == self.thread_id:
            self._outbox.put(line, owner)
        else:
            self.call_on_loop(partial(self._put_for, line, owner))

    async def drain(self) -> None:
        """Wait until less than `Limits.outbox_high_bytes` are unwritten. Not in the dispatch loop (DEC-18)."""
        self._refuse_in_dispatch_loop("drain()")
        await self._outbox.drained()
        if self._sink.holds_bytes:
            await asyncio.sleep(0)  # let the loop write them: a producer that is below the mark never waits

    # -- beside the loop ----------------------------------------------------------------------------------------

    def spawn(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `coro` beside the dispatch loop, until it ends or the connection does. Its failure ends the connection
        (SP-02). On a closed connection it is closed unstarted and RpcError is raised.
        """
        if get_ident() != self.thread_id:
            coro.close()
            raise RuntimeError("spawn() from another thread: use cx.loop.call_soon_threadsafe(cx.spawn, …)")
        if self.ends.is_ending:
            coro.close()
            raise self.ends.closed_error("spawn")
        return self._rooms.tasks.spawn(coro)

    def add_dynamic_handler(self, handler: Callable[..., Any], /) -> HandlerGuard:
        """Register a handler now, after those of the endpoint. What it takes follows from its annotation, as with
        `on_receive_request`, `on_receive_notification` and `on_receive_dispatch`. Parked messages are offered to it
        before the next frame. It stays until the returned guard is closed or dropped.
        """
        if self.ends.is_ending:
            raise self.ends.closed_error("add_dynamic_handler")
        return self._rooms.dynamic.add(self._route_of(handler, sys._getframe(1)))

    def after_response(self, callback: Callable[[], Any]) -> None:
        """Call `callback()` once the answer to the request being served is queued for the wire; what it returns to
        await is spawned. RuntimeError outside a request's handler.
        """
        request = current_request.get()
        if request is None:
            raise RuntimeError("after_response() belongs in the handler of a request: no request is being served here")
        request.after_response(callback)

    # -- state and end ------------------------------------------------------------------------------------------

    @property
    def dialect(self) -> Dialect:
        """The dialect object of this connection."""
        return self._dialect

    @property
    def transport(self) -> Transport:
        """What the connection was opened on."""
        return self._transport

    @property
    def is_incoming_closed(self) -> bool:
        """Whether the input has ended and the close callbacks are done (EO-13), or the connection ended otherwise."""
        return self.ends.is_incoming_closed

    async def incoming_closed(self) -> None:
        """Wait for that. Not in the dispatch loop (DEC-18)."""
        self._refuse_in_dispatch_loop("incoming_closed()")
        await self.ends.incoming_closed()

    def closed_error(self, method: str) -> RpcError | None:
        """Why a request for `method` would fail at once: the connection has ended, or is about to. None while requests
        can be answered. For who waits for something else than an answer, and would otherwise not learn of the end.
        """
        return self._calls.refusal(method)

    async def aclose(self) -> None:
        """End the connection: queued output leaves in bounded time, a child is reaped, pending requests fail.

        Any task, any order, idempotent. From a task of the connection itself it starts closing and returns (DEC-18).
        """
        await self.ends.aclose()

    def fail(self, cause: BaseException) -> None:
        """End the connection because of `cause`, which `connect` and `serve` raise. The first cause stands."""
        self.ends.fail(cause)

    def status(self) -> ConnectionStatus:
        """A snapshot that prints well: who waits for what, how full the queues are, whether the child lives."""
        now = monotonic()
        child = self._transport.child_status()
        return ConnectionStatus(
            name=self.name,
            state=self.ends.state.name.lower(),
            pending=[Pending(call.id, call.method, now - call.sent_at) for call in self._calls],
            in_flight=[InFlight(plain_id(r.id), r.method, now - r.received_at, r.is_cancelled) for r in self._inbound],
            inbox=Queue(self._inbox.count, self._inbox.size, self._inbox.oldest_age),
            outbox=Queue(self._outbox.count, self._outbox.size, self._outbox.oldest_age),
            child=child,
            counters=Counters(
                bad_lines=self._inbox.bad_lines,
                unmatched_responses=self._calls.unmatched_responses,
                late_responses=self._calls.late_responses,
                stderr_dropped=0 if child is None else child.stderr_dropped,
            ),
            running_handler=None if self.dispatch.running is None else self.dispatch.running_name,
        )

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.ends.state.name.lower()}>"

    # -- for the rooms of the runtime ---------------------------------------------------------------------------

    @property
    def inbound(self) -> InboundTable:
        """The peer's requests in flight."""
        return self._inbound

    @property
    def is_ending(self) -> bool:
        """Whether the connection is being torn down, by whoever."""
        return self.ends.is_ending

    @property
    def running_handler(self) -> str:
        """The name of the handler or callback that holds the dispatch loop."""
        return self.dispatch.running_name

    def start(self) -> None:
        """Open the transport and begin to dispatch. Raises what the transport raises, leaving nothing behind."""
        context = copy_context()
        context.run(current_request.set, None)  # opened inside a handler, it does not serve that handler's request
        self._dialect.connected(self)
        context.run(self._transport.open, self._sink, self.limits)
        self.dispatch_task = self.loop.create_task(
            self.ends.while_open(self.dispatch.run), name=f"acprt dispatch {self.name}", context=context
        )
        self.dispatch_task.add_done_callback(self.ends.dispatch_ended)
        opened(self)

    def hand_over(self, chains: Chains, close_callbacks: Sequence[CloseCallback]) -> None:
        """Let other handlers and close callbacks serve the rest of this connection, in the place of its endpoint's."""
        self.dispatch.use(chains)
        self.ends.close_callbacks = close_callbacks

    def tap(self, sinks: Sequence[TraceSink], process_sinks: Sequence[TraceSink] = ()) -> None:
        """Show every line of this connection to `sinks`, what becomes of a child to `process_sinks`. Before `start`."""
        tap = Tap(self.name, sinks, process_sinks=process_sinks, peer_is_child=self._transport.peer_is_child)
        if process_sinks and isinstance(self._transport, HasChild):
            self._transport.watch(tap)
        self._inbox.tap = tap.received
        self._outbox.tap = tap.sent

    def call_on_loop(self, callback: Callable[[], Any]) -> None:
        """From another thread: run `callback` on the loop."""
        self._calls.call_on_loop(callback)

    def describe_silence(self, call: OutgoingCall) -> str:
        """Why a request may have timed out, as far as can be seen from here."""
        text = f"no answer to {call.method} (id {call.id}) after {monotonic() - call.sent_at:.1f} s"
        if self._inbox.bad_lines:
            bad, first = self._inbox.bad_lines, self._inbox.first_bad_line
            text += f"; {bad} line{'s' if bad > 1 else ''} of the peer were no JSON-RPC, the first: {first!r}"
        child = self._transport.child_status()
        if child is not None:
            facts = self._transport.facts()
            state = "is running" if child.exit_status is None else f"ended with exit status {child.exit_status}"
            text += f"; the child (pid {child.pid}) {state}"
            if facts.get("stderr_tail"):
                said = mask_secrets(facts["stderr_tail"].rstrip())  # before it is cut: a cut could part name and secret
                text += f"; its stderr ends: {'…' if len(said) > _STDERR_SHOWN else ''}{said[-_STDERR_SHOWN:]}"
        if self.dispatch.running is not None:
            text += f"; the dispatch loop is held by {self.dispatch.running_name}"
        return text

    def _put_for(self, line: OutLine, owner: InboundRequest | None) -> None:
        """Queue what another thread sent; the request that it belongs to may have been cancelled on the way here."""
        if owner is None or not (owner.is_cancelled and self._dialect.gates_frames):
            self._outbox.put(line, owner)

    def _send_cancel(self, call: OutgoingCall, reason: str | None) -> None:
        """Send the dialect's cancel, or take the request back if it was not written yet and the dialect wants that."""
        dialect = self._dialect
        if not dialect.may_cancel_outgoing(call.method) or self._outbox.closed:
            return
        cancel = dialect.build_cancel(call.id, reason)
        if not (dialect.withdraws_queued and self._outbox.withdraw(call)) and cancel is not None:
            self._outbox.put(encode_notification(*cancel))
        if not dialect.answers_cancelled and self._calls.find(call.id) is not None:
            call.settle(RpcError.request_cancelled())  # nothing will come (DEC-11)
            call.leave()
            if call.callback is not None:
                self._run_late_callback(call)

    def _run_late_callback(self, call: OutgoingCall) -> None:
        callback, call.callback = call.callback, None
        call.errors_to = None  # a Forwarding and its call hold each other
        if callback is not None and not self._rooms.tasks.closed:
            self._rooms.tasks.spawn(callback(call.as_result()))

    def _spawn_hook(self, work: Awaitable[Any]) -> None:
        if not self._rooms.tasks.closed:
            self._rooms.tasks.spawn(work)
        elif isinstance(work, asyncio.Future):
            work.cancel()
        elif inspect.iscoroutine(work):  # any other awaitable has not begun
            work.close()

    def _refuse_in_dispatch_loop(self, what: str) -> None:
        if asyncio.current_task() is self.dispatch_task:
            raise DispatchLoopBlocked(
                f"{what} inside the dispatch loop, in {self.running_handler}: it would wait for itself. "
                "Move the wait into cx.spawn(…) or a `method` handler"
            )
