"""A message on its way along a handler chain, and what a dispatch handler sees of it.

`Offer` is the walk's own state; `Dispatch` is the handler's view, made anew for each handler, so that the walk never
holds a responder while it waits (DEC-14).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Raw

from acprt.errors import RpcError
from acprt.runtime.calls import OutgoingCall
from acprt.runtime.messages import method_of
from acprt.runtime.responder import InboundRequest, Responder
from acprt.runtime.results import Err, Ok, Result
from acprt.wire.frames import NO_PARAMS, ResponseFrame
from acprt.wire.ids import RequestId
from acprt.wire.payloads import Decoder, decode_params, decode_result

__all__ = ["Dispatch", "Offer", "ResponseRouter", "response_dispatch"]

if TYPE_CHECKING:
    import typing_extensions

    M = typing_extensions.TypeVar("M", default=Any)  # a plain `Dispatch` is one of anything
else:
    M = TypeVar("M")

Kind = Literal["request", "notification", "response"]


class Offer(msgspec.Struct, eq=False):
    """One message being offered to handlers; it may be parked and offered again.

    A request has `request`, a response has `call` and `response`, a notification has neither.

    A Struct for what making one costs, as is `Dispatch` (bench-core w12).
    """

    method: str
    params: Raw = NO_PARAMS
    request: InboundRequest | None = None
    call: OutgoingCall | None = None
    response: ResponseFrame | None = None

    @property
    def kind(self) -> Kind:
        """What is offered."""
        if self.request is not None:
            return "request"
        return "response" if self.call is not None else "notification"

    def change(self, message: Any) -> None:
        """Take over what a handler passed on. Fields unknown to a type are lost (HC-08)."""
        if isinstance(message, Dispatch):
            self.method = message.method
            if message._changed is not msgspec.UNSET:
                self._set_payload(message._changed)
        else:
            self.method = method_of(message)
            self._set_payload(message)

    def _set_payload(self, payload: Any) -> None:
        if self.response is not None:
            if isinstance(payload, RpcError):
                self.response = ResponseFrame(self.response.id, NO_PARAMS, payload)
            else:
                self.response = ResponseFrame(self.response.id, Raw(msgspec.json.encode(payload)))
        else:
            self.params = NO_PARAMS if payload is None else Raw(msgspec.json.encode(payload))


class ResponseRouter:
    """The right to deliver a response to the waiter of our own request, once. Nothing goes on the wire (RR-01).

    Dropping it loses the response: the waiter is told so (RR-03).
    """

    __slots__ = ("__weakref__", "_call")

    def __init__(self, call: OutgoingCall) -> None:
        self._call = call
        call.routers += 1

    @property
    def id(self) -> int:
        """The id of our request."""
        return self._call.id

    @property
    def method(self) -> str:
        """The method of our request."""
        return self._call.method

    def route(self, value: Any) -> None:
        """Deliver `value`; ignored when an outcome was delivered before (RR-02)."""
        self._deliver(ResponseFrame(self._call.id, Raw(msgspec.json.encode(value))))

    def route_with_error(self, error: RpcError) -> None:
        """Deliver an error."""
        self._deliver(error)

    def route_with_result(self, result: Result[Any]) -> None:
        """Deliver an `Ok` value or an `Err` error."""
        if isinstance(result, Err):
            self._deliver(result.error)
        else:
            self.route(result.value)

    def route_with_internal_error(self, text: str) -> None:
        """Deliver -32603 with `text` as its data."""
        self._deliver(RpcError.internal_error(text))

    def _deliver(self, outcome: ResponseFrame | RpcError) -> None:
        self._call.table.route(self._call, outcome)

    def __del__(self) -> None:
        call = getattr(self, "_call", None)
        if call is None or call.outcome is not None:
            return
        table = call.table
        if table.thread_id == threading.get_ident():
            table.router_dropped(call)
        else:  # a collector ran on another thread (PY-03)
            table.call_on_loop(lambda: table.router_dropped(call))


class Dispatch(msgspec.Struct, Generic[M], eq=False):
    """What an `on_receive_dispatch` handler gets: a request, a notification, or the response to one of our requests.

    `kind` tells which. `message` is the typed message when the handler's annotation names types
    (`Dispatch[Hello | Progress]`), else None; `params` are plain values. A request has a `responder`; a response has
    a `result` (`Ok` or `Err`, typed like `message`) and a `router`.
    """

    kind: Kind
    """`"request"`, `"notification"` or `"response"`."""
    method: str
    raw_params: Raw
    """Params as they came, for forwarding; empty for none."""
    message: M | None = None
    responder: Responder[Any] | None = None
    _call: OutgoingCall | None = None
    _response: ResponseFrame | None = None
    _result: Result[Any] | None = None
    _router: ResponseRouter | None = None
    _changed: Any = msgspec.UNSET
    _params: Any = msgspec.UNSET

    @property
    def router(self) -> ResponseRouter | None:
        """The right to deliver a response; None for the other kinds."""
        self.hold_response()
        return self._router

    def hold_response(self) -> None:
        """From now on dropping this object may lose the response (RR-03). Before, the walk alone answers for it, which
        saves a router in every response that a handler only looks at (bench-core w12).
        """
        if self._router is None and self._call is not None:
            self._router = ResponseRouter(self._call)

    @property
    def id(self) -> RequestId:
        """The request's id, the peer's or ours; None for a notification."""
        if self.responder is not None:
            return self.responder.id
        return self._call.id if self._call is not None else None

    @property
    def params(self) -> Any:
        """Params as plain values; None for none, and for a response."""
        if self._params is msgspec.UNSET:
            self._params = decode_params(None, self.raw_params)
        return self._params

    @property
    def result(self) -> Result[Any]:
        """The outcome that a response carries. Raises TypeError for the other kinds."""
        response = self._response
        if response is None:
            raise TypeError(f"a {self.kind} has no result")
        if self._result is None:
            if response.error is not None:
                self._result = Err(response.error)
            else:
                self._result = Ok(decode_result(None, response.result))
        return self._result

    def has_field(self, name: str) -> bool:
        """Whether the params are an object with that top-level member."""
        return isinstance(self.params, dict) and name in self.params

    def replace(self, payload: Any = msgspec.UNSET, *, method: str | None = None) -> Dispatch[M]:
        """This dispatch with other params (for a response: another result value or RpcError) or another method.

        Return it in `Handled.no(…)` to pass it on. It is the same object, changed.
        """
        if payload is not msgspec.UNSET:
            self._changed = payload
            self._params = msgspec.UNSET
        if method is not None:
            self.method = method
        return self

    def __repr__(self) -> str:
        return f"<Dispatch {self.kind} {self.method} id={self.id!r}>"


def response_dispatch(
    method: str, call: OutgoingCall, response: ResponseFrame | None, decoder: Decoder | None
) -> Dispatch[Any]:
    """A handler's view of a response. Raises RpcError for one that `decoder`, of its annotation, refuses (HC-07)."""
    result: Result[Any] | None = None
    if decoder is not None and response is not None and response.error is None:
        result = Ok(decode_result(decoder, response.result))
    return Dispatch("response", method, NO_PARAMS, None, None, call, response, result)
