"""The envelopes of the control protocol as messages, for whoever reads or writes the stream as it is.

A client never sees them: `acprt.claude.dialect` turns them into requests and responses of the runtime.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from acprt.claude.base import Message, Part

__all__ = ["ControlCancelRequestMessage", "ControlOutcome", "ControlRequestMessage", "ControlResponseMessage"]


class ControlRequestMessage(Message, type="control_request"):
    """One side wants something done: `request` has a `subtype` and its members."""

    request_id: str | int
    request: dict[str, Any]


class ControlOutcome(Part):
    """`subtype` success, with `response`; or error, with `error` and perhaps `error_code`."""

    subtype: str
    request_id: str | int | None = None
    response: Any = None
    error: str | None = None
    error_code: str | None = None


class ControlResponseMessage(Message, type="control_response"):
    """The answer to a control request."""

    response: ControlOutcome = field(default_factory=lambda: ControlOutcome(subtype=""))


class ControlCancelRequestMessage(Message, type="control_cancel_request"):
    """Its sender does not wait any more; nothing answers it."""

    request_id: str | int
