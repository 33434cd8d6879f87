"""Handlers as messages meet them: a chain per kind and method, in registration order, catch-alls merged in.

Chains are compiled once per connection, so that a message costs one dict look-up, and are walked in a loop, never by
nesting (HC-14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from acprt.runtime.messages import reply_type_of
from acprt.runtime.responder import InboundRequest, Responder
from acprt.runtime.routing import Dispatch, Offer, response_dispatch
from acprt.runtime.signatures import Taken, is_notification_type, is_request_type
from acprt.wire.payloads import UNTYPED, Decoder, decode_params, decoder_for

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["Chain", "Chains", "Handled", "Link", "Route", "RouteKind", "name_of"]


class RouteKind(Enum):
    """Which decorator registered a handler."""

    METHOD = auto()
    REQUEST = auto()
    NOTIFICATION = auto()
    DISPATCH = auto()


class Handled(msgspec.Struct, eq=False):
    """What a handler returns to pass a message on: `Handled.no(message, retry=…)`. Returning None claims it (HC-02)."""

    message: Any
    retry: bool

    @classmethod
    def no(cls, message: Any = None, *, retry: bool = False) -> Handled:
        """Not mine: the next handler gets it, as it came or as `message` (a changed dispatch or typed message).

        With `retry=True` a message that nobody claims is parked for a dynamic handler registered later.
        """
        return cls(message, retry)

    def changes_nothing(self, method: str) -> bool:
        """Whether a message of `method` goes on as it came to the handler, without a retry."""
        if self.retry:
            return False
        message = self.message
        if type(message) is not Dispatch:
            return message is None
        return message._changed is UNSET and message.method == method

    def __repr__(self) -> str:
        return f"Handled.no({self.message!r}, retry={self.retry})"


class Route:
    """One registered handler: its kind, what it takes (None: everything), and how it is called."""

    __slots__ = ("active", "handler", "is_sync", "kind", "taken", "takes_cx")

    def __init__(
        self,
        kind: RouteKind,
        handler: Callable[..., Any],
        taken: Taken | None,
        *,
        takes_cx: bool,
        is_sync: bool = False,
    ) -> None:
        self.kind = kind
        self.handler = handler
        self.taken = taken
        self.takes_cx = takes_cx
        self.is_sync = is_sync
        self.active = True  # a dynamic handler whose guard is gone declines everything at once (DY-02)

    @property
    def name(self) -> str:
        """The handler's name, for logs."""
        return name_of(self.handler)


class Link:
    """A route as one method meets it: its place among all routes, and the decoder of that method's params, if typed."""

    __slots__ = (
        "decode", "decoder", "handler", "is_dispatch", "is_method", "is_sync", "kind", "name", "order", "route",
        "takes_cx",
    )  # fmt: skip

    def __init__(self, route: Route, message_type: Any, order: int) -> None:
        self.route = route
        self.order = order
        self.kind = route.kind
        self.handler = route.handler
        self.takes_cx = route.takes_cx
        self.is_sync = route.is_sync
        self.name = route.name
        self.is_method = route.kind is RouteKind.METHOD
        self.is_dispatch = route.kind is RouteKind.DISPATCH
        self.decoder: Decoder | None = None
        if message_type is not None:
            try:
                self.decoder = decoder_for(message_type)
            except Exception as error:  # a type that msgspec refuses, or a name that its annotations do not find
                raise TypeError(f"{message_type!r}, taken by {route.name}, cannot be decoded: {error}") from error
        self.decode = (self.decoder or UNTYPED).decode  # for who falls back on `decode_params` where it fails

    def call(self, offer: Offer, cx: Connection) -> Any:
        """Call an ordered handler with what its kind gets; the coroutine it returns. Undecodable params raise RpcError.

        Responders and dispatches are made inside the call, so that only the handler holds them (DEC-14).
        """
        if offer.request is not None:
            return self.call_with_request(offer.request, offer.method, offer.params, cx)
        decoder = self.decoder
        if offer.call is not None:
            dispatch = response_dispatch(offer.method, offer.call, offer.response, decoder)
            dispatch.hold_response()
            return self.handler(dispatch, cx) if self.takes_cx else self.handler(dispatch)
        message = None if decoder is None and self.is_dispatch else decode_params(decoder, offer.params)
        if self.is_dispatch:
            message = Dispatch("notification", offer.method, offer.params, message)
        return self.handler(message, cx) if self.takes_cx else self.handler(message)

    def call_with_request(self, request: InboundRequest, method: str, params: Raw, cx: Connection) -> Any:
        """`call` with a request: `method` and `params` are what an earlier handler may have changed them to."""
        decoder = self.decoder
        if self.is_dispatch:
            message = None if decoder is None else decode_params(decoder, params)
            dispatch = Dispatch("request", method, params, message, Responder(request))
            return self.handler(dispatch, cx) if self.takes_cx else self.handler(dispatch)
        message = decode_params(decoder, params)
        if self.takes_cx:
            return self.handler(message, Responder(request), cx)
        return self.handler(message, Responder(request))


def name_of(handler: Any) -> str:
    """What a handler is called in logs."""
    return getattr(handler, "__qualname__", None) or type(handler).__qualname__


Chain = tuple[Link, ...]
"""The handlers that one kind of message of one method is offered to, in order."""

_ANSWERS_REQUESTS = (RouteKind.METHOD, RouteKind.REQUEST, RouteKind.DISPATCH)
_HEARS_NOTIFICATIONS = (RouteKind.NOTIFICATION, RouteKind.DISPATCH)
_SEES_RESPONSES = (RouteKind.DISPATCH,)


class Chains:
    """The handlers of one connection by kind and method. `requests.get(method, other_requests)` is the whole choice.

    `methods` and `first_notifications` hold those that can be called at once, without a walk (bench-core w2, w3).
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        routes = tuple(routes)
        self.requests, self.other_requests = _by_method(routes, _ANSWERS_REQUESTS, _request_type)
        self.methods = {method: chain[0] for method, chain in self.requests.items() if chain and chain[0].is_method}
        self.notifications, self.other_notifications = _by_method(routes, _HEARS_NOTIFICATIONS, _notification_type)
        self.first_notifications = {
            method: chain[0]
            for method, chain in self.notifications.items()
            if chain and chain[0].kind is RouteKind.NOTIFICATION
        }
        self.responses, self.other_responses = _by_method(routes, _SEES_RESPONSES, _reply_type)
        self.sees_responses = bool(self.responses or self.other_responses)

    def of(self, offer: Offer) -> Chain:
        """The chain that an offer walks."""
        kind = offer.kind
        if kind == "request":
            return self.requests.get(offer.method, self.other_requests)
        if kind == "notification":
            return self.notifications.get(offer.method, self.other_notifications)
        return self.responses.get(offer.method, self.other_responses)


_NOT_TAKEN = object()
"""Of a method that a handler does not hear of; None stands for one whose params it takes undecoded."""


def _request_type(message_type: Any) -> Any:
    return message_type if message_type is None or is_request_type(message_type) else _NOT_TAKEN


def _notification_type(message_type: Any) -> Any:
    return message_type if message_type is None or is_notification_type(message_type) else _NOT_TAKEN


def _reply_type(message_type: Any) -> Any:
    if message_type is None:
        return None
    return reply_type_of(message_type) if is_request_type(message_type) else _NOT_TAKEN


def _by_method(
    routes: tuple[Route, ...], kinds: tuple[RouteKind, ...], decoded_type: Callable[[Any], Any]
) -> tuple[dict[str, Chain], Chain]:
    """The chain of each method that is taken by name, and the chain of all others: the catch-alls alone."""
    chains: dict[str, Chain] = {}
    heard = [(order, route) for order, route in enumerate(routes) if route.kind in kinds]
    for method in {method: None for _, route in heard for method in route.taken or ()}:  # a set that keeps the order
        links = []
        for order, route in heard:
            message_type = None if route.taken is None else decoded_type(route.taken.get(method, _NOT_TAKEN))
            if message_type is not _NOT_TAKEN:
                links.append(Link(route, message_type, order))
        chains[method] = tuple(links)
    return chains, tuple(Link(route, None, order) for order, route in heard if route.taken is None)
