"""Request ids: which values are legal, and what they are looked up by.

Legal are null, a signed 64-bit integer and a string that can be written again (ID-02). Python calls `1`, `True` and
`1.0` equal, so an id that was not checked must never reach a dict.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

__all__ = ["RequestId", "WireId", "is_request_id", "request_key"]

RequestId = int | str | None

_MIN: Final = -(2**63)
_MAX: Final = 2**63 - 1

WireId = Annotated[int, msgspec.Meta(ge=_MIN, le=_MAX)] | str | None
"""`RequestId` as msgspec checks it: refuses `true`, `1.0`, `1e2` and integers past 64 bits (ID-04)."""


def is_request_id(value: Any) -> bool:
    """Whether a decoded JSON value is a legal request id (ID-02, ID-03, ID-04)."""
    if value is None:
        return True
    if type(value) is str:
        return value.isascii() or _is_writable(value)
    return type(value) is int and _MIN <= value <= _MAX


def request_key(value: RequestId) -> RequestId:
    """What a legal id is looked up by: itself, since 5 and "5" differ. Raises ValueError for an illegal one (ID-05)."""
    if not is_request_id(value):
        raise ValueError(f"not a JSON-RPC request id: {value!r}")
    return value


def _is_writable(text: str) -> bool:
    """Whether `text` can be put on the wire: a lone surrogate, which `json` reads, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
