"""Answers to permission requests go by the kind of option; ids and names are the agent's own words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acprt import acp
from acprt.acp import v1, v2


def question(*kinds: str) -> v1.RequestPermissionRequest:
    """Options named by their place."""
    options: list[Any] = [v1.PermissionOption(option_id=str(at), name="?", kind=kind) for at, kind in enumerate(kinds)]  # type: ignore[arg-type]  # kinds that no schema knows come, too
    return v1.RequestPermissionRequest(session_id="s", tool_call=v1.ToolCallPatch(tool_call_id="new"), options=options)


def chosen(response: v1.RequestPermissionResponse) -> str:
    match response.outcome:
        case v1.SelectedPermissionOutcome(option_id=option_id):
            return option_id
        case _:
            return "cancelled"


@pytest.mark.parametrize(
    ("answer", "kinds", "expected"),
    [
        (acp.allow_first, ["reject_once", "allow_always", "allow_once"], "2"),
        (acp.allow_first, ["reject_once", "allow_always", "reject_always"], "1"),
        (acp.allow_first, ["allow_once", "allow_once"], "0"),
        (acp.allow_first, ["new_kind", "reject_once"], "0"),
        (acp.allow_first, [], "cancelled"),
        (acp.allow_always, ["allow_once", "allow_always"], "1"),
        (acp.allow_always, ["reject_once", "allow_once"], "1"),
        (acp.allow_always, ["reject_once"], "cancelled"),
        (acp.reject, ["allow_once", "reject_always", "reject_once"], "2"),
        (acp.reject, ["allow_once", "reject_always"], "1"),
        (acp.reject, ["allow_once"], "cancelled"),
        (acp.cancelled, ["allow_once"], "cancelled"),
    ],
)
def test_option_is_chosen_by_kind(answer, kinds, expected) -> None:
    assert chosen(answer(question(*kinds))) == expected


def test_option_may_be_named() -> None:
    assert chosen(acp.select_option(question("allow_once", "reject_once"), "1")) == "1"
    with pytest.raises(ValueError, match="'2' is not among the options offered: 0, 1"):
        acp.select_option(question("allow_once", "reject_once"), "2")


def test_answer_is_of_the_version_of_the_question() -> None:
    options = [v2.PermissionOption(option_id="a", name="Yes", kind="allow_once")]
    asked = v2.RequestPermissionRequest(session_id="s", title="May I?", options=options)
    answer = acp.allow_first(asked)
    assert isinstance(answer, v2.RequestPermissionResponse)
    assert msgspec.to_builtins(answer) == {"outcome": {"outcome": "selected", "optionId": "a"}}
    assert isinstance(acp.cancelled(asked).outcome, v2.CancelledPermissionOutcome)
