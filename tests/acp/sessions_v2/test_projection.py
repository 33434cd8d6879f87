"""`Projection`: chunks, snapshots and patches of every kind become the current session. Updates come as JSON."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from acprt.acp import v2
from acprt.acp.sessions_v2 import Projection
from tests.acp.sessions_v2.wire import chunk, decoded, idle, state, text, update


def projected(*updates: dict[str, Any]) -> Projection:
    """The projection of these updates, in this order."""
    projection = Projection()
    for each in updates:
        projection.apply(decoded(each))
    return projection


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


# -- messages -----------------------------------------------------------------------------------------------------


def test_chunks_append_by_message_id() -> None:
    projection = projected(chunk("Hel", "a"), chunk("other", "b"), chunk("lo", "a"))
    assert [(message.id, message.text) for message in projection.messages] == [("a", "Hello"), ("b", "other")]


@pytest.mark.parametrize("kind", ["user", "agent", "thought"])
def test_each_kind_of_message_has_chunks_and_snapshots(kind: str) -> None:
    tag = "agent_thought" if kind == "thought" else f"{kind}_message"
    projection = projected(chunk("a", "m", f"{tag}_chunk"), update(tag, messageId="m", content=[text("b"), text("c")]))
    (message,) = projection.messages
    assert (message.kind, message.text) == (kind, "bc")


def test_message_ids_are_kept_apart_by_kind() -> None:
    """An id is unique among messages of the same type only."""
    projection = projected(chunk("deep", "m", "agent_thought_chunk"), chunk("said", "m"))
    assert [(message.kind, message.text) for message in projection.messages] == [("thought", "deep"), ("agent", "said")]
    message = projection.message("m", "thought")
    assert message is not None
    assert message.text == "deep"


def test_snapshot_replaces_what_chunks_had_built_and_later_chunks_append_to_it() -> None:
    projection = projected(
        chunk("draft", "a"), update("agent_message", messageId="a", content=[text("final")]), chunk("!", "a")
    )
    assert projection.messages[0].text == "final!"


@pytest.mark.parametrize("content", [None, []])
def test_null_and_empty_content_clear_a_message(content) -> None:
    projection = projected(chunk("draft", "a"), update("agent_message", messageId="a", content=content))
    assert projection.messages[0].content == []


def test_snapshot_without_content_keeps_it_and_makes_an_empty_message_of_a_new_id() -> None:
    projection = projected(
        chunk("kept", "a"), update("agent_message", messageId="a"), update("agent_message", messageId="b")
    )
    assert [message.text for message in projection.messages] == ["kept", ""]


def test_meta_of_snapshots_merges_and_meta_of_chunks_is_their_own() -> None:
    projection = projected(
        update("agent_message", messageId="a", _meta={"x": 1, "y": 2}),
        chunk("hi", "a") | {"_meta": {"x": 99}},
        update("agent_message", messageId="a", _meta={"y": None, "z": 3}),
    )
    assert projection.messages[0].meta == {"x": 1, "z": 3}


def test_updates_are_not_changed_by_later_ones() -> None:
    snapshot = decoded(update("agent_message", messageId="a", content=[text("one")]))
    projection = Projection()
    projection.apply(snapshot)
    projection.apply(decoded(chunk(" two", "a")))
    assert len(snapshot.content) == 1


def test_blocks_that_are_no_text_are_kept_in_content() -> None:
    image = {"type": "image", "data": "QQ==", "mimeType": "image/png"}
    projection = projected(update("agent_message", messageId="a", content=[text("see "), image, text("this")]))
    (message,) = projection.messages
    assert message.text == "see this"
    assert isinstance(message.content[1], v2.ImageContent)


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


# -- plans, options, info, usage ----------------------------------------------------------------------------------


def test_plans_are_replaced_by_id_and_removed() -> None:
    def plan(id: str, *steps: str) -> dict[str, Any]:
        entries = [{"content": step, "priority": "high", "status": "pending"} for step in steps]
        return update("plan_update", plan={"type": "items", "planId": id, "entries": entries})

    projection = projected(
        plan("p", "one"), plan("q", "x"), plan("p", "two", "three"), update("plan_removed", planId="q")
    )
    assert list(projection.plans) == ["p"]
    assert [entry.content for entry in projection.plans["p"].entries] == ["two", "three"]


def test_plan_of_an_unknown_kind_is_kept_under_its_id() -> None:
    projection = projected(update("plan_update", plan={"type": "_graph", "planId": "p", "nodes": [1]}))
    assert projection.plans["p"]["nodes"] == [1]


def test_options_and_commands_are_replaced_as_lists() -> None:
    def options(*ids: str) -> dict[str, Any]:
        listed = [{"type": "boolean", "configId": id, "name": id, "currentValue": True} for id in ids]
        return update("config_option_update", configOptions=listed)

    def commands(*names: str) -> dict[str, Any]:
        listed = [{"type": "command", "name": name, "description": "d"} for name in names]
        return update("available_commands_update", availableCommands=listed)

    projection = projected(options("a", "b"), options("c"), commands("x"), commands("y", "z"))
    assert [
        option.config_id for option in projection.config_options if isinstance(option, v2.SessionConfigBoolean)
    ] == ["c"]
    assert [command.name for command in projection.available_commands if isinstance(command, v2.Command)] == ["y", "z"]


def test_answer_of_a_setup_request_that_brings_no_options_keeps_what_updates_said() -> None:
    option = {"type": "boolean", "configId": "a", "name": "A", "currentValue": True}
    projection = projected(update("config_option_update", configOptions=[option]), state("running"))
    projection.apply_setup(v2.NewSessionResponse(session_id="s"))
    assert projection.available_commands == []
    command = v2.Command(name="c", description="d")
    projection.apply_setup(v2.NewSessionResponse(session_id="s", available_commands=[command]))
    assert projection.available_commands == [command]
    assert len(projection.config_options) == 1
    assert projection.state == "running"


def test_session_info_is_patched() -> None:
    projection = projected(
        update("session_info_update", title="A", updatedAt="2026-01-01T00:00:00Z", _meta={"a": 1}),
        update("session_info_update", updatedAt=None, _meta={"b": 2}),
    )
    assert (projection.title, projection.updated_at, projection.meta) == ("A", None, {"a": 1, "b": 2})


def test_usage_replaces_counts_and_patches_cost() -> None:
    cost = {"amount": 1.5, "currency": "EUR"}
    kept = projected(update("usage_update", used=1, size=9, cost=cost), update("usage_update", used=2, size=9)).usage
    assert kept is not None
    assert (kept.used, kept.cost) == (2, v2.Cost(amount=1.5, currency="EUR"))
    cleared = projected(
        update("usage_update", used=1, size=9, cost=cost), update("usage_update", used=2, size=9, cost=None)
    ).usage
    assert cleared is not None
    assert cleared.cost is None


# -- compactions, subagents, messages between sessions, notices ---------------------------------------------------


def test_compaction_begins_with_either_update_and_is_patched() -> None:
    piece = update("compaction_summary_chunk", compactionId="k", content=text("sum"))
    projection = projected(piece, update("compaction_update", compactionId="k", status="failed", error="no"), piece)
    compaction = projection.compactions["k"]
    assert (compaction.status, compaction.error, len(compaction.summary)) == ("failed", "no", 2)
    assert projected(piece).compactions["k"].status == "in_progress"


def test_subagent_is_patched() -> None:
    projection = projected(
        update("subagent_update", sessionId="child", title="T", cwd="/c", state={"state": "running"}),
        update("subagent_update", sessionId="child", title=None, state={"state": "idle", "stopReason": "end_turn"}),
    )
    child = projection.subagents["child"]
    assert (child.title, child.cwd) == (None, "/c")
    assert isinstance(child.state, v2.SessionState)
    assert child.state.stop_reason == "end_turn"


def test_messages_between_sessions_take_chunks_and_upserts_in_either_order() -> None:
    projection = projected(
        update("session_message_chunk", messageId="m", content=text("hi")),
        update("session_message", messageId="m", senderSessionId="other"),
        update("session_message_chunk", messageId="m", content=text("!")),
    )
    message = projection.session_messages["m"]
    assert (message.text, message.sender_session_id) == ("hi!", "other")


def test_notice_changes_nothing() -> None:
    projection = projected(update("notice", severity="info", title="Hello"))
    assert not projection.timeline
    assert not projection.unapplied


# -- what is not known --------------------------------------------------------------------------------------------


def test_unknown_update_is_kept_aside_and_changes_nothing() -> None:
    projection = projected(chunk("hi"), update("_party", guests=3))
    assert [dict(each) for each in projection.unapplied] == [{"sessionUpdate": "_party", "guests": 3}]
    assert len(projection.timeline) == 1


def test_only_the_last_hundred_unknown_updates_are_kept() -> None:
    projection = projected(*(update("_n", number=number) for number in range(150)))
    assert [each["number"] for each in projection.unapplied] == list(range(50, 150))


def test_what_is_no_update_at_all_is_kept_aside_too() -> None:
    """A projection never raises, whatever a caller made by hand."""
    plan_without_id: Any = v2.PlanUpdate(plan=v2.Unknown("type", {"type": "_graph"}))
    nonsense: Any = object()
    projection = Projection()
    assert projection.apply(plan_without_id) is None
    assert projection.apply(nonsense) is None
    assert list(projection.unapplied) == [plan_without_id, nonsense]


def test_timeline_has_the_order_of_first_appearance() -> None:
    projection = projected(
        chunk("q", "u", "user_message_chunk"),
        update("tool_call_update", toolCallId="c"),
        update("compaction_update", compactionId="k", status="in_progress"),
        chunk("a", "a"),
        update("tool_call_update", toolCallId="c", status="completed"),
    )
    assert [record.id for record in projection.timeline] == ["u", "c", "k", "a"]
    assert projection.timeline[1] is projection.tool_calls["c"]


# -- the state ----------------------------------------------------------------------------------------------------


def test_new_session_is_idle_and_has_done_no_work() -> None:
    projection = Projection()
    assert (projection.state, projection.is_busy, projection.works, projection.last_end) == ("idle", False, 0, None)


def test_work_begins_with_running_and_ends_with_the_first_idle() -> None:
    projection = projected(state("running"), idle("end_turn"))
    assert (projection.works, projection.in_work) == (1, False)
    assert projection.last_end is not None
    assert projection.last_end.stop_reason == "end_turn"


def test_requires_action_may_begin_work_and_does_not_interrupt_it() -> None:
    projection = projected(state("requires_action"), state("running"), state("requires_action"))
    assert (projection.works, projection.in_work, projection.state) == (1, True, "requires_action")


def test_repeated_snapshots_are_no_further_work_and_no_further_end() -> None:
    projection = projected(idle("end_turn"), state("running"), state("running"), idle("end_turn"), idle("cancelled"))
    assert projection.works == 1
    assert projection.last_end is not None
    assert projection.last_end.stop_reason == "end_turn"


@pytest.mark.parametrize("name", ["unknown", "_warming_up"])
def test_state_that_is_not_known_is_busy_but_begins_and_ends_no_work(name: str) -> None:
    projection = projected(state(name))
    assert (projection.state, projection.is_busy, projection.works) == (name, True, 0)
    projection = projected(state("running"), state(name))
    assert (projection.is_busy, projection.in_work) == (True, True)


def test_idle_without_a_reason_ends_work_too() -> None:
    projection = projected(state("running"), idle())
    assert projection.last_end is not None
    assert projection.last_end.stop_reason is None


def test_background_is_a_snapshot_of_every_state_update() -> None:
    listed = [{"type": "terminal", "terminalId": "t"}, {"type": "_dream"}]
    projection = projected(state("running", background=listed))
    assert projection.background is not None
    assert len(projection.background) == 2
    assert projected(state("running", background=listed), state("idle", background=[])).background == []
    assert projected(state("running", background=listed), state("idle")).background is None


def test_messages_belong_to_the_work_they_were_first_seen_in() -> None:
    """A user's message before any work belongs to the next one: prompts are inserted before the work on them begins."""
    projection = projected(
        chunk("q1", "u1", "user_message_chunk"), state("running"), chunk("a1", "a1"), idle("end_turn"),
        chunk("by the way", "b"),
        chunk("q2", "u2", "user_message_chunk"), state("running"), chunk("a2", "a2"), chunk("late", "a1"),
    )  # fmt: skip
    works = [(message.id, message.work) for message in projection.messages]
    assert works == [("u1", 1), ("a1", 1), ("b", None), ("u2", 2), ("a2", 2)]


def test_messages_replayed_by_a_resume_wait_for_no_work() -> None:
    projection = projected(chunk("q", "u", "user_message_chunk"), chunk("a", "a"), state("running"), chunk("b", "b"))
    projection.apply_setup(v2.ResumeSessionResponse())
    assert [message.work for message in projection.messages] == [1, None, 1]
    projection = projected(chunk("q", "u", "user_message_chunk"), idle())
    projection.apply_setup(v2.ResumeSessionResponse())
    assert [message.work for message in projection.messages] == [None]


def test_every_update_of_the_schema_can_be_applied() -> None:
    """No variant is forgotten: each has its place in the projection."""
    from acprt.acp.sessions_v2.projection import _APPLY

    union: Any = msgspec.inspect.type_info(v2.SessionUpdate)
    union = getattr(union, "type", union)  # the mark of an open union may stand around it
    assert {variant.cls for variant in union.types} <= set(_APPLY)
