"""The two patch rules of ACP v2: a field that keeps, clears or replaces, and `_meta` that merges by key.

Pure functions on plain values. They never change what they are given: an update may be kept, or sent on.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

__all__ = ["Meta", "merged_meta", "patched"]

T = TypeVar("T")

Meta = dict[str, Any]
"""The metadata of a record. Empty means none: the protocol knows no difference."""


def patched(stored: T, patch: T | UnsetType | None, cleared: T) -> T:
    """A field after an upsert: absent keeps `stored`, null gives `cleared`, a value replaces (patch semantics)."""
    if patch is UNSET:
        return stored
    return cleared if patch is None else patch


def merged_meta(stored: Meta, patch: Meta | UnsetType | None) -> Meta:
    """`_meta` after an upsert: absent keeps it, null clears it, an object replaces its keys one by one, without looking
    into them; a key whose value is null is removed.
    """
    if patch is UNSET:
        return stored
    if patch is None:
        return {}
    return {key: value for key, value in (stored | patch).items() if value is not None}
