"""Handlers that come and go while a connection runs, and the messages parked until one takes them.

A dynamic handler is in force at once; parked messages are offered to it between dispatches, never inside the handler
that registered it (PY-35). The park is bounded (PY-36).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from threading import get_ident

from acprt.runtime.handlers import Chains, Link, Route
from acprt.runtime.responder import ANSWERED
from acprt.runtime.routing import Offer

__all__ = ["DynamicHandlers", "HandlerGuard"]

logger = logging.getLogger("acprt.dispatch")


class HandlerGuard:
    """Keeps a dynamic handler registered: until `close()`, the end of a `with` block, or the guard is dropped.

    `detach()` lets the handler stay for the life of the connection.
    """

    __slots__ = ("__weakref__", "_call_on_loop", "_remove", "_thread_id")

    def __init__(self, remove: Callable[[], None], call_on_loop: Callable[[Callable[[], None]], None]) -> None:
        self._call_on_loop = call_on_loop
        self._thread_id = get_ident()
        self._remove: Callable[[], None] | None = remove

    def close(self) -> None:
        """Deactivate the handler now; idempotent (DY-02, DY-12)."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()

    def detach(self) -> None:
        """Keep the handler for the life of the connection."""
        self._remove = None

    def __enter__(self) -> HandlerGuard:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        remove = getattr(self, "_remove", None)
        if remove is None:
            return
        if get_ident() == self._thread_id:
            remove()
        else:  # a collector ran on another thread; the connection is not thread-safe (PY-03)
            self._call_on_loop(remove)


class DynamicHandlers:
    """The dynamic handlers of one connection in registration order, and its parked messages in arrival order."""

    def __init__(
        self, park_limit: int, wake: Callable[[], None], call_on_loop: Callable[[Callable[[], None]], None]
    ) -> None:
        self.chains: dict[Route, Chains] = {}
        self.replays: deque[tuple[Route, list[Offer]]] = deque()  # parked messages that a new handler is due
        self._park_limit = park_limit
        self._wake = wake
        self._call_on_loop = call_on_loop
        self._parked: dict[Offer, None] = {}  # in order; one that has ended meanwhile keeps its place until it is asked
        self._fresh: dict[Route, None] = {}  # added since a walk last came to the dynamic handlers

    def add(self, route: Route) -> HandlerGuard:
        """Put a handler in force."""
        self.chains[route] = Chains([route])
        self._fresh[route] = None
        if self._parked:
            self.replays.append((route, list(self._parked)))
            self._wake()
        return HandlerGuard(lambda: self._remove(route), self._call_on_loop)

    def links_for(self, offer: Offer) -> Iterator[Link]:
        """The dynamic handlers that an offer meets, in registration order; none that is removed or added on the way."""
        self._fresh.clear()
        for route in list(self.chains):
            if route.active:
                yield from self.chains[route].of(offer)

    def park(self, offer: Offer) -> bool:
        """Keep an unclaimed message for a handler to come; False when the park is full (PY-36). One that was registered
        while the message was offered to the others came too late for that, and is due it next.
        """
        if len(self._parked) >= self._park_limit:
            self._parked = {parked: None for parked in self._parked if not _is_over(parked)}
        if len(self._parked) >= self._park_limit:
            logger.warning("%s %s was not parked: %d messages are", offer.kind, offer.method, len(self._parked))
            return False
        logger.debug("parked %s %s for a later handler", offer.kind, offer.method)
        self._parked[offer] = None
        self.replays.extend((route, [offer]) for route in self._fresh)
        return True

    def is_parked(self, offer: Offer) -> bool:
        """Whether the message still waits. One that was answered, or cancelled by the peer, does not."""
        if offer in self._parked and _is_over(offer):
            del self._parked[offer]
        return offer in self._parked

    def unpark(self, offer: Offer) -> None:
        """A handler took the message, or it has ended."""
        self._parked.pop(offer, None)

    def next_replays(self) -> list[tuple[Offer, Link]]:
        """The parked messages that the next of the new handlers is offered, each with its link, in order."""
        route, offers = self.replays.popleft()
        chains = self.chains.get(route)
        return [] if chains is None else [(offer, link) for offer in offers for link in chains.of(offer)]

    def end(self) -> list[Offer]:
        """No handler will come any more: what was parked and is lost."""
        parked, self._parked = self._parked, {}
        self.replays.clear()
        return [offer for offer in parked if not _is_over(offer)]

    def _remove(self, route: Route) -> None:
        route.active = False
        self.chains.pop(route, None)
        self._fresh.pop(route, None)


def _is_over(offer: Offer) -> bool:
    """Whether somebody who kept its responder or router answered it, or the peer cancelled it."""
    if offer.request is not None:
        return offer.request.state is ANSWERED
    return offer.call is not None and offer.call.outcome is not None
