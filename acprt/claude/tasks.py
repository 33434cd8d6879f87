"""What runs beside the conversation, put together from the task frames: which run, how far, what to show of its end.

The frames overlap: an end may be told by an update, by a notification, by both in any order, or only by the level that
no longer lists it. Late frames of an earlier run are dropped. It is state of one process: make one tracker for each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import msgspec

from acprt.claude.base import Message
from acprt.claude.messages import UserMessage
from acprt.claude.task_messages import (
    BackgroundTask,
    BackgroundTasksChangedMessage,
    TaskHandback,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskStatus,
    TaskUpdatedMessage,
    TaskUsage,
)

__all__ = ["Task", "TaskTracker"]

_KEPT = 1024  # tasks, and reports, beyond which the oldest finished are forgotten, and so is what is late of them
_MOST = 10_000  # tasks at all, so that frames which only ever start some do not fill the memory: some 8 MB
_ENDED = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.STOPPED, TaskStatus.KILLED})
_AWAITED = frozenset({"local_agent", "local_workflow"})  # shells and monitors are never waited for


class Task(msgspec.Struct, kw_only=True):
    """One task, over all its runs; `run_id` and `tool_use_id` are those of the latest."""

    task_id: str
    run_id: str | None = None
    status: str = TaskStatus.RUNNING
    """What was last said: a `TaskStatus`, with stopped for killed, or a word of a later release."""
    is_finished: bool = False
    """Whether the latest run is over; true also when only the level said so, and `status` tells nothing of it."""
    runs: int = 0
    """How many runs were seen to start."""
    description: str = ""
    task_type: str | None = None
    subagent_type: str | None = None
    tool_use_id: str | None = None
    """The call that started the latest run."""
    first_tool_use_id: str | None = None
    """The call that started the first one: frames from inside the task name it in every run."""
    parent_task_id: str | None = None
    prompt: str | None = None
    is_backgrounded: bool | None = None
    ambient: bool = False
    skip_transcript: bool = False
    last_tool_name: str | None = None
    progress: str | None = None
    error: str | None = None
    end_time: int | float | None = None
    usage: TaskUsage | None = None
    notification: TaskNotificationMessage | None = None
    """How it ended last; a later run's replaces it."""


class TaskTracker:
    """Feed it every message with `apply`; `tasks` holds what is known by task id."""

    def __init__(self) -> None:
        self.tasks: OrderedDict[str, Task] = OrderedDict()
        self._finished: OrderedDict[str, None] = OrderedDict()  # in the order of their ends
        self._level: dict[str, BackgroundTask] | None = None  # None: this process never told it
        self._reports: OrderedDict[str, None] = OrderedDict()  # hand-backs that were notified, by the subagent's block
        self._steps: dict[type, Callable[..., tuple[Task, ...]]] = {
            TaskStartedMessage: self._started,
            TaskProgressMessage: self._progressed,
            TaskUpdatedMessage: self._updated,
            TaskNotificationMessage: self._notified,
            BackgroundTasksChangedMessage: self._replaced,
        }

    def apply(self, message: Message) -> tuple[Task, ...]:
        """Take a message in. The tasks that it changed: none for a late frame, or for one of another kind."""
        step = self._steps.get(type(message))
        return () if step is None else step(message)

    def activity(self) -> list[Task]:
        """What works in the background now, for an indicator: the level without what is ambient."""
        if self._level is None:  # an older command: the edges are all there is
            return [task for task in self._unfinished() if task.is_backgrounded is not False]
        return [
            task
            for task_id, entry in self._level.items()
            if (task := self.tasks.get(task_id)) and not (entry.ambient or task.ambient or task.is_finished)
        ]

    def pending_runs(self) -> list[Task]:
        """Runs that a host waits for before it closes: agents and workflows, never shells or monitors."""
        return [task for task in self._unfinished() if task.task_type in _AWAITED]

    def background(self) -> list[Task]:
        """Runs that would outlive a killed command: everything unfinished in the background that is not ambient."""
        return [task for task in self._unfinished() if task.is_backgrounded is not False]

    def display(self, notification: TaskNotificationMessage, *, panel: bool = False) -> str | None:
        """What a person is to see of a task's end, whole: never fold or cut it. None: nothing.

        A report that was handed back goes in the place of the summary, its warning above the text; of one that was
        withheld nothing was delivered. Housekeeping (`skip_transcript`) shows in a `panel` only.
        """
        if notification.skip_transcript and not panel:
            return None
        if notification.handback == TaskHandback.WITHHELD:
            return None
        report = notification.handback_report
        if report is None:
            return notification.summary or None
        return f"{report.warning}\n\n{report.text}" if report.warning else report.text

    def repeats_report(self, message: UserMessage) -> bool:
        """Whether a user message brings a hand-back that a notification has brought already: show it once."""
        origin = message.origin
        return origin is not None and bool(origin.handback) and origin.handback_tool_use_id in self._reports

    # -- one step per kind of frame -----------------------------------------------------------------------------------

    def _started(self, frame: TaskStartedMessage) -> tuple[Task, ...]:
        task = self._task_of(frame.task_id, frame.run_id)
        if task is None:
            return ()
        is_new_run = task.runs == 0 or task.is_finished or frame.run_id != task.run_id
        if frame.run_id is not None and frame.run_id == task.run_id and task.is_finished and _was_told(task):
            is_new_run = False  # its end came first
        if is_new_run:
            task.runs += 1
            self._open(task)
        task.run_id = frame.run_id or task.run_id
        task.tool_use_id = frame.tool_use_id or task.tool_use_id
        task.first_tool_use_id = task.first_tool_use_id or frame.tool_use_id
        task.description = frame.description or task.description
        task.task_type = frame.task_type or task.task_type
        task.subagent_type = frame.subagent_type or task.subagent_type
        task.prompt = frame.prompt if frame.prompt is not None else task.prompt
        task.parent_task_id = frame.parent_task_id if frame.parent_task_id in self.tasks else None
        task.is_backgrounded = frame.is_backgrounded if frame.is_backgrounded is not None else task.is_backgrounded
        task.ambient = frame.ambient or frame.skip_transcript
        task.skip_transcript = frame.skip_transcript
        return (task,)

    def _progressed(self, frame: TaskProgressMessage) -> tuple[Task, ...]:
        task = self._task_of(frame.task_id, frame.run_id)
        if task is None:
            return ()
        self._enter_run(task, frame.run_id)
        task.description = frame.description or task.description
        task.subagent_type = frame.subagent_type or task.subagent_type
        task.usage = frame.usage or task.usage
        task.last_tool_name = frame.last_tool_name or task.last_tool_name
        task.progress = frame.summary or task.progress
        return (task,)

    def _updated(self, frame: TaskUpdatedMessage) -> tuple[Task, ...]:
        task = self._task_of(frame.task_id, frame.run_id)
        if task is None:
            return ()
        self._enter_run(task, frame.run_id)
        patch = frame.patch
        task.description = patch.description or task.description
        task.end_time = patch.end_time if patch.end_time is not None else task.end_time
        task.error = patch.error if patch.error is not None else task.error
        task.is_backgrounded = patch.is_backgrounded if patch.is_backgrounded is not None else task.is_backgrounded
        if patch.status in _ENDED:
            self._close(task, patch.status)
        elif patch.status is not None and not task.is_finished:
            task.status = patch.status
        return (task,)

    def _notified(self, frame: TaskNotificationMessage) -> tuple[Task, ...]:
        task = self._task_of(frame.task_id, frame.run_id)
        if task is None:
            return ()
        self._enter_run(task, frame.run_id)
        task.notification = frame
        task.usage = frame.usage or task.usage
        task.tool_use_id = frame.tool_use_id or task.tool_use_id
        task.first_tool_use_id = task.first_tool_use_id or frame.tool_use_id
        task.ambient = task.ambient or frame.ambient or frame.skip_transcript
        task.skip_transcript = task.skip_transcript or frame.skip_transcript
        self._close(task, frame.status)
        if frame.handback_report is not None and frame.handback_report.tool_use_id is not None:
            self._reports[frame.handback_report.tool_use_id] = None
            if len(self._reports) > _KEPT:
                self._reports.popitem(last=False)
        return (task,)

    def _replaced(self, frame: BackgroundTasksChangedMessage) -> tuple[Task, ...]:
        before, self._level = self._level or {}, {}
        changed: list[Task] = []
        for entry in frame.tasks:
            task = self._task_of(entry.task_id, entry.run_id)
            if task is None:
                continue
            self._level[entry.task_id] = entry
            self._enter_run(task, entry.run_id)
            if task.is_finished and not _was_told(task):
                self._open(task)  # only a level without it had said that it was over
            task.is_backgrounded = True
            task.ambient = task.ambient or entry.ambient
            task.task_type = task.task_type or entry.task_type or None
            task.subagent_type = task.subagent_type or entry.subagent_type
            task.description = task.description or entry.description
            changed.append(task)
        for task_id in before.keys() - self._level.keys():
            gone = self.tasks.get(task_id)
            if gone is not None and not gone.is_finished:  # its end was missed, or is still on its way
                self._finish(gone)
                changed.append(gone)
        return tuple(changed)

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _task_of(self, task_id: str, run_id: str | None) -> Task | None:
        """The record of a task, made where there is none; None when the frame is of a run that is not the latest."""
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = Task(task_id=task_id, run_id=run_id)
            self._forget_oldest()
        elif run_id is not None and task.run_id is not None and run_id < task.run_id:  # plain strings, in order
            return None
        return task

    def _enter_run(self, task: Task, run_id: str | None) -> None:
        """A frame of a later run whose start was missed opens it."""
        if run_id is not None and run_id != task.run_id:
            if task.run_id is not None:
                self._open(task)
            task.run_id = run_id

    def _open(self, task: Task) -> None:
        task.is_finished = False
        self._finished.pop(task.task_id, None)
        task.status = TaskStatus.RUNNING
        task.error = task.end_time = task.progress = task.last_tool_name = None

    def _finish(self, task: Task) -> None:
        task.is_finished = True
        self._finished[task.task_id] = None

    def _close(self, task: Task, status: str) -> None:
        self._finish(task)
        task.status = TaskStatus.STOPPED if status == TaskStatus.KILLED else status

    def _unfinished(self) -> list[Task]:
        return [task for task in self.tasks.values() if not task.is_finished and not task.ambient]

    def _forget_oldest(self) -> None:
        if len(self.tasks) > _KEPT and self._finished:
            del self.tasks[self._finished.popitem(last=False)[0]]
        elif len(self.tasks) > _MOST:
            self.tasks.popitem(last=False)


def _was_told(task: Task) -> bool:
    """Whether a frame of the task itself said that the run is over."""
    return task.status in _ENDED
