"""The task family: what runs beside the conversation (subagents, shells, monitors, MCP tasks), and how it ended.

A task keeps its `task_id` when it is resumed and gets a new `run_id`; `acprt.claude.tasks` puts the frames together.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import field

from acprt.claude.base import Number, Part, SystemMessage

__all__ = [
    "BackgroundTask",
    "BackgroundTasksChangedMessage",
    "HandbackReport",
    "ResourceLink",
    "TaskEndReason",
    "TaskHandback",
    "TaskNotificationMessage",
    "TaskPatch",
    "TaskProgressMessage",
    "TaskStartedMessage",
    "TaskStatus",
    "TaskUpdatedMessage",
    "TaskUsage",
]


class TaskStatus(StrEnum):
    """How far a task is. An open set: fields are plain strings, which compare equal to these.

    A notification says completed, failed or stopped; an update says killed where a notification says stopped.
    """

    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    KILLED = "killed"


class TaskEndReason(StrEnum):
    """Why a task ended that neither completed, failed nor was stopped by anybody. An open set."""

    WORKER_RESTART = "worker_restart"


class TaskHandback(StrEnum):
    """What became of a subagent's report. An open set.

    SEND: delivered. FLAGGED: delivered under a security warning. WITHHELD: nothing was delivered.
    """

    SEND = "send"
    FLAGGED = "flagged"
    WITHHELD = "withheld"


class TaskUsage(Part):
    """What a task used: tokens, tool calls, milliseconds (which count on across a resume)."""

    total_tokens: Number
    tool_uses: Number
    duration_ms: Number


class ResourceLink(Part):
    """A resource that an MCP task returned."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = field(name="mimeType", default=None)
    size: Number | None = None
    annotations: dict[str, Any] | None = None


class HandbackReport(Part):
    """What a subagent handed back: the whole report, and the warning that goes above it.

    `tool_use_id` is `toolUseId` on the wire, unlike everything around it; it names the subagent's own block.
    """

    text: str
    warning: str | None = None
    tool_use_id: str | None = field(name="toolUseId", default=None)


class TaskNotificationMessage(SystemMessage, subtype="task_notification"):
    """A task came to its end, once per run; a later one with the same `task_id` replaces it.

    `summary` is not always for people: `TaskTracker.display` says what to show.
    """

    session_id: str
    task_id: str
    run_id: str | None = None
    status: str
    """A `TaskStatus`."""
    reason: str | None = None
    """A `TaskEndReason`."""
    summary: str = ""
    output_file: str | None = None
    """Path of the task's output; it comes empty where there is none, see `output_path`."""
    tool_use_id: str | None = None
    """The tool call that started this run."""
    usage: TaskUsage | None = None
    resource_links: list[ResourceLink] = field(default_factory=list)
    handback: str | None = None
    """A `TaskHandback`; only with status completed."""
    handback_report: HandbackReport | None = None
    skip_transcript: bool = False
    """Housekeeping: a task panel may show it, the conversation may not."""
    ambient: bool = False
    """Not to be counted as activity."""
    uuid: str | None = None

    @property
    def output_path(self) -> str | None:
        """Where the output is; None where there is none."""
        return self.output_file or None


class TaskStartedMessage(SystemMessage, subtype="task_started"):
    """A run of a task began, once per run."""

    task_id: str
    run_id: str | None = None
    description: str = ""
    tool_use_id: str | None = None
    subagent_type: str | None = None
    is_backgrounded: bool | None = None
    """False: the tool call waits for it."""
    spawn_depth: int | None = None
    parent_task_id: str | None = None
    task_type: str | None = None
    workflow_name: str | None = None
    prompt: str | None = None
    """Absent on some resumes: the earlier one stands."""
    skip_transcript: bool = False
    ambient: bool = False


class TaskProgressMessage(SystemMessage, subtype="task_progress"):
    """One line about what a task does."""

    task_id: str
    run_id: str | None = None
    description: str = ""
    usage: TaskUsage | None = None
    tool_use_id: str | None = None
    subagent_type: str | None = None
    last_tool_name: str | None = None
    summary: str | None = None


class TaskPatch(Part):
    """What changed of a task; absent members did not."""

    status: str | None = None
    """A `TaskStatus`."""
    description: str | None = None
    end_time: Number | None = None
    """Milliseconds since 1970."""
    total_paused_ms: Number | None = None
    error: str | None = None
    is_backgrounded: bool | None = None


class TaskUpdatedMessage(SystemMessage, subtype="task_updated"):
    """A transition of a task: the only frame that comes for each."""

    task_id: str
    run_id: str | None = None
    patch: TaskPatch = field(default_factory=TaskPatch)


class BackgroundTask(Part):
    """One entry of the level."""

    task_id: str
    task_type: str = ""
    run_id: str | None = None
    subagent_type: str | None = None
    description: str = ""
    parent_task_id: str | None = None
    ambient: bool = False


class BackgroundTasksChangedMessage(SystemMessage, subtype="background_tasks_changed"):
    """Everything that runs in the background now: it replaces what was said before."""

    tasks: list[BackgroundTask] = field(default_factory=list)
