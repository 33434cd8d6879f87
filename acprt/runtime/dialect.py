"""What differs between the protocols that ride on the runtime, asked of one object per connection.

The dispatch loop never tests a protocol name. The default here is plain JSON-RPC 2.0 with `$/cancel_request` and one
answer to every request, cancelled ones included. A dialect decides; it never sends, and it keeps no request.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from acprt.errors import RpcError
from acprt.wire.frames import NotificationFrame, RequestFrame
from acprt.wire.ids import RequestId, WireId

__all__ = ["CancelNotice", "Dialect"]


class CancelNotice(msgspec.Struct, frozen=True):
    """A peer's wish to cancel its own request: under which key it is looked up, and the reason it gave."""

    key: Hashable
    reason: str | None = None


class _CancelParams(msgspec.Struct, rename="camel"):
    request_id: WireId


_decode_cancel = msgspec.json.Decoder(_CancelParams).decode


class Dialect:
    """Plain JSON-RPC 2.0. Subclass it and override what another protocol does differently.

    One object serves one connection; `for_connection` makes it, so a dialect may keep state of its own (an era, a
    negotiated version) without sharing it.
    """

    name: str = "json-rpc"

    cancel_methods: frozenset[str] = frozenset({"$/cancel_request"})
    """Notifications that the reader looks into before anything queued in front of them is dispatched."""

    accepts_batches: bool = True
    """Whether an incoming array is taken apart; if not, it is answered with one -32600."""

    answers_cancelled: bool = True
    """Whether a cancelled request still gets its one answer. If not, its requester stops waiting when it cancels."""

    gates_frames: bool = False
    """Whether a cancelled request's handler may send nothing more (progress, logs, its result)."""

    withdraws_queued: bool = False
    """Whether frames still queued when their request is cancelled are taken back instead of written."""

    cascades_cancel: bool = False
    """Whether cancelling a request also cancels the requests that its handler sent."""

    opening_buffer: int = 0
    """How many notifications may wait until the first request, alone or in a batch, was admitted; they are offered to
    `admit` then.
    """

    def for_connection(self) -> Dialect:
        """The object that one connection asks; a dialect without state is its own."""
        return self

    def admit(self, frame: RequestFrame | NotificationFrame) -> RpcError | None:
        """Look at an incoming call when it is read, before any handler; an error refuses it (a notification silently).

        A request is registered by then, and a refusal is its answer; one that is refused since too many are in flight
        is not shown. A cancel is shown after it was applied, and not at all if it is malformed. What the opening buffer
        holds is shown right after the first request that was admitted. An exception ends the connection.
        """
        return None

    def key(self, id: RequestId) -> Hashable:
        """What a legal id is looked up by. 1 and "1" must differ."""
        return id

    def parse_cancel(self, frame: NotificationFrame) -> CancelNotice | None:
        """Read a cancel. None: it is not well-formed, or not the peer's to send; it is logged and dropped (CA-07)."""
        try:
            return CancelNotice(self.key(_decode_cancel(frame.params).request_id))
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return None

    def build_cancel(self, id: RequestId, reason: str | None = None) -> tuple[str, Any]:
        """Method and params of the notification that cancels our request `id`."""
        return "$/cancel_request", {"requestId": id}

    def may_cancel_outgoing(self, method: str) -> bool:
        """Whether we may cancel our own request of this method."""
        return True

    def may_cancel_incoming(self, method: str) -> bool:
        """Whether the peer's cancel of this request is honoured."""
        return True

    def answer_on_shutdown(self, method: str) -> RpcError | None:
        """What a request still running when the endpoint ends is answered with; None writes nothing (DEC-25)."""
        return RpcError.internal_error({"reason": "shutting_down"})

    def on_request_sent(self, id: RequestId, method: str, params: Any) -> RpcError | None:
        """See an outgoing request before it is queued; an error fails it without sending."""
        return None
