"""`notifications/cancelled` of both MCP eras: one frame in, one typed value out, and back.

The codec is told which era the connection speaks and which peer sent the frame. It knows no connection and no live
request, guesses no era, adds no metadata, and its errors repeat neither the reason nor an id of the peer. Who may
cancel what is decided by whoever holds the requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acprt.mcp.era import ProtocolEra
from acprt.mcp.ids import (
    MAX_NUMBER_BYTES,
    RequestId,
    correlation_key,
    encode_request_id,
    is_short_enough,
    parse_request_id,
)
from acprt.mcp.meta import (
    RESERVED_PREFIX,
    SUBSCRIPTION_ID,
    MetadataError,
    check_metadata,
    parse_metadata,
)
from acprt.wire.frames import NO_PARAMS, NotificationFrame, RequestFrame

__all__ = [
    "NOTIFICATIONS_CANCELLED",
    "CancellationErrorKind",
    "CancellationProfile",
    "CancellationSender",
    "CancellationWireCodecError",
    "CancellationWireMessage",
    "CancelledParams",
    "FinalCancelledNotificationParams",
    "Legacy2024",
    "Modern2026",
]

NOTIFICATIONS_CANCELLED: Final = "notifications/cancelled"

CancellationProfile = Literal["0.5", "0.8"]
"""Which rules apply where implementations of the two eras differ over time. They differ in two points:

"0.5" refuses `_meta` on a legacy cancel and looks at no subscription id. "0.8" accepts legacy `_meta` without the keys
of the modern era, and wants the subscription id in a server's modern cancel, if there is one, to be the request id.
"""


class CancellationSender(Enum):
    """The peer that originated a frame."""

    CLIENT = "client"
    SERVER = "server"


class CancellationErrorKind(StrEnum):
    """The six ways in which a frame is no cancel, or a value cannot be written as one."""

    INVALID_ENVELOPE = "InvalidEnvelope"
    REQUEST_ID_PRESENT = "RequestIdPresent"
    UNEXPECTED_METHOD = "UnexpectedMethod"
    MISSING_PARAMETERS = "MissingParameters"
    INVALID_PARAMETERS = "InvalidParameters"
    ENCODE_FAILURE = "EncodeFailure"


_WHY = {
    CancellationErrorKind.INVALID_ENVELOPE: "the frame is no JSON-RPC 2.0 message",
    CancellationErrorKind.REQUEST_ID_PRESENT: "a cancel is a notification, the frame has an id",
    CancellationErrorKind.UNEXPECTED_METHOD: "the frame has another method",
    CancellationErrorKind.MISSING_PARAMETERS: "the cancel has no params",
    CancellationErrorKind.INVALID_PARAMETERS: "the params of the cancel are not those of this era",
    CancellationErrorKind.ENCODE_FAILURE: "the cancel cannot be written",
}
_METHOD_SHOWN = 100  # characters: the whole is in `.method`


class CancellationWireCodecError(ValueError):
    """A frame that is no cancel of the era, or a value that cannot be written as one. Compared by value.

    `kind` says which of the six ways it is, `era` which rules were applied; `method` is the frame's method where that
    was the mistake, else None. The peer's reason and ids are never part of it.
    """

    def __init__(self, kind: CancellationErrorKind, era: ProtocolEra, method: str | None = None) -> None:
        super().__init__(kind, era, method)
        self.kind = kind
        self.era = era
        self.method = method

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CancellationWireCodecError) and self.args == other.args

    def __hash__(self) -> int:
        return hash(self.args)

    def __str__(self) -> str:
        named = "" if self.method is None else f": {self.method[:_METHOD_SHOWN]!r}"
        return f"{self.kind} ({self.era.value}): {_WHY[self.kind]}{named}"


if TYPE_CHECKING:
    _TextIfAny = str | None
    _MetaIfAny = Mapping[str, Raw] | None
else:  # what msgspec reads: a member that is absent is None, but null on the wire is none of these
    _TextIfAny = str
    _MetaIfAny = dict[str, Raw]

_MEMBERS = {"request_id": "requestId", "meta": "_meta"}


class CancelledParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_MEMBERS, gc=False):
    """The params of 2024-11-05. The payload is closed: no other member is accepted.

    `request_id` keeps its spelling (`SpelledInteger`); `meta` exists in profile "0.8" only.
    """

    request_id: RequestId
    reason: _TextIfAny = None
    meta: _MetaIfAny = None


class FinalCancelledNotificationParams(msgspec.Struct, frozen=True, gc=False):
    """The params of 2026-07-28. The payload is open: `additional` holds the members that have no meaning here, raw as
    they came; they are written again and never looked into.
    """

    request_id: RequestId
    reason: str | None = None
    meta: Mapping[str, Raw] | None = None
    additional: Mapping[str, Raw] = {}


class CancellationWireMessage(msgspec.Struct, frozen=True, gc=False):
    """One cancel on the wire: `Legacy2024` or `Modern2026`, by the era of the connection it belongs to.

    `decode` reads a frame, `encode` writes it; what `decode` accepted, `encode` writes with the same meaning and the
    same spelling of every number. Both follow the rules of `profile`.
    """

    era: ClassVar[ProtocolEra]

    sender: CancellationSender
    params: CancelledParams | FinalCancelledNotificationParams
    profile: CancellationProfile = "0.5"

    @staticmethod
    def decode(
        era: ProtocolEra,
        sender: CancellationSender,
        frame: bytes | bytearray | memoryview | str | NotificationFrame | RequestFrame,
        *,
        profile: CancellationProfile = "0.5",
    ) -> Legacy2024 | Modern2026:
        """Read a frame that `sender` sent on a connection of `era`: a line of JSON, or a frame that was parsed before.

        Raises CancellationWireCodecError; the first of these that applies: no JSON-RPC 2.0 message, an id, another
        method, no params (null counts as none), params against the rules of the era. Of a member that stands twice
        the last one counts; `admit_frame` refuses such frames.
        """
        params: CancelledParams | None = None
        text: bytes | Raw = b""
        try:
            if type(frame) is bytes:
                params = _decode_usual(frame).params
                text = frame
            else:
                params, text = _usual_params(frame)
        except UNREADABLE:
            pass  # raised below, behind this block: an error would hold this one, and that the peer's words
        if params is None or params.meta is not None:
            return _decode_exactly(era, sender, frame, profile)
        id = params.request_id
        # A zero may be spelled -0; a short text holds no integer that is too long.
        if not (is_short_enough(id) if type(id) is str else id != 0 and len(text) <= MAX_NUMBER_BYTES):
            return _decode_exactly(era, sender, frame, profile)
        if profile not in _PROFILES:
            raise ValueError(f"the profiles are {_PROFILES}, not {profile!r}")
        if era is _MODERN:
            return Modern2026(sender, FinalCancelledNotificationParams(id, params.reason), profile)
        if era is not _LEGACY:
            raise TypeError(f"era takes a ProtocolEra, not {era!r}")
        return Legacy2024(sender, params, profile)

    def encode(self) -> bytes:
        """The line of this notification, without terminator and without an id; members of the params sorted by name.

        Raises CancellationWireCodecError: `EncodeFailure` for what cannot be written, `InvalidParameters` for what
        `decode` would refuse under the same profile.
        """
        raise NotImplementedError("encode one of Legacy2024 and Modern2026")


class Legacy2024(CancellationWireMessage, frozen=True, gc=False):
    """A cancel of 2024-11-05."""

    era: ClassVar[ProtocolEra] = ProtocolEra.LEGACY_2024

    params: CancelledParams

    def encode(self) -> bytes:
        """The line, as `CancellationWireMessage.encode` says."""
        params = self.params
        if params.meta is not None and not _is_legacy_meta(params.meta, self.profile):
            raise CancellationWireCodecError(CancellationErrorKind.INVALID_PARAMETERS, self.era)
        return _encode(self.era, params.request_id, params.reason, params.meta, {})


class Modern2026(CancellationWireMessage, frozen=True, gc=False):
    """A cancel of 2026-07-28."""

    era: ClassVar[ProtocolEra] = ProtocolEra.MODERN_2026

    params: FinalCancelledNotificationParams

    def encode(self) -> bytes:
        """The line, as `CancellationWireMessage.encode` says."""
        params = self.params
        if params.meta is not None and not _is_modern_meta(params.meta, self.sender, params.request_id, self.profile):
            raise CancellationWireCodecError(CancellationErrorKind.INVALID_PARAMETERS, self.era)
        return _encode(self.era, params.request_id, params.reason, params.meta, params.additional)


UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)

_PROFILES = ("0.5", "0.8")
_LEGACY, _MODERN = ProtocolEra.LEGACY_2024, ProtocolEra.MODERN_2026  # an attribute of an Enum costs 60 ns on 3.11


# -- decoding ---------------------------------------------------------------------------------------------------------
#
# Nearly every cancel is an id and perhaps a reason, so that shape is decoded in one step, straight into the params of
# the result. It refuses whatever needs a second look, and then the exact way decides alone.


class _UsualFrame(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    method: Literal["notifications/cancelled"]
    params: CancelledParams


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Raw, so that the last member of a name is the one that counts, whatever the others were."""

    jsonrpc: Raw
    method: Raw
    id: Raw | UnsetType = UNSET
    params: Raw = NO_PARAMS


_decode_usual = msgspec.json.Decoder(_UsualFrame).decode
_decode_usual_params = msgspec.json.Decoder(CancelledParams).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_to_json = msgspec.json.Encoder().encode


def _usual_params(frame: Any) -> tuple[CancelledParams, bytes | Raw]:
    if isinstance(frame, NotificationFrame) and frame.method == NOTIFICATIONS_CANCELLED:
        return _decode_usual_params(frame.params), frame.params
    line = _line_of(frame)
    return _decode_usual(line).params, line


def _line_of(frame: Any) -> bytes:
    """The bytes of what is not a parsed frame; a frame that only the exact way may look at is no JSON."""
    if isinstance(frame, NotificationFrame | RequestFrame):
        return b""
    return frame.encode() if isinstance(frame, str) else bytes(frame)


def _decode_exactly(
    era: ProtocolEra, sender: CancellationSender, frame: Any, profile: CancellationProfile
) -> Legacy2024 | Modern2026:
    if profile not in _PROFILES:
        raise ValueError(f"the profiles are {_PROFILES}, not {profile!r}")
    if not isinstance(era, ProtocolEra):
        raise TypeError(f"era takes a ProtocolEra, not {era!r}")
    kinds = CancellationErrorKind
    envelope = _envelope_of(frame)
    if envelope is None:
        raise CancellationWireCodecError(kinds.INVALID_ENVELOPE, era)
    method, id_token, params = envelope
    if id_token is not UNSET:
        legal = parse_request_id(bytes(id_token)) is not None
        raise CancellationWireCodecError(kinds.REQUEST_ID_PRESENT if legal else kinds.INVALID_ENVELOPE, era)
    if method != NOTIFICATIONS_CANCELLED:
        raise CancellationWireCodecError(kinds.UNEXPECTED_METHOD, era, method)
    if len(params) == 0 or bytes(params) == b"null":
        raise CancellationWireCodecError(kinds.MISSING_PARAMETERS, era)
    members = _members_of(params, null_meta_is_none=era is _LEGACY and profile == "0.8")
    if members is not None:
        id, reason, meta, additional = members
        if era is _MODERN:
            if meta is None or _is_modern_meta(meta, sender, id, profile):
                return Modern2026(sender, FinalCancelledNotificationParams(id, reason, meta, additional), profile)
        elif not additional and (meta is None or _is_legacy_meta(meta, profile)):
            return Legacy2024(sender, CancelledParams(id, reason, meta), profile)
    raise CancellationWireCodecError(kinds.INVALID_PARAMETERS, era)


def _envelope_of(frame: Any) -> tuple[str, Raw | UnsetType, Raw] | None:
    """Method, id and params of a JSON-RPC 2.0 message, else None."""
    if isinstance(frame, NotificationFrame):
        return frame.method, UNSET, frame.params
    if isinstance(frame, RequestFrame):
        return frame.method, Raw(_to_json(frame.id)), frame.params
    try:
        line = _line_of(frame)
        if not line.isascii():
            line.decode()  # msgspec does not look into a member that it keeps raw
        envelope = _decode_envelope(line)
        if _decode_text(envelope.jsonrpc) != "2.0":
            return None
        return _decode_text(envelope.method), envelope.id, envelope.params
    except UNREADABLE:
        return None


def _members_of(
    params: Raw, *, null_meta_is_none: bool
) -> tuple[RequestId, str | None, dict[str, Raw] | None, dict[str, Raw]] | None:
    """Id, reason, metadata and the rest, where each of them is what both eras ask of it; else None."""
    try:
        if b"\n" in bytes(params):  # what is kept raw will be written on one line
            params = Raw(msgspec.json.format(bytes(params), indent=-1))
        members = _decode_members(params)
        id = parse_request_id(bytes(members.pop("requestId", NO_PARAMS)))
        reason = _decode_text(members.pop("reason")) if "reason" in members else None
        meta = members.pop("_meta", None)
        if meta is None or (null_meta_is_none and bytes(meta) == b"null"):
            return None if id is None else (id, reason, None, members)
        return None if id is None else (id, reason, parse_metadata(meta), members)
    except (*UNREADABLE, MetadataError):
        return None


def _is_legacy_meta(meta: Mapping[str, Raw], profile: CancellationProfile) -> bool:
    """Keys of the reserved prefix came with later revisions, the six of the modern era among them."""
    return profile == "0.8" and not any(key.startswith(RESERVED_PREFIX) for key in meta)


def _is_modern_meta(
    meta: Mapping[str, Raw], sender: CancellationSender, id: RequestId, profile: CancellationProfile
) -> bool:
    """A subscription id is an id and, from a server, that of the listen request which ends."""
    if SUBSCRIPTION_ID not in meta:
        return True
    subscription = parse_request_id(bytes(meta[SUBSCRIPTION_ID]))
    if subscription is None:
        return False
    if profile == "0.5" or sender is not CancellationSender.SERVER:
        return True
    return correlation_key(subscription) == correlation_key(id)


# -- encoding ---------------------------------------------------------------------------------------------------------

_LINE = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}'
_OWN_MEMBERS = frozenset({"requestId", "reason", "_meta"})


def _encode(
    era: ProtocolEra,
    id: RequestId,
    reason: str | None,
    meta: Mapping[str, Raw] | None,
    additional: Mapping[str, Raw],
) -> bytes:
    try:
        members = {"requestId": encode_request_id(id)}
        if reason is not None:
            if not isinstance(reason, str):
                raise TypeError("reason is a string")
            members["reason"] = _to_json(reason)
        if meta is not None:
            check_metadata(meta)
            members["_meta"] = _object({key: _to_json(value) for key, value in meta.items()})
        for name, value in additional.items():
            if name in _OWN_MEMBERS:
                raise ValueError("a member of its own is no additional one")
            members[name] = _to_json(value)
        line = _LINE % _object(members)
        return line if b"\n" not in line else msgspec.json.format(line, indent=-1)
    except (*UNREADABLE, TypeError, ValueError, AttributeError, OverflowError):
        pass  # raised below, for the same reason as in `decode`
    raise CancellationWireCodecError(CancellationErrorKind.ENCODE_FAILURE, era)


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(_to_json(name) + b":" + members[name] for name in sorted(members)) + b"}"
