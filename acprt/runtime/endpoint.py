"""`Endpoint`: collects handlers, and opens connections that run them.

It holds no connection state, so one endpoint may serve many connections. Given as a transport, it is joined in
process to the endpoint that connects to it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType, UnionType
from typing import Any, TypeVar, get_args, get_origin, overload

from acprt.limits import DEFAULT_LIMITS, Limits
from acprt.runtime.connection import Connection
from acprt.runtime.dialect import Dialect
from acprt.runtime.ends import CloseCallback
from acprt.runtime.handlers import Chains, Route, RouteKind
from acprt.runtime.messages import Notification, Request
from acprt.runtime.routing import Dispatch
from acprt.runtime.signatures import (
    Taken,
    check_parameters,
    first_annotation,
    is_notification_type,
    is_request_type,
    taken_messages,
)
from acprt.trace import TraceSink, sink_from_environment, wants_process_events
from acprt.transports.base import Transport

__all__ = ["Endpoint"]

logger = logging.getLogger("acprt.dispatch")

F = TypeVar("F", bound=Callable[..., Any])
Takes = type | str | UnionType

_Prepared = tuple[Chains, Dialect]
"""What one connection needs of its endpoint, made before anything is opened, so that mistakes appear at once."""


class Endpoint:
    """One side of a conversation: handlers, close callbacks and background work, under a name used in logs."""

    def __init__(self, name: str = "endpoint", *, limits: Limits | None = None, dialect: Dialect | None = None) -> None:
        self.name = name
        self.limits = limits or DEFAULT_LIMITS
        self.dialect = dialect or Dialect()
        self._routes: list[Route] = []
        self._close_callbacks: list[CloseCallback] = []
        self._spawned: list[Callable[[Connection], Awaitable[None]]] = []
        self._trace_sinks: list[TraceSink] = []
        self._process_sinks: list[TraceSink] = []

    # -- handlers -----------------------------------------------------------------------------------------------

    @overload
    def method(self, *takes: Takes) -> Callable[[F], F]: ...

    @overload
    def method(self, handler: F, /) -> F: ...

    def method(self, *takes: Any) -> Any:
        """Register a request handler that answers with what it returns: `(request)` or `(request, cx)`.

        It runs in a task of its own, or on a worker thread if it is a plain `def`. A raised `RpcError` is the answer as
        it is, any other exception is logged and answered -32603; a cancel from the peer cancels the task (-32800).
        `@ep.method(Hello)` names the message, `@ep.method("raw/name")` takes plain params.
        """
        if _is_bare(takes):
            return self._add_method(takes[0], (), sys._getframe(1))
        scope = sys._getframe(1)
        return lambda handler: self._add_method(handler, takes, scope)

    @overload
    def on_receive_request(self, *takes: Takes) -> Callable[[F], F]: ...

    @overload
    def on_receive_request(self, handler: F, /) -> F: ...

    def on_receive_request(self, *takes: Any) -> Any:
        """Register an ordered request handler `(request, responder, cx)`: it runs in the dispatch loop and answers
        through the responder, now or later, from anywhere. Return None, or `Handled.no(…)` to pass the request on.
        """
        return self._ordered(RouteKind.REQUEST, takes, "on_receive_request", sys._getframe(1))

    @overload
    def on_receive_notification(self, *takes: Takes) -> Callable[[F], F]: ...

    @overload
    def on_receive_notification(self, handler: F, /) -> F: ...

    def on_receive_notification(self, *takes: Any) -> Any:
        """Register an ordered notification handler `(note)` or `(note, cx)`: it runs in the dispatch loop."""
        return self._ordered(RouteKind.NOTIFICATION, takes, "on_receive_notification", sys._getframe(1))

    def on_receive_dispatch(self, handler: F, /) -> F:
        """Register an ordered handler `(dispatch, cx)` that sees requests, notifications and responses.

        Annotated `Dispatch` (or not at all) it sees everything, untyped; `Dispatch[Hello | Progress]` only those.
        """
        self._routes.append(_dispatch_route(handler, sys._getframe(1)))
        return handler

    def on_close(self, callback: F, /) -> F:
        """Register `(cx)`: awaited once after clean EOF, in registration order; an error ends the connection."""
        check_parameters(callback, (("cx",),), "on_close")
        _require_async(callback, "on_close")
        self._close_callbacks.append(callback)
        return callback

    def with_spawned(self, work: F, /) -> F:
        """Register `(cx)`, run beside each connection from its start; an error ends the connection (SP-06)."""
        check_parameters(work, (("cx",),), "with_spawned")
        _require_async(work, "with_spawned")
        self._spawned.append(work)
        return work

    def include(self, other: Endpoint) -> Endpoint:
        """Append another endpoint's handlers, close callbacks and spawned work, as they are now (HC-13)."""
        self._routes += other._routes
        self._close_callbacks += other._close_callbacks
        self._spawned += other._spawned
        return self

    def trace(self, sink: TraceSink, *, process: bool = False) -> None:
        """Show `sink` every line of the connections opened from now on.

        `process`: also the stderr lines, the start and the exit of a child (`TraceEvent.kind`).
        """
        self._trace_sinks.append(sink)
        if process:
            self._process_sinks.append(sink)

    # -- connections --------------------------------------------------------------------------------------------

    async def open(self, transport: Transport | Endpoint) -> Connection:
        """Open a connection and return it; end it with `await cx.aclose()`, from any task.

        When the connection fails, whoever waits on it learns the cause; `aclose` does not raise (DEC-16).
        """
        return self.open_connection(transport)

    @asynccontextmanager
    async def connect(self, transport: Transport | Endpoint) -> AsyncIterator[Connection]:
        """Foreground mode: the block is the work, and leaving it ends the connection, after queued output has left.

        When the connection fails, the block is cancelled and the cause raised here; a clean EOF leaves it running.
        """
        cx = self.open_connection(transport)
        ends = cx.ends
        ends.attach_body(asyncio.current_task())
        try:
            yield cx
        except BaseException as error:
            await ends.leave_body(error)
            raise
        await ends.leave_body(None)

    async def serve(self, transport: Transport | Endpoint) -> None:
        """Reactive mode: serve until EOF, let accepted requests finish (at most `Limits.drain_seconds`), and return
        when everything is written. Raises what the connection failed of, a vanished reader included (LC-06).
        """
        await self._serve(transport)

    async def _serve(self, transport: Transport | Endpoint, *, prepared: _Prepared | None = None) -> None:
        cx = self.open_connection(transport, prepared=prepared)
        try:
            await cx.ends.finished(cx.limits.drain_seconds)
        finally:
            await cx.aclose()
        error = cx.ends.cause or cx.ends.last_error
        if error is not None:
            raise error

    # -- for the runtime ----------------------------------------------------------------------------------------

    @property
    def close_callbacks(self) -> tuple[CloseCallback, ...]:
        """The close callbacks, in registration order."""
        return tuple(self._close_callbacks)

    def first_routes(self) -> Sequence[Route]:
        """What a role sees before its user does; it must pass on what it sees."""
        return ()

    def last_routes(self) -> Sequence[Route]:
        """What a role takes of its own; it is walked behind all that its user registered."""
        return ()

    def chains(self) -> Chains:
        """The handlers as a connection walks them. Raises TypeError for a message that cannot be decoded (DEC-5)."""
        return Chains([*self.first_routes(), *self._routes, *self.last_routes()])

    @staticmethod
    def dynamic_route(handler: Callable[..., Any], scope: FrameType) -> Route:
        """The route of a handler given to `cx.add_dynamic_handler`; its annotation tells its kind."""
        annotation = first_annotation(handler, scope)
        members = get_args(annotation) if get_origin(annotation) not in (None, Dispatch) else (annotation,)
        if any(is_request_type(member) for member in members):
            return _ordered_route(RouteKind.REQUEST, handler, (), "add_dynamic_handler", scope)
        if any(is_notification_type(member) for member in members):
            return _ordered_route(RouteKind.NOTIFICATION, handler, (), "add_dynamic_handler", scope)
        return _dispatch_route(handler, scope)

    def open_connection(
        self, transport: Transport | Endpoint, limits: Limits | None = None, *, prepared: _Prepared | None = None
    ) -> Connection:
        """What `open`, `connect`, `serve` and `acprt.run` begin with. On the running loop.

        An endpoint that is joined is prepared here too: what keeps it from being served is raised to who connects.
        """
        chains, dialect = prepared or self._prepared()
        if isinstance(transport, Endpoint):
            from acprt.runtime.joined import EndpointTransport  # for those who join two in process (bench-core w5)

            serve = partial(transport._serve, prepared=transport._prepared())
            transport = EndpointTransport(serve, transport.name)
        elif isinstance(transport, type) or not hasattr(transport, "peer_is_child"):
            raise TypeError(
                f'{transport!r} is no transport: give acprt.AgentProcess(…), acprt.AgentProcess.parse("command"), '
                "acprt.stdio(), acprt.streams(reader, writer), an end of acprt.memory_pair(), or an Endpoint"
            )
        cx = Connection(self, transport, chains, limits or self.limits, dialect)
        sinks, process_sinks = list(self._trace_sinks), list(self._process_sinks)
        from_environment = sink_from_environment()
        if from_environment is not None:
            sinks.append(from_environment)
            if wants_process_events():
                process_sinks.append(from_environment)
        if sinks:
            cx.tap(sinks, process_sinks)
        cx.start()
        self.start_spawned(cx)
        return cx

    def _prepared(self) -> _Prepared:
        return self.chains(), self.dialect.for_connection()

    def start_spawned(self, cx: Connection) -> None:
        """Run the work given to `with_spawned` beside `cx`."""
        for work in self._spawned:
            cx.spawn(_run(work, cx))

    def _add_method(self, handler: F, takes: tuple[Any, ...], scope: FrameType) -> F:
        count = check_parameters(handler, (("request",), ("request", "cx")), "method")
        taken = _taken(takes, Request, handler, "method", scope)
        is_sync = not _is_async(handler)
        self._routes.append(Route(RouteKind.METHOD, handler, taken, takes_cx=count == 2, is_sync=is_sync))
        return handler

    def _ordered(self, kind: RouteKind, takes: tuple[Any, ...], decorator: str, scope: FrameType) -> Any:
        def add(handler: F, takes: tuple[Any, ...] = takes) -> F:
            self._routes.append(_ordered_route(kind, handler, takes, decorator, scope))
            return handler

        return add(takes[0], ()) if _is_bare(takes) else add


_SHAPES: dict[RouteKind, tuple[tuple[str, ...], ...]] = {
    RouteKind.REQUEST: (("request", "responder"), ("request", "responder", "cx")),
    RouteKind.NOTIFICATION: (("note",), ("note", "cx")),
}


def _ordered_route(
    kind: RouteKind, handler: Callable[..., Any], takes: tuple[Any, ...], decorator: str, scope: FrameType
) -> Route:
    shapes = _SHAPES[kind]
    count = check_parameters(handler, shapes, decorator)
    _require_async(handler, decorator)
    base = Request if kind is RouteKind.REQUEST else Notification
    taken = _taken(takes, base, handler, decorator, scope)
    return Route(kind, handler, taken, takes_cx=count == max(map(len, shapes)))


def _dispatch_route(handler: Callable[..., Any], scope: FrameType) -> Route:
    decorator = "on_receive_dispatch"
    count = check_parameters(handler, (("dispatch",), ("dispatch", "cx")), decorator)
    _require_async(handler, decorator)
    annotation = first_annotation(handler, scope)
    taken: Taken | None = None
    if get_origin(annotation) is Dispatch and get_args(annotation) != (Any,):
        taken = taken_messages(get_args(annotation)[0], (Request, Notification), handler, decorator)
    elif annotation not in (inspect.Parameter.empty, Dispatch, Dispatch[Any], Any):
        raise TypeError(
            f"@{decorator}: annotate the first parameter of {handler!r} with acprt.Dispatch or acprt.Dispatch[…], "
            f"not {annotation!r}"
        )
    return Route(RouteKind.DISPATCH, handler, taken, takes_cx=count == 2)


def _taken(takes: tuple[Any, ...], base: type, handler: Callable[..., Any], decorator: str, scope: FrameType) -> Taken:
    if not takes:
        return taken_messages(first_annotation(handler, scope), base, handler, decorator)
    taken: Taken = {}
    for each in takes:
        taken |= {each: None} if isinstance(each, str) else taken_messages(each, base, handler, decorator)
    return taken


def _is_bare(takes: tuple[Any, ...]) -> bool:
    """Whether a decorator was used without parentheses, so that what it got is the handler."""
    return len(takes) == 1 and not isinstance(takes[0], str | type) and callable(takes[0])


def _is_async(handler: Callable[..., Any]) -> bool:
    while isinstance(handler, partial):
        handler = handler.func
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


def _require_async(handler: Callable[..., Any], decorator: str) -> None:
    if not _is_async(handler):
        name = getattr(handler, "__qualname__", repr(handler))
        raise TypeError(f"@{decorator}: {name} must be `async def`: it runs in the dispatch loop")


async def _run(work: Callable[[Connection], Awaitable[None]], cx: Connection) -> None:
    await work(cx)
