"""What the Agent Client Protocol does differently from plain JSON-RPC, for one connection of one side.

`session/cancel` is looked into by the reader, so that it stops prompts that are still queued too. This room knows
methods and session ids; what may pass before a version is negotiated is the business of `versions`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw

from acprt.runtime.dialect import CancelGroup, CancelNotice, Dialect
from acprt.wire.frames import NotificationFrame, ResponseFrame

__all__ = ["AcpDialect", "Side"]

Side = Literal["agent", "client"]


class _OfSession(msgspec.Struct, rename="camel"):
    session_id: str


_decode_session = msgspec.json.Decoder(_OfSession).decode

_CANCELLED_TURN = {"stopReason": "cancelled"}
_CANCELLED_QUESTION = {"outcome": {"outcome": "cancelled"}}


class AcpDialect(Dialect):
    """ACP, version 1 or 2, as seen from one side.

    `$/cancel_request` cancels one request and what its handler asked for meanwhile. `session/cancel`, heard by agents
    only, cancels every prompt of its session that has no answer yet: in version 1 each ends with the stop reason
    `cancelled`, whatever its handler raises; in version 2 it was not inserted, which is -32800. Version 1 takes arrays
    apart, version 2 knows none.
    """

    cascades_cancel = True

    def __init__(self, version: int = 1, *, side: Side = "agent") -> None:
        self.side: Side = side
        self.grouped_methods = frozenset({"session/prompt" if side == "agent" else "session/request_permission"})
        if side == "agent":
            self.cancel_methods = frozenset({"$/cancel_request", "session/cancel"})
        self.speak(version)

    def speak(self, version: int) -> None:
        """From now on it is this version."""
        self.version = version
        self.name = f"acp v{version}"
        self.accepts_batches = version == 1

    def for_connection(self) -> Dialect:
        """One object per connection: a version may be negotiated on it."""
        return AcpDialect(self.version, side=self.side)

    def parse_cancel(self, frame: NotificationFrame) -> CancelNotice | CancelGroup | ResponseFrame | None:
        """A cancel of one request, or of the prompts of a session."""
        if frame.method != "session/cancel":
            return super().parse_cancel(frame)
        session_id = _session_of(frame.params)
        if session_id is None:
            return None
        return CancelGroup(session_id, _CANCELLED_TURN) if self.version == 1 else CancelGroup(session_id)

    def group(self, params: Raw) -> str | None:
        """What is cancelled together: an agent's prompts, a client's permission requests, of one session."""
        return _session_of(params)

    def cancelled_answer(self, method: str) -> Any:
        """In version 2 a question for permission that the agent takes back is answered by its own word for that."""
        return _CANCELLED_QUESTION if self.version == 2 and method == "session/request_permission" else UNSET


def _session_of(params: Raw) -> str | None:
    try:
        return _decode_session(params).session_id
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
