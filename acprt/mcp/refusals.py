"""What the sender of a frame is told that does not belong to the era of its connection."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from acprt.errors import RpcError
from acprt.mcp.era import (
    AlreadyTerminal,
    Decision,
    EraRejection,
    ProtocolEra,
    RejectedAndClosed,
    RejectedUnderSelectedEra,
    Selected,
)
from acprt.mcp.errors import unsupported_protocol_version
from acprt.mcp.listens import LISTEN
from acprt.mcp.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from acprt.wire.frames import UNREADABLE, NotificationFrame, RequestFrame

__all__ = ["DISCOVER", "member_of", "refusal_of", "refusal_of_method"]

DISCOVER: Final = "server/discover"

_LEGACY_ONLY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_MODERN_ONLY = frozenset({DISCOVER, LISTEN})
_MODERN = ProtocolEra.MODERN_2026

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def refusal_of_method(era: ProtocolEra, method: str) -> RpcError | None:
    """-32601 for a method that the era does not have, whatever handlers there are."""
    gone = _LEGACY_ONLY if era is _MODERN else _MODERN_ONLY
    return RpcError.method_not_found(method) if method in gone else None


def refusal_of(decision: Decision, frame: RequestFrame | NotificationFrame) -> RpcError:
    """What the sender of a frame is told that the classifier refused."""
    match decision:
        case RejectedUnderSelectedEra(era=ProtocolEra.MODERN_2026, reason=EraRejection.MISSING_MODERN_METADATA):
            return RpcError.invalid_params(
                f"params._meta must hold {PROTOCOL_VERSION}, a string, and {CLIENT_CAPABILITIES}, an object"
            )
        case RejectedUnderSelectedEra(era=ProtocolEra.MODERN_2026):  # an initialize, with modern metadata or without
            asked = member_of(frame.params, "protocolVersion")
            return unsupported_protocol_version(asked if isinstance(asked, str) else None, [_MODERN.value])
        case RejectedUnderSelectedEra(era=era, reason=reason):
            return _invalid_opening(reason, [era.value])
        case RejectedAndClosed(reason=reason):
            return _invalid_opening(reason, [era.value for era in ProtocolEra])
        case AlreadyTerminal() | Selected():
            return RpcError.invalid_request("the opening of this connection selected no protocol version")


def _invalid_opening(reason: EraRejection, supported: list[str]) -> RpcError:
    return RpcError.invalid_request({"reason": reason.name.lower(), "supported": supported})


def member_of(raw: Raw, name: str) -> Any:
    """One member of a raw object as a plain value; None when there is none."""
    try:
        members = _decode_members(raw)
        return msgspec.json.decode(members[name]) if name in members else None
    except UNREADABLE:
        return None
