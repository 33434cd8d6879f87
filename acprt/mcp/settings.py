"""What a user chose for an endpoint that speaks MCP: the same for each of its connections, and never changed by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from acprt.mcp.cancellation import CancellationProfile
from acprt.mcp.era import ProtocolEra
from acprt.mcp.messages import Implementation

__all__ = ["CancelReading", "Settings", "Side"]

Side = Literal["client", "server"]

CancelReading = Literal["auto", "strict", "lenient"]
"""Whether a cancel with members that its era does not know counts. "strict": it is dropped. "lenient": it does, without
those members. "auto": strict in the two eras themselves, lenient where a version of 2025 was negotiated."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `mcp.dialect` and `mcp.negotiated`, which say what each means; `era` is None to find it out."""

    side: Side
    era: ProtocolEra | None
    info: Implementation | None
    capabilities: Mapping[str, Any]
    profile: CancellationProfile
    cancels: CancelReading
    implicit_legacy: bool
    strict_opening: bool
    strict_admission: bool
    close_stream: Callable[[int], object] | None

    def __post_init__(self) -> None:
        """Raises ValueError or TypeError for an option that would be wrong only when a peer meets it."""
        words = {"side": Side, "profile": CancellationProfile, "cancels": CancelReading}
        for option, kind in words.items():
            word, known = getattr(self, option), get_args(kind)
            if word not in known:
                raise ValueError(f"{option} is one of {', '.join(map(repr, known))}, not {word!r}")
        if not isinstance(self.info, Implementation | None):
            raise TypeError(f"info is an mcp.Implementation(name=…, version=…), not {self.info!r:.80}")
