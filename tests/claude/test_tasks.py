"""The tracker: what runs, what is over, what is shown of it, however the frames come and however many are lost."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given, strategies

from acprt import claude


def frame(subtype: str, **members: Any) -> claude.Message:
    """A system frame as it comes."""
    message = claude.decode(json.dumps({"type": "system", "subtype": subtype, "session_id": "s"} | members))
    assert not isinstance(message, claude.UnknownMessage)
    return message


def started(task_id: str = "t", run_id: str | None = "r1", **members: Any) -> claude.Message:
    return frame("task_started", task_id=task_id, **_run(run_id), **members)


def updated(status: str, task_id: str = "t", run_id: str | None = "r1", **patch: Any) -> claude.Message:
    return frame("task_updated", task_id=task_id, **_run(run_id), patch={"status": status} | patch)


def notified(status: str = "completed", task_id: str = "t", run_id: str | None = "r1", **more: Any) -> Any:
    return frame("task_notification", task_id=task_id, **_run(run_id), status=status, **more)


def level(*tasks: dict[str, Any]) -> claude.Message:
    return frame(
        "background_tasks_changed", tasks=[{"task_type": "local_agent", "description": "d"} | t for t in tasks]
    )


def _run(run_id: str | None) -> dict[str, str]:
    return {} if run_id is None else {"run_id": run_id}


def tracked(*messages: claude.Message) -> claude.TaskTracker:
    tracker = claude.TaskTracker()
    for message in messages:
        tracker.apply(message)
    return tracker


def ids(tasks: list[claude.Task]) -> list[str]:
    return [task.task_id for task in tasks]


class TestEnds:
    @pytest.mark.parametrize(
        "ends",
        [
            [updated("completed")],
            [notified("completed")],
            [updated("completed"), notified("completed")],
            [notified("completed"), updated("completed")],
        ],
    )
    def test_end_by_update_by_notification_or_by_both_is_one_end(self, ends: list[claude.Message]) -> None:
        tracker = tracked(started(), *ends)
        assert (tracker.tasks["t"].is_finished, tracker.tasks["t"].status) == (True, "completed")
        assert tracker.background() == []

    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_killed_and_stopped_are_one_word(self, order: tuple[int, ...]) -> None:
        """After SIGTERM the notification comes before the update and has no path."""
        ends = [notified("stopped", output_file="", summary="d"), updated("killed"), level()]
        tracker = tracked(started(), level({"task_id": "t", "run_id": "r1"}), *(ends[at] for at in order))
        task = tracker.tasks["t"]
        assert (task.is_finished, task.status) == (True, "stopped")
        assert task.notification is not None
        assert task.notification.output_path is None
        assert tracker.activity() == []

    def test_later_notification_replaces_the_earlier(self) -> None:
        tracker = tracked(started(), notified(summary="first"), notified("failed", summary="second"))
        task = tracker.tasks["t"]
        assert task.notification is not None
        assert (task.notification.summary, task.status) == ("second", "failed")

    def test_word_of_a_later_release_on_a_notification_is_an_end(self) -> None:
        task = tracked(started(), notified("vanished")).tasks["t"]
        assert (task.is_finished, task.status) == (True, "vanished")

    def test_paused_task_runs_on(self) -> None:
        task = tracked(started(), updated("paused"), updated("running")).tasks["t"]
        assert (task.is_finished, task.status) == (False, "running")

    def test_patch_is_merged(self) -> None:
        tracker = tracked(started(description="old"), updated("running", description="new", is_backgrounded=True))
        tracker.apply(updated("failed", error="it broke", end_time=5))
        task = tracker.tasks["t"]
        assert (task.description, task.is_backgrounded, task.error, task.end_time) == ("new", True, "it broke", 5)


class TestRuns:
    def test_resumed_task_is_a_new_run_of_the_same_task(self) -> None:
        tracker = tracked(
            started(run_id="r1", tool_use_id="A", prompt="look"),
            notified(run_id="r1", tool_use_id="A", summary="one"),
            started(run_id="r2", tool_use_id="B"),
        )
        task = tracker.tasks["t"]
        assert (task.run_id, task.runs, task.is_finished, task.status) == ("r2", 2, False, "running")
        assert (task.tool_use_id, task.first_tool_use_id, task.prompt) == ("B", "A", "look")
        tracker.apply(notified(run_id="r2", tool_use_id="B", summary="two"))
        assert task.notification is not None
        assert (task.notification.summary, task.is_finished) == ("two", True)

    def test_frames_of_an_earlier_run_are_dropped(self) -> None:
        tracker = tracked(started(run_id="r1"), notified(run_id="r1", summary="one"), started(run_id="r2"))
        before = str(tracker.tasks)
        late = [notified("failed", run_id="r1"), updated("failed", run_id="r1"), started(run_id="r1", description="x")]
        assert [tracker.apply(message) for message in late] == [(), (), ()]
        assert str(tracker.tasks) == before

    def test_frames_without_a_run_are_never_late(self) -> None:
        tracker = tracked(started(run_id="r2"), notified("failed", run_id=None))
        assert (tracker.tasks["t"].status, tracker.tasks["t"].run_id) == ("failed", "r2")

    def test_frame_of_a_later_run_opens_it(self) -> None:
        """Its start was missed."""
        tracker = tracked(started(run_id="r1"), notified(run_id="r1"))
        tracker.apply(frame("task_progress", task_id="t", run_id="r2", description="again"))
        assert (tracker.tasks["t"].run_id, tracker.tasks["t"].is_finished) == ("r2", False)

    def test_start_that_comes_after_the_end_of_its_run_does_not_reopen_it(self) -> None:
        tracker = tracked(notified(run_id="r1"), started(run_id="r1"))
        assert tracker.tasks["t"].is_finished

    def test_unknown_parent_is_none(self) -> None:
        tracker = tracked(started("a"), started("b", parent_task_id="a"), started("c", parent_task_id="zz"))
        assert [task.parent_task_id for task in tracker.tasks.values()] == [None, "a", None]

    def test_finished_tasks_are_forgotten_at_last_running_ones_never(self) -> None:
        tracker = tracked(started("runs"))
        for number in range(2_000):
            tracker.apply(notified(task_id=f"t{number}"))
        assert len(tracker.tasks) == 1024
        assert "runs" in tracker.tasks

    def test_flood_of_tasks_that_never_end_is_bounded_and_costs_the_same_for_each(self) -> None:
        """Past the bound each costs what it did before; hundreds of times that when each looked for one to forget."""
        tracker = claude.TaskTracker()

        def seconds(first: int) -> float:
            began = time.process_time()
            for number in range(first, first + 10_000):
                tracker.apply(claude.TaskStartedMessage(task_id=f"t{number}", run_id="r1"))
            return time.process_time() - began

        within_the_bound = seconds(0)
        assert seconds(10_000) < 25 * within_the_bound
        assert len(tracker.tasks) == 10_000
        assert "t19999" in tracker.tasks

    def test_task_that_is_forgotten_while_it_is_listed_is_no_activity(self) -> None:
        tracker = tracked(level({"task_id": "listed"}), notified(task_id="listed", run_id=None))
        for number in range(2_000):
            tracker.apply(notified(task_id=f"t{number}"))
        assert "listed" not in tracker.tasks
        assert tracker.activity() == []


class TestActivity:
    def test_level_without_what_is_ambient(self) -> None:
        tracker = tracked(level({"task_id": "a"}, {"task_id": "b", "ambient": True}))
        assert ids(tracker.activity()) == ["a"]
        tracker.apply(level({"task_id": "b", "ambient": True}))
        assert tracker.activity() == []

    def test_ambient_start_makes_a_listed_task_ambient(self) -> None:
        tracker = tracked(level({"task_id": "a"}), started("a", run_id=None, ambient=True))
        assert tracker.activity() == []

    def test_housekeeping_is_in_the_list_but_no_activity(self) -> None:
        tracker = tracked(level({"task_id": "a"}), started("a", run_id=None, skip_transcript=True))
        assert tracker.activity() == []
        assert tracker.tasks["a"].skip_transcript

    def test_level_replaces(self) -> None:
        tracker = tracked(level({"task_id": "a"}, {"task_id": "b"}), level({"task_id": "c"}))
        assert ids(tracker.activity()) == ["c"]
        assert [task.is_finished for task in tracker.tasks.values()] == [True, True, False]

    def test_level_closes_what_it_no_longer_lists_and_opens_it_again(self) -> None:
        """The edge was lost, or is still on its way."""
        tracker = tracked(started(), level({"task_id": "t", "run_id": "r1"}), level())
        assert tracker.tasks["t"].is_finished
        tracker.apply(level({"task_id": "t", "run_id": "r1"}))
        assert not tracker.tasks["t"].is_finished

    def test_level_does_not_reopen_what_was_told_to_be_over(self) -> None:
        tracker = tracked(started(), notified(), level({"task_id": "t", "run_id": "r1"}))
        assert tracker.tasks["t"].is_finished
        assert tracker.activity() == []

    def test_foreground_agent_is_in_the_edges_only(self) -> None:
        tracker = tracked(level(), started(is_backgrounded=False, task_type="local_agent"), level({"task_id": "other"}))
        assert ids(tracker.activity()) == ["other"]
        assert not tracker.tasks["t"].is_finished

    def test_without_a_level_the_edges_count(self) -> None:
        """An older command."""
        tracker = tracked(started("a", is_backgrounded=True), started("b", is_backgrounded=False), started("c"))
        assert ids(tracker.activity()) == ["a", "c"]

    def test_level_of_an_earlier_run_is_dropped(self) -> None:
        tracker = tracked(started(run_id="r2"), level({"task_id": "t", "run_id": "r1"}))
        assert tracker.activity() == []

    def test_pending_runs_are_agents_and_workflows(self) -> None:
        kinds = ["local_bash", "local_agent", "local_workflow", "monitor_mcp", "tomorrow"]
        tracker = tracked(*(started(kind, task_type=kind) for kind in kinds))
        assert ids(tracker.pending_runs()) == ["local_agent", "local_workflow"]


class TestDisplay:
    REPORT = "The report.\n" + "x" * 20_000

    def shown(self, **members: Any) -> str | None:
        return claude.TaskTracker().display(notified(summary="notes for the model", **members))

    @pytest.mark.parametrize(
        ("members", "text"),
        [
            ({"handback": "send", "handback_report": {"text": REPORT}}, REPORT),
            ({"handback": "send", "handback_report": {"text": "r", "warning": "not reviewed"}}, "not reviewed\n\nr"),
            ({"handback": "flagged", "handback_report": {"text": REPORT, "warning": "w"}}, f"w\n\n{REPORT}"),
            ({"handback": "withheld"}, None),
            ({"handback": "send"}, "notes for the model"),
            ({"handback": "tomorrow"}, "notes for the model"),
            ({}, "notes for the model"),
        ],
    )
    def test_report_goes_in_the_place_of_the_summary(self, members: dict[str, Any], text: str | None) -> None:
        """Warning above the text, never cut; nothing where it was withheld; the summary where there is no report."""
        assert self.shown(**members) == text

    def test_housekeeping_shows_in_a_panel_only(self) -> None:
        tracker, end = claude.TaskTracker(), notified(summary="swept", skip_transcript=True)
        assert (tracker.display(end), tracker.display(end, panel=True)) == (None, "swept")

    def test_report_that_comes_again_as_a_message_is_known(self) -> None:
        tracker = tracked(notified(handback="send", handback_report={"text": "r", "toolUseId": "toolu_h"}))

        def origin(id: str) -> Any:
            members = {"kind": "peer", "handback": True, "handbackToolUseId": id}
            return claude.decode(json.dumps({"type": "user", "message": {"content": "r"}, "origin": members}))

        assert tracker.repeats_report(origin("toolu_h"))
        assert not tracker.repeats_report(origin("another"))


_frames = strategies.builds(
    lambda kind, task, run: kind(task_id=task, run_id=run),
    strategies.sampled_from(
        [
            started,
            notified,
            lambda task_id, run_id: updated("completed", task_id, run_id),
            lambda task_id, run_id: updated("running", task_id, run_id),
            lambda task_id, run_id: level({"task_id": task_id} | _run(run_id)),
            lambda task_id, run_id: level(),
        ]
    ),
    strategies.sampled_from(["a", "b"]),
    strategies.sampled_from([None, "r1", "r2", "r3"]),
)


class TestAnyOrder:
    @given(strategies.lists(_frames, max_size=12))
    def test_runs_only_go_forward_and_a_final_end_is_an_end(self, frames: list[claude.Message]) -> None:
        tracker = claude.TaskTracker()
        latest: dict[str, str] = {}
        for message in frames:
            tracker.apply(message)
            for task in tracker.tasks.values():
                assert (task.run_id or "") >= latest.get(task.task_id, "")
                latest[task.task_id] = task.run_id or ""
            assert all(not task.is_finished and not task.ambient for task in tracker.activity())
        for task_id in ("a", "b"):
            tracker.apply(notified(task_id=task_id, run_id="r9"))
        assert tracker.activity() == tracker.background() == tracker.pending_runs() == []
