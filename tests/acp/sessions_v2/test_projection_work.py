"""`Projection`: the state of the session, and which work a message belongs to."""

from __future__ import annotations

import pytest

from acprt.acp import v2
from acprt.acp.sessions_v2 import Projection
from tests.acp.sessions_v2.wire import chunk, idle, projected, state


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
