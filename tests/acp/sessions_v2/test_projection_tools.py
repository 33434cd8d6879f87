"""`Projection`: tool calls and terminals are patched, and their output is put together."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec import UNSET

from acprt.acp.sessions_v2 import Projection
from tests.acp.sessions_v2.wire import decoded, projected, text, update

# -- tool calls ---------------------------------------------------------------------------------------------------

FULL_CALL = update(
    "tool_call_update",
    toolCallId="c",
    name="edit_file",
    title="Edit",
    kind="edit",
    status="in_progress",
    content=[{"type": "content", "content": text("diff")}],
    locations=[{"path": "/a", "line": 3}],
    rawInput={"path": "/a"},
    rawOutput=[1],
    capabilities={"cancel": {}},
    _meta={"k": 1},
)


def test_first_update_creates_a_tool_call_with_the_protocol_defaults() -> None:
    call = projected(update("tool_call_update", toolCallId="c")).tool_calls["c"]
    assert (call.name, call.title, call.kind, call.status) == (None, None, "other", "pending")
    assert (call.content, call.locations, call.raw_input, call.raw_output) == ([], [], UNSET, UNSET)


def test_absent_members_leave_a_tool_call_as_it_was() -> None:
    once = projected(FULL_CALL).tool_calls["c"]
    twice = projected(FULL_CALL, update("tool_call_update", toolCallId="c")).tool_calls["c"]
    assert once == twice


def test_null_clears_each_member_of_a_tool_call_to_its_default() -> None:
    members = [name for name in FULL_CALL if name not in ("sessionUpdate", "toolCallId")]
    cleared = update("tool_call_update", toolCallId="c", **dict.fromkeys(members))
    assert (
        projected(FULL_CALL, cleared).tool_calls["c"]
        == projected(update("tool_call_update", toolCallId="c")).tool_calls["c"]
    )


def test_values_replace_members_of_a_tool_call() -> None:
    changed = update("tool_call_update", toolCallId="c", status="completed", content=[], rawOutput=False)
    call = projected(FULL_CALL, changed).tool_calls["c"]
    assert (call.status, call.content, call.raw_output, call.title) == ("completed", [], False, "Edit")
    assert call.is_final


def test_content_chunks_append_to_a_tool_call_and_create_one() -> None:
    piece = update("tool_call_content_chunk", toolCallId="c", content={"type": "content", "content": text("x")})
    assert len(projected(FULL_CALL, piece).tool_calls["c"].content) == 2
    assert len(projected(piece).tool_calls["c"].content) == 1


def test_status_that_is_not_known_is_kept_and_counts_as_in_progress() -> None:
    call = projected(update("tool_call_update", toolCallId="c", status="_napping")).tool_calls["c"]
    assert call.status == "_napping"
    assert not call.is_final


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


# -- terminals ----------------------------------------------------------------------------------------------------


def test_terminal_output_appends_chunks_and_a_snapshot_replaces_them() -> None:
    def more(data: bytes) -> dict[str, Any]:
        return update("terminal_output_chunk", terminalId="t", data=encoded(data))

    snapshot = update("terminal_update", terminalId="t", output={"data": encoded(b"new\n")})
    terminal = projected(more(b"\xff\x00a"), more(b"b")).terminals["t"]
    assert bytes(terminal.output) == b"\xff\x00ab"
    terminal = projected(more(b"old"), snapshot, more(b"more")).terminals["t"]
    assert terminal.text == "new\nmore"


def test_null_clears_terminal_members() -> None:
    full = update(
        "terminal_update", terminalId="t", command="make", cwd="/w", output={"data": encoded(b"x")},
        exitStatus={"exitCode": 1}, size={"cols": 80, "rows": 24}, capabilities={"cancel": {}},
    )  # fmt: skip
    cleared = update(
        "terminal_update", terminalId="t", command=None, cwd=None, output=None, exitStatus=None, size=None,
        capabilities=None,
    )  # fmt: skip
    assert projected(full).terminals["t"].has_exited
    assert (
        projected(full, cleared).terminals["t"] == projected(update("terminal_update", terminalId="t")).terminals["t"]
    )


def test_empty_exit_status_marks_a_terminal_as_exited() -> None:
    assert projected(update("terminal_update", terminalId="t", exitStatus={})).terminals["t"].has_exited


def test_only_the_end_of_terminal_output_is_kept() -> None:
    projection = Projection(terminal_bytes=4)
    for data in (b"abc", b"defg"):
        projection.apply(decoded(update("terminal_output_chunk", terminalId="t", data=encoded(data))))
    terminal = projection.terminals["t"]
    assert (bytes(terminal.output), terminal.dropped) == (b"defg", 3)


@pytest.mark.parametrize("data", ["@@@", "YQ", "Yé=="])
def test_bytes_that_are_no_base64_change_nothing_and_are_kept_aside(data: str) -> None:
    broken = update("terminal_output_chunk", terminalId="t", data=data)
    projection = projected(update("terminal_output_chunk", terminalId="t", data=encoded(b"ok")), broken)
    assert bytes(projection.terminals["t"].output) == b"ok"
    assert len(projection.unapplied) == 1
