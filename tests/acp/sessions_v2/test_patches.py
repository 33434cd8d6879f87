"""The two patch rules: a field is kept, cleared or replaced, and `_meta` merges by its top-level keys."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from acprt.acp.sessions_v2.patches import merged_meta, patched


def test_absent_field_keeps_what_is_stored() -> None:
    assert patched("old", UNSET, None) == "old"


def test_null_gives_the_cleared_value() -> None:
    assert patched("edit", None, "other") == "other"


@pytest.mark.parametrize("value", ["new", "", 0, False, []])
def test_value_replaces_also_an_empty_one(value) -> None:
    assert patched("old", value, None) == value


def test_absent_meta_keeps_it() -> None:
    assert merged_meta({"a": 1}, UNSET) == {"a": 1}


def test_null_meta_clears_it() -> None:
    assert merged_meta({"a": 1}, None) == {}


def test_meta_object_merges_by_key_and_a_null_key_is_removed() -> None:
    assert merged_meta({"a": 1, "b": 2, "c": 3}, {"b": 20, "c": None, "d": 4}) == {"a": 1, "b": 20, "d": 4}


def test_null_key_that_is_not_stored_leaves_nothing() -> None:
    assert merged_meta({}, {"a": None}) == {}


def test_nested_objects_of_meta_are_replaced_not_merged() -> None:
    assert merged_meta({"a": {"x": 1, "y": 2}}, {"a": {"x": 9, "z": None}}) == {"a": {"x": 9, "z": None}}


def test_meta_patch_and_store_are_not_changed() -> None:
    stored, patch = {"a": 1}, {"b": 2}
    merged_meta(stored, patch)
    assert (stored, patch) == ({"a": 1}, {"b": 2})
