"""Members of patches: absent keeps, null clears, a value replaces; each survives both ways."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode

PATCHES = [
    (v1, "session_info_update", {}, "title"),
    (v1, "session_info_update", {}, "updatedAt"),
    (v1, "compaction_update", {"compactionId": "c", "status": "completed"}, "summary"),
    (v1, "compaction_update", {"compactionId": "c", "status": "failed"}, "error"),
    (v1, "subagent_update", {"sessionId": "x"}, "cwd"),
    (v1, "session_message", {"messageId": "m"}, "content"),
    (v2, "tool_call_update", {"toolCallId": "t"}, "title"),
    (v2, "tool_call_update", {"toolCallId": "t"}, "kind"),
    (v2, "tool_call_update", {"toolCallId": "t"}, "content"),
    (v2, "tool_call_update", {"toolCallId": "t"}, "rawInput"),
    (v2, "user_message", {"messageId": "m"}, "content"),
    (v2, "agent_message", {"messageId": "m"}, "content"),
    (v2, "agent_thought", {"messageId": "m"}, "content"),
    (v2, "terminal_update", {"terminalId": "t"}, "exitStatus"),
    (v2, "session_info_update", {}, "title"),
    (v2, "usage_update", {"used": 1, "size": 2}, "cost"),
    (v2, "subagent_update", {"sessionId": "x"}, "state"),
    (v2, "session_message", {"messageId": "m"}, "senderSessionId"),
]


def read(schema: Any, update: dict[str, Any]) -> Any:
    message = schema.SessionNotification if schema is v1 else schema.UpdateSessionNotification
    return decode(message, msgspec.json.encode({"sessionId": "s", "update": update})).update


@pytest.mark.parametrize(("schema", "tag", "required", "member"), PATCHES)
@pytest.mark.parametrize("wire", ["member", "_meta"])
def test_absent_and_null_are_two_things(
    schema: Any, tag: str, required: dict[str, Any], member: str, wire: str
) -> None:
    name = member if wire == "member" else "_meta"
    for update in ({"sessionUpdate": tag, **required}, {"sessionUpdate": tag, **required, name: None}):
        value = read(schema, update)
        assert msgspec.json.decode(msgspec.json.encode(value)) == update


def test_three_states_of_a_title() -> None:
    def title(**members: Any) -> Any:
        return read(v2, {"sessionUpdate": "session_info_update", **members}).title

    assert title() is UNSET
    assert title(title=None) is None
    assert title(title="x") == "x"


def test_malformed_member_of_a_patch_changes_nothing() -> None:
    assert read(v2, {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": 5}).title is UNSET


def test_tool_call_of_version_1_is_no_patch_with_three_states() -> None:
    call = read(v1, {"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": None})
    assert call == v1.ToolCallUpdate(tool_call_id="t")


def test_null_is_a_value_of_raw_input() -> None:
    call = read(v1, {"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawInput": None})
    assert call.raw_input is None
    assert call.raw_output is UNSET
