"""A history told again gives a fresh projection what the old one knew."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from acprt.acp.sessions_v2 import Projection
from acprt.acp.sessions_v2.replay import replay_of
from tests.acp.sessions_v2.wire import chunk, idle, projected, state, text, update

HISTORY: list[dict[str, Any]] = [
    update("terminal_output_chunk", terminalId="t", data=base64.b64encode(b"\xffout").decode()),
    update("terminal_update", terminalId="t", command="make", exitStatus={"exitCode": -2}, _meta={"t": 1}),
    chunk("q", "u", "user_message_chunk"),
    state("running"),
    chunk("hm", "t1", "agent_thought_chunk"),
    update(
        "tool_call_update", toolCallId="c", title="", kind="edit", rawInput=None, rawOutput={"a": [1]}, _meta={"k": 1}
    ),
    update("tool_call_content_chunk", toolCallId="c", content={"type": "terminal", "terminalId": "t"}),
    chunk("a", "a"),
    update("agent_message", messageId="a", _meta={"x": {"y": 1}}),
    update("agent_message", messageId="empty"),
    update("compaction_update", compactionId="k", status="completed", summary=[text("s")]),
    update("session_message", messageId="m", senderSessionId="o", content=[text("hey")]),
    update("plan_update", plan={"type": "items", "planId": "p", "entries": []}),
    update("plan_update", plan={"type": "_graph", "planId": "g", "nodes": 1}),
    update("session_info_update", title="T", _meta={"i": 1}),
    update("usage_update", used=1, size=2, cost={"amount": 1.0, "currency": "EUR"}),
    idle("end_turn"),
]

KEPT = [
    "timeline",
    "messages",
    "tool_calls",
    "terminals",
    "compactions",
    "session_messages",
    "plans",
    "title",
    "usage",
    "meta",
]


@pytest.mark.parametrize("kept", KEPT)
def test_replay_brings_back(kept: str) -> None:
    old = projected(*HISTORY)
    new = projected(*(msgspec.json.decode(msgspec.json.encode(each)) for each in replay_of(old)))
    assert _without_work(getattr(new, kept)) == _without_work(getattr(old, kept))


def test_replay_tells_each_message_and_tool_call_once() -> None:
    old = projected(chunk("a"), chunk("b"), update("tool_call_update", toolCallId="c"), chunk("c"))
    assert len(list(replay_of(old))) == 2


def test_replay_tells_no_state() -> None:
    new = projected(*(msgspec.json.decode(msgspec.json.encode(each)) for each in replay_of(projected(*HISTORY))))
    assert (new.state, new.works) == ("idle", 0)


def test_replay_of_nothing_is_nothing() -> None:
    assert list(replay_of(Projection())) == []


def _without_work(value: Any) -> Any:
    """As plain values: which work a message belonged to is not told again."""
    plain = msgspec.to_builtins(value)
    for record in plain if isinstance(plain, list) else ():
        record.pop("work", None)
    return plain
