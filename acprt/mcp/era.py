"""Which of the two eras a stdio connection speaks, told once from its opening.

Legacy is the `initialize` handshake of 2024-11-05; modern is 2026-07-28, where every request brings version and
capabilities in its `_meta`. The classifier is for the opening and for requests: notifications after the choice, cancels
above all, are routed around it. It sends nothing.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acprt.mcp.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from acprt.wire.frames import UNREADABLE, Frame, NotificationFrame, RequestFrame, ResponseFrame, parse

__all__ = [
    "AlreadyTerminal",
    "Decision",
    "EraPolicy",
    "EraRejection",
    "EraState",
    "ModernMetadata",
    "Opening",
    "OpeningKind",
    "ProtocolEra",
    "RejectedAndClosed",
    "RejectedUnderSelectedEra",
    "Selected",
    "StdioEraClassifier",
    "modern_metadata",
    "opening_of",
]

INITIALIZE: Final = "initialize"


class ProtocolEra(Enum):
    """The two eras, each of exactly one version. No other version is an alias of either: 2025-11-25 is neither."""

    LEGACY_2024 = "2024-11-05"
    MODERN_2026 = "2026-07-28"

    @classmethod
    def of_version(cls, version: str) -> ProtocolEra | None:
        """The era of exactly this version, if there is one."""
        return next((era for era in cls if era.value == version), None)


class EraPolicy(Enum):
    """Where a classifier starts: open for both eras, or in one of them from the first frame on."""

    AUTO = auto()
    MODERN_ONLY = auto()
    LEGACY_ONLY = auto()


class EraState(Enum):
    """Where a classifier is. It leaves `UNCLASSIFIED` once, and the other two never."""

    UNCLASSIFIED = auto()
    SELECTED = auto()
    TERMINAL_WITHOUT_ERA = auto()


class OpeningKind(Enum):
    """What a frame says about the era of who sent it."""

    MODERN_REQUEST = auto()
    LEGACY_INITIALIZE = auto()
    MIXED_INITIALIZE_AND_MODERN_METADATA = auto()
    REQUEST_WITHOUT_MODERN_METADATA = auto()
    NOTIFICATION = auto()
    RESPONSE = auto()
    MALFORMED = auto()


class EraRejection(Enum):
    """Why a frame cannot select an era, or does not belong to the selected one."""

    CROSS_ERA_TRAFFIC = auto()
    MIXED_ERA_MARKERS = auto()
    MISSING_MODERN_METADATA = auto()
    LEGACY_INITIALIZE_REQUIRED = auto()
    NOTIFICATION_CANNOT_CLASSIFY = auto()
    RESPONSE_CANNOT_CLASSIFY = auto()
    MALFORMED_OPENING_FRAME = auto()


class ModernMetadata(msgspec.Struct, frozen=True, gc=False):
    """What a modern request says of itself: the version it speaks, and the client's capabilities as raw JSON."""

    version: str
    capabilities: Raw


class Opening(msgspec.Struct, frozen=True, gc=False):
    """What one frame says; `version` is that of its modern metadata, where it has some."""

    kind: OpeningKind
    version: str | None = None


class Selected(msgspec.Struct, frozen=True, gc=False):
    """The frame is of this era, which the connection speaks from now on.

    `unsupported` is the version that a modern request asked for if that is not 2026-07-28: the era holds, the request
    cannot be served.
    """

    era: ProtocolEra
    unsupported: str | None = None


class RejectedUnderSelectedEra(msgspec.Struct, frozen=True, gc=False):
    """The frame does not belong to the era that the connection speaks, which stays."""

    era: ProtocolEra
    reason: EraRejection


class RejectedAndClosed(msgspec.Struct, frozen=True, gc=False):
    """The opening selects no era, and no later frame will."""

    reason: EraRejection


class AlreadyTerminal(msgspec.Struct, frozen=True, gc=False):
    """An earlier frame was the opening, and selected no era."""


Decision = Selected | RejectedUnderSelectedEra | RejectedAndClosed | AlreadyTerminal

_START = {
    EraPolicy.AUTO: None,
    EraPolicy.MODERN_ONLY: ProtocolEra.MODERN_2026,
    EraPolicy.LEGACY_ONLY: ProtocolEra.LEGACY_2024,
}


class StdioEraClassifier:
    """Decides the era of one connection, from its opening and its later requests.

    `implicit_legacy`: a request without modern metadata belongs to the legacy era, and under that era so does every
    notification; without it, only `initialize` selects legacy, and everything else under it is refused.
    """

    def __init__(self, policy: EraPolicy = EraPolicy.AUTO, *, implicit_legacy: bool = True) -> None:
        if not isinstance(policy, EraPolicy):
            raise TypeError(f"policy takes an EraPolicy, not {policy!r}")
        self.policy = policy
        self.implicit_legacy = implicit_legacy
        self._era = _START[policy]
        self._state = EraState.UNCLASSIFIED if self._era is None else EraState.SELECTED

    @property
    def state(self) -> EraState:
        """Whether the era is open, chosen, or out of reach."""
        return self._state

    @property
    def era(self) -> ProtocolEra | None:
        """The era, once there is one."""
        return self._era

    def classify(self, frame: Frame | Opening | bytes | bytearray | memoryview | str) -> Decision:
        """What to do with a frame: a line, a parsed frame, or what `opening_of` said of it. The first call with
        anything under `EraPolicy.AUTO` decides for good.
        """
        if self._state is EraState.TERMINAL_WITHOUT_ERA:
            return AlreadyTerminal()
        opening = frame if isinstance(frame, Opening) else opening_of(frame)
        if self._era is ProtocolEra.MODERN_2026:
            return _under_modern(opening)
        if self._era is ProtocolEra.LEGACY_2024:
            return self._under_legacy(opening)
        decision = self._unclassified(opening)
        if isinstance(decision, Selected):
            self._era, self._state = decision.era, EraState.SELECTED
        else:
            self._state = EraState.TERMINAL_WITHOUT_ERA
        return decision

    def _unclassified(self, opening: Opening) -> Selected | RejectedAndClosed:
        match opening.kind:
            case OpeningKind.MODERN_REQUEST:
                return _modern(opening.version)
            case OpeningKind.LEGACY_INITIALIZE:
                return Selected(ProtocolEra.LEGACY_2024)
            case OpeningKind.REQUEST_WITHOUT_MODERN_METADATA if self.implicit_legacy:
                return Selected(ProtocolEra.LEGACY_2024)
            case kind:
                return RejectedAndClosed(_NOT_MODERN[kind])

    def _under_legacy(self, opening: Opening) -> Decision:
        reason = EraRejection.LEGACY_INITIALIZE_REQUIRED
        match opening.kind:
            case OpeningKind.LEGACY_INITIALIZE:
                return Selected(ProtocolEra.LEGACY_2024)
            case OpeningKind.MODERN_REQUEST | OpeningKind.MIXED_INITIALIZE_AND_MODERN_METADATA:
                reason = EraRejection.CROSS_ERA_TRAFFIC
            case OpeningKind.REQUEST_WITHOUT_MODERN_METADATA | OpeningKind.NOTIFICATION if self.implicit_legacy:
                return Selected(ProtocolEra.LEGACY_2024)
        return RejectedUnderSelectedEra(ProtocolEra.LEGACY_2024, reason)


def opening_of(frame: Frame | bytes | bytearray | memoryview | str) -> Opening:
    """What a frame says about its era. Modern metadata counts only when it is complete; a batch is malformed."""
    if isinstance(frame, str):
        frame = frame.encode("utf-8", "replace")
    if isinstance(frame, bytes | bytearray | memoryview):
        frame = parse(bytes(frame))
    if isinstance(frame, NotificationFrame):
        return Opening(OpeningKind.NOTIFICATION)
    if isinstance(frame, ResponseFrame):
        return Opening(OpeningKind.RESPONSE)
    if not isinstance(frame, RequestFrame):
        return Opening(OpeningKind.MALFORMED)
    metadata = modern_metadata(frame.params)
    if metadata is None:
        is_handshake = frame.method == INITIALIZE
        return Opening(OpeningKind.LEGACY_INITIALIZE if is_handshake else OpeningKind.REQUEST_WITHOUT_MODERN_METADATA)
    if frame.method == INITIALIZE:
        return Opening(OpeningKind.MIXED_INITIALIZE_AND_MODERN_METADATA, metadata.version)
    return Opening(OpeningKind.MODERN_REQUEST, metadata.version)


def modern_metadata(params: Raw | bytes) -> ModernMetadata | None:
    """The two members of `_meta` that make a request a modern one; None unless both are there, with their types."""
    try:
        meta = _decode_params(params).meta
    except UNREADABLE:
        return None
    if meta is UNSET or meta.version is UNSET or meta.capabilities is UNSET:
        return None
    if not bytes(meta.capabilities).startswith(b"{"):
        return None
    return ModernMetadata(meta.version, meta.capabilities)


class _Meta(msgspec.Struct, gc=False):
    version: str | UnsetType = msgspec.field(name=PROTOCOL_VERSION, default=UNSET)
    capabilities: Raw | UnsetType = msgspec.field(name=CLIENT_CAPABILITIES, default=UNSET)


class _Params(msgspec.Struct, gc=False):
    meta: _Meta | UnsetType = msgspec.field(name="_meta", default=UNSET)


_decode_params = msgspec.json.Decoder(_Params).decode

_NOT_MODERN = {
    OpeningKind.LEGACY_INITIALIZE: EraRejection.CROSS_ERA_TRAFFIC,
    OpeningKind.MIXED_INITIALIZE_AND_MODERN_METADATA: EraRejection.MIXED_ERA_MARKERS,
    OpeningKind.REQUEST_WITHOUT_MODERN_METADATA: EraRejection.MISSING_MODERN_METADATA,
    OpeningKind.NOTIFICATION: EraRejection.NOTIFICATION_CANNOT_CLASSIFY,
    OpeningKind.RESPONSE: EraRejection.RESPONSE_CANNOT_CLASSIFY,
    OpeningKind.MALFORMED: EraRejection.MALFORMED_OPENING_FRAME,
}


def _modern(version: str | None) -> Selected:
    return Selected(ProtocolEra.MODERN_2026, None if version == ProtocolEra.MODERN_2026.value else version)


def _under_modern(opening: Opening) -> Decision:
    if opening.kind is OpeningKind.MODERN_REQUEST:
        return _modern(opening.version)
    return RejectedUnderSelectedEra(ProtocolEra.MODERN_2026, _NOT_MODERN[opening.kind])
