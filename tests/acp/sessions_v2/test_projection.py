"""`Projection`: chunks, snapshots and patches become the current session. Updates come as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acprt.acp import v2
from acprt.acp.sessions_v2 import Projection
from tests.acp.sessions_v2.wire import chunk, decoded, projected, state, text, update

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


def test_every_update_of_the_schema_can_be_applied() -> None:
    """No variant is forgotten: each has its place in the projection."""
    from acprt.acp.sessions_v2.projection import _APPLY

    union: Any = msgspec.inspect.type_info(v2.SessionUpdate)
    union = getattr(union, "type", union)  # the mark of an open union may stand around it
    assert {variant.cls for variant in union.types} <= set(_APPLY)
