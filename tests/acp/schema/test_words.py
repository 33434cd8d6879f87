"""The docstrings of the generated modules are our own, and tell more than the names do."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import acprt
from acprt.acp import v1, v2
from tests.acp.schema.wording import shared_runs

SCHEMAS = os.environ.get("ACPRT_ACP_SCHEMAS")


@pytest.mark.skipif(SCHEMAS is None, reason="ACPRT_ACP_SCHEMAS names no directory with the schemas")
def test_no_sentence_is_taken_from_the_schemas() -> None:
    assert SCHEMAS is not None
    assert shared_runs(Path(SCHEMAS)) == set()


def own_structs(schema: ModuleType) -> list[Any]:
    found = [getattr(schema, name) for name in schema.__all__]
    return [
        each
        for each in found
        if isinstance(each, type) and issubclass(each, msgspec.Struct) and not each.__name__.startswith("Ext")
    ]


def told(cls: type) -> str:
    """A class's own docstring on one line."""
    return " ".join((vars(cls).get("__doc__") or "").split())


@pytest.mark.parametrize("schema", [v1, v2])
def test_every_class_says_what_it_is(schema: ModuleType) -> None:
    for cls in own_structs(schema):
        assert told(cls).removeprefix("Unstable. ").strip(".`") not in ("", cls.__name__), cls.__name__


@pytest.mark.parametrize("schema", [v1, v2])
def test_unstable_classes_say_so_first(schema: ModuleType) -> None:
    for cls in own_structs(schema):
        assert told(cls).startswith("Unstable. ") is cls.__acprt_unstable__, cls.__name__


@pytest.mark.parametrize("schema", [v1, v2])
def test_every_request_tells_who_sends_it_to_whom(schema: ModuleType) -> None:
    directions = ("Client to agent", "Agent to client", "Either direction", "Between a conductor and a proxy")
    for cls in own_structs(schema):
        if issubclass(cls, acprt.Request | acprt.Notification):
            assert sum(direction in told(cls) for direction in directions) == 1, cls.__name__


def test_what_must_have_been_offered_is_told_per_version() -> None:
    assert "needs `sessionCapabilities.fork`." in told(v1.ForkSessionRequest)
    assert "needs `session.fork`." in told(v2.ForkSessionRequest)
    assert "needs" not in told(v1.PromptRequest)


def test_the_same_class_may_mean_something_else_in_the_draft() -> None:
    assert "the answer comes when the turn is over" in told(v1.PromptRequest)
    assert "the answer comes once the message has its place" in told(v2.PromptRequest)
