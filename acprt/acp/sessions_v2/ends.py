"""The end of a connection, told to the sessions that are followed on it.

A v2 turn waits for an update, not for an answer: no pending request would fail with the connection, and it would wait
for ever. One task per connection waits for the end on behalf of all.
"""

from __future__ import annotations

import weakref
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol

from acprt.errors import RpcError
from acprt.runtime.responder import current_request

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["Follower", "tell_of_the_end"]


class Follower(Protocol):
    """Who waits for something that only the peer can send."""

    def lost(self, error: RpcError) -> None:
        """Nothing more will come."""


class _Followers:
    """Those of one connection."""

    def __init__(self, cx: Connection) -> None:
        self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        context = copy_context()
        context.run(current_request.set, None)  # it serves no request, whoever opened the session
        context.run(cx.spawn, self._wait(cx))

    def add(self, follower: Follower) -> None:
        self._followers.add(follower)

    async def _wait(self, cx: Connection) -> None:
        try:
            await cx.incoming_closed()
        finally:
            error = _reason(cx)
            for follower in list(self._followers):
                follower.lost(error)


def tell_of_the_end(cx: Connection, follower: Follower) -> None:
    """Call `follower.lost(error)` when `cx` ends, with the error that its requests get. RpcError if it has ended."""
    followers = cx.attachments.get(_Followers)
    if followers is None:
        followers = cx.attachments[_Followers] = _Followers(cx)
    assert isinstance(followers, _Followers), "the key is this class's own"
    followers.add(follower)


def _reason(cx: Connection) -> RpcError:
    """What a prompt would be told now that the connection is over."""
    return cx.closed_error("session/prompt") or RpcError.internal_error({"reason": "connection_failed"})
