"""What differs between the protocols that ride on the runtime, asked of one object per connection.

The dispatch loop never tests a protocol name. The default here is plain JSON-RPC 2.0 with `$/cancel_request` and one
answer to every request, cancelled ones included. A dialect decides; it never sends, and it keeps no request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from acprt.errors import RpcError
from acprt.wire.frames import Frame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId, WireId
from acprt.wire.lines import Line

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["CancelGroup", "CancelNotice", "Dialect"]


class CancelNotice(msgspec.Struct, frozen=True):
    """A peer's wish to cancel its own request: under which key it is looked up, and the reason it gave."""

    key: Hashable
    reason: str | None = None


class CancelGroup(msgspec.Struct, frozen=True):
    """A peer's wish to stop work that it names otherwise than by request id: whatever of its requests is in flight and
    of this `group`, as the dialect tells them apart (`Dialect.grouped_methods`).

    `answer` is the result that each of them gets in the place of any error, from the cancel on; a value that its
    handler returns still goes first, unless it is None. UNSET: they are answered as when each had been cancelled by
    its id.
    """

    group: Hashable
    answer: Any = UNSET


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

    grouped_methods: frozenset[str] = frozenset()
    """The methods whose requests a `CancelGroup` may stop; `group` is asked of no other."""

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

    admits_all: bool = False
    """Set by the dialect once nothing will be refused any more: later reads do not ask `admit` and `follow`."""

    answers_refused: bool = True
    """Whether what is refused, by `admit` or since it cannot be read, is answered with that error; if not, it is
    dropped.
    """

    opening_buffer: int = 0
    """How many notifications may wait until the first request, alone or in a batch, was admitted; they are offered to
    `admit` then.
    """

    def for_connection(self) -> Dialect:
        """The object that one connection asks; a dialect without state is its own."""
        return self

    def connected(self, cx: Connection) -> None:
        """Meet the connection that will ask, before its first frame."""
        return

    def parse(self, line: Line) -> Frame:
        """The frame that a line is. Override it to be stricter, or to read what the runtime calls malformed."""
        return parse(line)

    def to_wire(self, line: bytes) -> bytes:
        """What is written for a line of JSON-RPC, which `line` is, without terminator; the counterpart of `parse`.
        Override both where the peer speaks in other envelopes.
        """
        return line

    def admit(self, frame: RequestFrame | NotificationFrame) -> RpcError | None:
        """Look at an incoming call when it is read, before any handler; an error refuses it (a notification silently).

        A request is registered by then, and a refusal is its answer; one that is refused since too many are in flight
        is not shown. A cancel is shown after it was applied, and not at all if it is malformed. What the opening buffer
        holds is shown right after the first request that was admitted. An exception ends the connection.
        """
        return None

    def follow(self, frame: RequestFrame) -> Callable[[ResponseFrame | None], ResponseFrame | None] | None:
        """Asked right after `admit` let a request in: what to call with its answer when that is queued, or with None
        when it ends without one. The frame that it returns, if any, is written in the place of the answer.
        """
        return None

    def key(self, id: RequestId) -> Hashable:
        """What a legal id is looked up by. 1 and "1" must differ."""
        return id

    def parse_cancel(self, frame: NotificationFrame) -> CancelNotice | CancelGroup | ResponseFrame | None:
        """Read a cancel. None: it is not well-formed, or not the peer's to send; it is logged and dropped (CA-07).

        A frame: the peer ends a request of ours; that is its answer, in the cancel's place in the order of messages.
        """
        try:
            return CancelNotice(self.key(_decode_cancel(frame.params).request_id))
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return None

    def group(self, params: Raw) -> Hashable:
        """The group that a request of `grouped_methods` belongs to; None: it is in none. Asked once of each request
        that is in flight when a group is cancelled, and not before: params may be large.
        """
        return None

    def build_cancel(self, id: RequestId, reason: str | None = None) -> tuple[str, Any] | None:
        """Method and params of the notification that cancels our request `id`. None: the peer is told another way."""
        return "$/cancel_request", {"requestId": id}

    def may_cancel_outgoing(self, method: str) -> bool:
        """Whether we may cancel our own request of this method."""
        return True

    def may_cancel_incoming(self, method: str) -> bool:
        """Whether the peer's cancel of this request is honoured."""
        return True

    def cancelled_answer(self, method: str) -> Any:
        """The result that a cancelled request of this method gets in the place of any error; UNSET for none. What its
        handler returns all the same goes first.
        """
        return UNSET

    def answer_on_shutdown(self, method: str) -> RpcError | None:
        """What a request still running when the endpoint ends is answered with; None writes nothing (DEC-25)."""
        return RpcError.internal_error({"reason": "shutting_down"})

    def on_request_sent(self, id: RequestId, method: str, params: Any) -> RpcError | Raw | None:
        """See an outgoing request before it is queued: an error fails it without sending, raw params are sent in the
        place of its own.
        """
        return None

    def follow_sent(
        self, id: RequestId, method: str
    ) -> Callable[[ResponseFrame | RpcError], ResponseFrame | RpcError | None] | None:
        """Asked right after `on_request_sent` let a request pass: what to call with its outcome, in the outcome's place
        in the order of messages, before anyone who waits for it. What that returns, if not None, takes that place.
        """
        return None
