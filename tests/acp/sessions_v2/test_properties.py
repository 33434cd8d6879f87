"""What holds for every sequence of updates: nothing is lost, nothing raises, and a replay tells the same."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from acprt.acp.sessions_v2 import Projection
from acprt.acp.sessions_v2.progress import PromptProgress
from acprt.acp.sessions_v2.replay import replay_of
from acprt.errors import RpcError
from tests.acp.sessions_v2.wire import decoded, idle, state, text, update

IDS = st.sampled_from(["a", "b"])
WORDS = st.text(max_size=3)
META = st.none() | st.dictionaries(st.sampled_from(["x", "y"]), st.none() | st.integers(0, 2), max_size=2)


def _updates(tag: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.fixed_dictionaries(required, optional=optional | {"_meta": META})
    return members.map(lambda each: update(tag, **each))


def _nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


CONTENT = st.lists(WORDS.map(text), max_size=2)
TOOL_CONTENT = WORDS.map(lambda words: {"type": "content", "content": text(words)})
DATA = st.sampled_from(["", "YQ==", "/w==", "broken"])

UPDATES = st.one_of(
    *(
        _updates(f"{kind}_chunk", {"messageId": IDS, "content": WORDS.map(text)}, {})
        for kind in ("user_message", "agent_message", "agent_thought")
    ),
    *(
        _updates(kind, {"messageId": IDS}, {"content": _nullable(CONTENT)})
        for kind in ("user_message", "agent_message", "agent_thought")
    ),
    _updates(
        "tool_call_update",
        {"toolCallId": IDS},
        {
            "title": _nullable(WORDS),
            "kind": _nullable(st.sampled_from(["edit", "_odd"])),
            "status": _nullable(st.sampled_from(["completed", "_odd"])),
            "content": _nullable(st.lists(TOOL_CONTENT, max_size=2)),
            "rawInput": _nullable(st.integers(0, 1)),
        },
    ),
    _updates("tool_call_content_chunk", {"toolCallId": IDS, "content": TOOL_CONTENT}, {}),
    _updates("terminal_output_chunk", {"terminalId": IDS, "data": DATA}, {}),
    _updates("terminal_update", {"terminalId": IDS}, {"output": _nullable(DATA.map(lambda data: {"data": data}))}),
    _updates(
        "compaction_update", {"compactionId": IDS, "status": st.just("completed")}, {"summary": _nullable(CONTENT)}
    ),
    _updates("session_info_update", {}, {"title": _nullable(WORDS)}),
    _updates("state_update", {"state": st.sampled_from(["running", "idle", "requires_action", "_odd"])}, {}),
    _updates("_unknown", {}, {"payload": st.integers()}),
)
SEQUENCES = st.lists(UPDATES, max_size=30)


def _projected(updates: list[Any]) -> Projection:
    projection = Projection()
    for each in updates:
        projection.apply(each)
    return projection


def _told(projection: Projection) -> Any:
    """What a replay must bring back, as plain values."""
    plain = msgspec.to_builtins([projection.timeline, projection.terminals, projection.title or None, projection.meta])
    for record in plain[0]:
        record.pop("work", None)
    for terminal in plain[1].values():
        terminal.pop("dropped", None)
    return plain


@settings(max_examples=150, deadline=None)
@given(SEQUENCES)
def test_updates_are_applied_without_being_changed(sequence: list[dict[str, Any]]) -> None:
    updates = [decoded(each) for each in sequence]
    before = copy.deepcopy(updates)
    _projected(updates)
    assert updates == before


@settings(max_examples=150, deadline=None)
@given(SEQUENCES)
def test_replay_of_any_history_tells_it(sequence: list[dict[str, Any]]) -> None:
    old = _projected([decoded(each) for each in sequence])
    new = _projected([decoded(msgspec.to_builtins(each)) for each in replay_of(old)])
    assert _told(new) == _told(old)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["running", "idle", "cancelled", "requires_action", "_odd", "accept", "refuse", "withdraw", "cancel"]
        ),
        max_size=12,
    )
)
def test_progress_never_goes_back(events: list[str]) -> None:
    """Whatever comes in whatever order: a stage that was reached stays reached, and an end keeps its reason."""
    projection = Projection()
    progress = PromptProgress(projection)
    seen = (False, False)
    end: str | None = None
    answered = False
    for number, event in enumerate(events):
        if event in ("accept", "refuse", "withdraw"):
            if answered:
                continue  # a request has one answer
            answered = True
            if event == "accept":
                progress.accepted("m")
            else:
                code = RpcError.request_cancelled() if event == "withdraw" else RpcError.invalid_params()
                progress.refused(code)
        elif event == "cancel":
            progress.cancelled()
        else:
            reason = {"idle": f"r{number}", "cancelled": "cancelled"}.get(event)
            made = decoded(idle(reason) if reason is not None else state(event))
            projection.apply(made)
            progress.updated(made)
        now = (progress.is_accepted, progress.is_finished)
        assert now >= seen
        if progress.is_finished:
            assert end is None or progress.stop_reason == end
            end = progress.stop_reason
            assert answered
        seen = now
