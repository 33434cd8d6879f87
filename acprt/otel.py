"""OpenTelemetry for any endpoint: a span for each request, and W3C trace context in `_meta`, so that the spans of a
client, a proxy and an agent are one trace. Needs the extra `acprt[otel]`.

`acprt.otel.instrument(endpoint)` before its connections open is all there is to do. What is not instrumented pays
nothing. It observes: it must never change what a request means, or how it ends.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Raw
from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from acprt.errors import RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.dialect import Dialect
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.inbound import InboundTable
from acprt.runtime.responder import InboundRequest, current_request
from acprt.wire.frames import RequestFrame, ResponseFrame
from acprt.wire.ids import RequestId
from acprt.wire.payloads import UNENCODABLE

__all__ = ["current_span", "instrument"]

_SHOWN = 200  # characters of an error message in a span

_open_spans: WeakKeyDictionary[InboundTable, dict[RequestId, Span]] = WeakKeyDictionary()
"""Spans of requests that are being served, by the connection that they came from."""


def instrument(endpoint: Endpoint, *, tracer_provider: TracerProvider | None = None, propagates: bool = True) -> None:
    """Make a span of each request on the connections of `endpoint` that are opened from now on.

    A request that comes in is a span of kind SERVER, whose parent is what `_meta` of its params names by `traceparent`.
    One that goes out is of kind CLIENT, a child of the span that is current where it is sent, or else of the request
    that is being served there; its own context is written to `_meta` by the global propagator unless `propagates` is
    false, which is the choice where the peer expects no `_meta` (the Claude Code stream). Where no tracer provider is
    given or set globally, nothing is recorded. Notifications and params are not.
    """
    tracer = trace.get_tracer("acprt", tracer_provider=tracer_provider)
    endpoint.dialect = _traced(endpoint.dialect, tracer, propagates)


def current_span() -> Span:
    """The span of the request that the running code serves; one that records nothing outside of such a handler.

    `with trace.use_span(acprt.otel.current_span()):` makes it the current one for libraries that ask for that.
    """
    return _span_of(current_request.get()) or trace.INVALID_SPAN


class _TracedDialect(Dialect):
    """In front of another dialect in the order of bases: it asks that one, and looks."""

    _tracer: Tracer
    _propagates: bool
    _served: dict[RequestId, Span]
    _asked: Span | None

    def for_connection(self) -> Dialect:
        made = super().for_connection()
        return _traced(copy.copy(made) if made is self else made, self._tracer, self._propagates)

    @property
    def admits_all(self) -> bool:
        return False  # every request is looked at

    @admits_all.setter
    def admits_all(self, value: bool) -> None:
        return

    def connected(self, cx: Connection) -> None:
        self._served = {}
        self._asked = None
        _open_spans[cx.inbound] = self._served
        super().connected(cx)

    def follow(self, frame: RequestFrame) -> Callable[[ResponseFrame | None], ResponseFrame | None] | None:
        inner = super().follow(frame)
        parent = propagate.extract(_carrier(frame.params))
        span = self._tracer.start_span(
            frame.method, parent, kind=SpanKind.SERVER, attributes=_attributes(frame.id, frame.method)
        )
        self._served[frame.id] = span

        def answered(frame_out: ResponseFrame | None) -> ResponseFrame | None:
            replaced = None if inner is None else inner(frame_out)
            outcome = replaced or frame_out
            if self._served.get(frame.id) is span:
                del self._served[frame.id]
            _end(span, None if outcome is None else outcome.error)
            return replaced

        return answered

    def on_request_sent(self, id: RequestId, method: str, params: Any) -> RpcError | Raw | None:
        self._asked = None
        verdict = super().on_request_sent(id, method, params)
        if isinstance(verdict, RpcError):
            return verdict
        here = context.get_current()
        serving = _span_of(current_request.get())
        if serving is not None and not trace.get_current_span(here).get_span_context().is_valid:
            here = trace.set_span_in_context(serving, here)
        span = self._tracer.start_span(method, here, kind=SpanKind.CLIENT, attributes=_attributes(id, method))
        self._asked = span
        if not self._propagates:
            return verdict
        carrier: dict[str, str] = {}
        propagate.inject(carrier, trace.set_span_in_context(span, here))
        return _with_meta(params if verdict is None else verdict, carrier) or verdict

    def follow_sent(
        self, id: RequestId, method: str
    ) -> Callable[[ResponseFrame | RpcError], ResponseFrame | RpcError | None] | None:
        span, self._asked = self._asked, None
        inner = super().follow_sent(id, method)
        if span is None:
            return inner

        def ended(outcome: ResponseFrame | RpcError) -> ResponseFrame | RpcError | None:
            replaced = None if inner is None else inner(outcome)
            final = replaced or outcome
            _end(span, final if isinstance(final, RpcError) else final.error)
            return replaced

        return ended


def _traced(dialect: Dialect, tracer: Tracer, propagates: bool) -> Dialect:
    if not isinstance(dialect, _TracedDialect):
        dialect.__class__ = _traced_class(type(dialect))
    assert isinstance(dialect, _TracedDialect)
    dialect._tracer = tracer
    dialect._propagates = propagates
    return dialect


_traced_classes: dict[type[Dialect], Any] = {}


def _traced_class(cls: type[Dialect]) -> Any:
    if cls not in _traced_classes:
        _traced_classes[cls] = type(f"Traced{cls.__name__}", (_TracedDialect, cls), {})
    return _traced_classes[cls]


def _span_of(request: InboundRequest | None) -> Span | None:
    return None if request is None else _open_spans.get(request.table, {}).get(request.id)


def _attributes(id: RequestId, method: str) -> dict[str, str]:
    """By the semantic conventions for JSON-RPC."""
    return {
        "rpc.system": "jsonrpc",
        "rpc.jsonrpc.version": "2.0",
        "rpc.jsonrpc.request_id": str(id),
        "rpc.method": method,
    }


def _end(span: Span, error: RpcError | None) -> None:
    if error is not None:
        span.set_attribute("rpc.jsonrpc.error_code", error.code)
        span.set_attribute("rpc.jsonrpc.error_message", error.message[:_SHOWN])
        span.set_status(Status(StatusCode.ERROR, error.message[:_SHOWN]))
    span.end()


class _Meta(msgspec.Struct):
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


_decode_meta = msgspec.json.Decoder(_Meta).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw] | None).decode


def _carrier(params: Raw) -> dict[str, str]:
    """The trace context that params bring, if they do."""
    try:
        meta = _decode_meta(params).meta or {}
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return {}
    return {name: value for name, value in meta.items() if isinstance(value, str)}


def _with_meta(params: Any, carrier: dict[str, str]) -> Raw | None:
    """Params with `carrier` in their `_meta`, beside what else is there; None where they are no object."""
    if not carrier or params is None:
        return None
    try:
        members = _decode_members(msgspec.json.encode(params))
        if members is None:
            return None
        meta = _decode_members(members.get("_meta", b"null")) or {}
    except (msgspec.MsgspecError, *UNENCODABLE):
        return None  # it is no object, or cannot be written: that is for who sends it to say
    for name, value in carrier.items():
        meta[name] = Raw(msgspec.json.encode(value))  # what a proxy hands on names the hop before
    members["_meta"] = Raw(msgspec.json.encode(meta))
    return Raw(msgspec.json.encode(members))
