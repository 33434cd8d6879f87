"""Our own subscriptions, of a client in the modern era: which live, and in which of three ways each ended.

A server ends one with a result or with a cancel, the client with a cancel; the loss of the connection is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw, UnsetType

from acprt.errors import ErrorCode, RpcError
from acprt.mcp.ids import CorrelationKey
from acprt.mcp.messages import SubscriptionClosed
from acprt.mcp.meta import SUBSCRIPTION_ID
from acprt.wire.frames import UNREADABLE, ResponseFrame
from acprt.wire.ids import RequestId

__all__ = ["LISTEN", "SUBSCRIPTION_NOTIFICATIONS", "LiveListens"]

LISTEN: Final = "subscriptions/listen"

SUBSCRIPTION_NOTIFICATIONS: Final = frozenset(
    {
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
"""What a modern server says only within a subscription, tagged with its id."""


class _Meta(msgspec.Struct, gc=False):
    subscription: int | str | UnsetType = msgspec.field(name=SUBSCRIPTION_ID, default=msgspec.UNSET)


class _Tagged(msgspec.Struct, gc=False):
    meta: _Meta | UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


_decode_tag = msgspec.json.Decoder(_Tagged).decode


class LiveListens:
    """The subscriptions of one connection, by the id of the request that opened each."""

    def __init__(self) -> None:
        self._live: set[RequestId] = set()
        self._cancelled: dict[RequestId, str | None] = {}  # by the server, with its reason
        self._answered: set[RequestId] = set()  # their result was read; its turn has not come

    def opened(self, id: RequestId) -> Callable[[ResponseFrame | RpcError], ResponseFrame | None]:
        """A listen request is sent; what to call with its outcome, and what that makes of it."""
        self._live.add(id)
        return lambda outcome: self._ended(id, outcome)

    def cancelled_by_peer(self, key: CorrelationKey, reason: str | None) -> ResponseFrame | None:
        """The server's cancel of a live subscription, as the answer that it is; None for anything else."""
        if key not in self._live or key in self._cancelled:
            return None
        self._cancelled[key] = reason
        return ResponseFrame(key, Raw(b"{}"))

    def answer_read(self, id: RequestId) -> None:
        """An answer of the server was read: if it is that of a subscription, nothing may come behind it."""
        if id in self._live:
            self._answered.add(id)

    def expects(self, params: Raw) -> bool:
        """Whether a subscription's notification belongs to one that lives; one without a tag belongs to none."""
        try:
            meta = _decode_tag(params).meta
        except UNREADABLE:
            return False
        if not isinstance(meta, _Meta):
            return False
        id = meta.subscription
        return id in self._live and id not in self._cancelled and id not in self._answered

    def _ended(self, id: RequestId, outcome: ResponseFrame | RpcError) -> ResponseFrame | None:
        self._live.discard(id)
        self._answered.discard(id)
        if id in self._cancelled:
            reason = self._cancelled.pop(id)
            if isinstance(outcome, ResponseFrame):
                return _answer(id, SubscriptionClosed(closed_by="server", reason=reason))
        if isinstance(outcome, ResponseFrame):
            if outcome.error is not None:
                return None  # it was refused
            return ResponseFrame(id, Raw(b'{"closedBy":"server","result":' + bytes(outcome.result) + b"}"))
        if outcome.code == ErrorCode.REQUEST_CANCELLED:  # of our own making: no peer says so in MCP
            return _answer(id, SubscriptionClosed(closed_by="client"))
        return None


def _answer(id: RequestId, closed: SubscriptionClosed) -> ResponseFrame:
    return ResponseFrame(id, Raw(msgspec.json.encode(closed)))
