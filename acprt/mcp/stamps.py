"""What the modern era wants in every message beside its own members: metadata on requests, a type on results.

A member that is there already is never touched, and an unknown one is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from acprt.wire.frames import NO_PARAMS, UNREADABLE

__all__ = ["stamped_params", "stamped_result"]

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_to_json = msgspec.json.Encoder().encode

_CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_COMPLETE = Raw(b'"complete"')
_NOT_CACHED = {"ttlMs": Raw(b"0"), "cacheScope": Raw(b'"private"')}


def stamped_params(params: Any, meta: Mapping[str, Raw]) -> Raw | None:
    """`params` with the entries of `meta` added to its `_meta`. None for what is no object, or cannot be written."""
    try:
        members = {} if params is None or params is NO_PARAMS else _decode_members(_to_json(params))
        own = _decode_members(members["_meta"]) if "_meta" in members else {}
        members["_meta"] = Raw(_to_json({**meta, **own}))
        return Raw(_to_json(members))
    except (*UNREADABLE, TypeError, ValueError, OverflowError):
        return None


def stamped_result(method: str, result: Raw, meta: Mapping[str, Raw]) -> Raw | None:
    """A result of `method` with the members that 2026-07-28 requires. None for what is no object."""
    try:
        members = _decode_members(result)
        members.setdefault("resultType", _COMPLETE)
        if method in _CACHEABLE:
            for name, value in _NOT_CACHED.items():
                members.setdefault(name, value)
        if meta:
            own = _decode_members(members["_meta"]) if "_meta" in members else {}
            members["_meta"] = Raw(_to_json({**meta, **own}))
        return Raw(_to_json(members))
    except UNREADABLE:
        return None
