"""Which session an update is for: one look-up by session id per connection, of either version of the protocol.

A session is entered in the ordered slot of the response that opens it, so nothing that follows can miss it; what came
before that response waits here, bounded. This room must never wait, and never keep what nobody asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from msgspec import Struct

from acprt.acp.sessions.errors import SessionOverflow
from acprt.acp.sessions.queue import UpdateQueue
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.handlers import Handled, Route, RouteKind
from acprt.runtime.messages import Notification, method_of
from acprt.wire.payloads import Decoder, decoder_for

__all__ = ["Recipient", "SessionRoutes", "SizedUpdate", "update_route"]

logger = logging.getLogger("acprt.acp")


class Recipient(Protocol):
    """An open session, as its updates see it."""

    def deliver(self, update: Any, size: int) -> None:
        """Take one update of `size` bytes on the wire. In the dispatch loop: it must neither wait nor raise."""


class SizedUpdate(Struct):
    """A `session/update` notification and the bytes of its params."""

    note: Any
    size: int


def _sized_decoder(notification: type[Notification]) -> Decoder:
    """Decodes a notification as its own class does, and keeps how large it was: the bound of a session is in bytes."""
    inner = decoder_for(notification)
    again = inner.decode_again
    assert again is not None, "classes of the schema have a second attempt"

    def decode(raw: Any) -> SizedUpdate:
        return SizedUpdate(inner.decode(raw), len(raw))

    def decode_again(text: bytes) -> SizedUpdate:
        return SizedUpdate(again(text), len(text))

    return Decoder(decode, decode_again)


class SessionRoutes:
    """The open sessions of one connection, and the updates whose session is not open yet."""

    def __init__(self, session_bytes: int) -> None:
        self.cancelling: set[str] = set()
        """Ids of sessions with a turn that was cancelled and has not ended."""
        self._limit = session_bytes
        self._recipients: dict[str, Recipient] = {}
        self._openings = 0
        self._early: dict[str, UpdateQueue] = {}
        self._early_bytes = 0
        self._overflowed: set[str] = set()

    @classmethod
    def of(cls, cx: Connection) -> SessionRoutes:
        """Those of a connection that an `acp.Client` opened. TypeError for any other: it hears no updates."""
        routes = cx.attachments.get(cls)
        if routes is None:
            if getattr(cx.dialect, "side", None) != "client":
                raise TypeError(f"{cx!r} has no sessions: they need a connection that acp.Client(…) opened")
            routes = cx.attachments[cls] = cls(cx.limits.session_bytes)
        assert isinstance(routes, cls), "the key is this class's own"
        return routes

    async def heard(self, heard: SizedUpdate) -> Handled | None:
        """Hand one update over. An update of no session of ours is passed on, unless one may be about to open."""
        note, size = heard.note, heard.size
        recipient = self._recipients.get(note.session_id)
        if recipient is not None:
            recipient.deliver(note.update, size)
        elif self._openings:
            self._keep(note.session_id, note.update, size)
        else:
            return Handled.no()
        return None

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While a session is being opened, updates of sessions not known yet are kept: agents send them before the
        response that names the session.
        """
        self._openings += 1
        try:
            yield
        finally:
            self._openings -= 1
            if not self._openings:
                for session_id in self._early:
                    logger.debug("dropped updates of session %s, which nobody opened", session_id)
                self._early.clear()
                self._overflowed.clear()
                self._early_bytes = 0

    def claim(self, session_id: str, recipient: Recipient) -> UpdateQueue:
        """Send `recipient` the session's updates from now on. Returns a queue of those that came before.

        Raises SessionOverflow when not all of those could be kept, and RpcError (`session_already_open`) when the
        session is open on this connection.
        """
        self.refuse_open(session_id)
        early = self._early.pop(session_id, None) or UpdateQueue(self._limit)
        self._early_bytes -= early.size
        if session_id in self._overflowed:
            self._overflowed.discard(session_id)
            raise SessionOverflow(session_id, self._limit)
        self._recipients[session_id] = recipient
        self.cancelling.discard(session_id)  # by a turn of its earlier life, which must not silence those of this one
        return early

    def refuse_open(self, session_id: str) -> None:
        """Raise RpcError (`session_already_open`) for a session that is."""
        if session_id in self._recipients:
            raise RpcError(
                ErrorCode.INTERNAL_ERROR,
                "the session is open on this connection: use that one, or leave it first",
                {"reason": "session_already_open", "sessionId": session_id},
            )

    def release(self, session_id: str, recipient: Recipient) -> None:
        """The session is left; what is still said of it is nobody's. A turn that was cancelled stays so until it is
        answered: the questions that it has sent meanwhile are for nobody, either.
        """
        if self._recipients.get(session_id) is recipient:
            del self._recipients[session_id]

    def _keep(self, session_id: str, update: Any, size: int) -> None:
        """Each session may use what an open one may, and all together as much as those being opened may."""
        if session_id in self._overflowed:
            return
        early = self._early.setdefault(session_id, UpdateQueue(self._limit))
        fits = not self._early_bytes or self._early_bytes + size <= self._limit * self._openings
        if fits and early.put(update, size):
            self._early_bytes += size
            return
        logger.warning("session %s: more than Limits.session_bytes came before it was open", session_id)
        self._overflowed.add(session_id)
        self._early_bytes -= self._early.pop(session_id).size


async def session_update(heard: SizedUpdate, cx: Connection) -> Handled | None:
    return await SessionRoutes.of(cx).heard(heard)


@cache
def update_route(notification: type[Notification]) -> Route:
    """The handler of a client's `session/update`, given the notification class of the protocol version it speaks.

    `notification` has `session_id` and `update`. A client puts it behind its user's handlers, which may claim an
    update before any session sees it.
    """
    method = method_of(notification)

    class Sized(Notification, method=method):
        @staticmethod
        def __acprt_decoder__(_type: Any) -> Decoder:
            return _sized_decoder(notification)

    return Route(RouteKind.NOTIFICATION, session_update, {method: Sized}, takes_cx=True)
