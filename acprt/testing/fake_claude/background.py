"""The fake's background tasks: shells and subagents, with the frames of each step in the order of the real command."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from acprt.testing.fake_claude.command import FakeClaude

__all__ = ["Background", "Run"]


class Run(msgspec.Struct, kw_only=True, eq=False):
    """One run of a task."""

    task_id: str
    run_id: str
    tool_use_id: str
    task_type: str
    description: str
    child: subprocess.Popen[bytes] | None = None


class Background:
    """What runs in the background of one fake."""

    def __init__(self, command: FakeClaude) -> None:
        self._command = command
        self._running: dict[str, Run] = {}
        self._output: dict[str, str] = {}
        self._runs = 0

    @property
    def count(self) -> int:
        """How many tasks run."""
        return len(self._running)

    @property
    def agents_run(self) -> bool:
        """Whether a subagent runs."""
        return any(run.task_type == "local_agent" for run in self._running.values())

    def start(
        self, task_id: str, task_type: str, tool_use_id: str, description: str, *, detached: bool = False, **more: Any
    ) -> Run:
        """Begin a run. `detached`: with a real process in a session of its own, which survives a killed command."""
        self._runs += 1
        run = Run(
            task_id=task_id,
            run_id=f"0mx{self._runs:04d}",
            tool_use_id=tool_use_id,
            task_type=task_type,
            description=description,
        )
        if detached:
            sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
            null = subprocess.DEVNULL
            run.child = subprocess.Popen(sleeper, start_new_session=True, stdin=null, stdout=null, stderr=null)
            self._output[task_id] = str(run.child.pid)
        self._running[task_id] = run
        self._level()
        members = {"description": description, "is_backgrounded": True, "task_type": task_type, **more}
        self._say(run, "task_started", tool_use_id=tool_use_id, **members)
        return run

    def progress(self, run: Run, description: str, last_tool_name: str) -> None:
        """A line about what it does."""
        usage = {"total_tokens": 25, "tool_uses": 1, "duration_ms": 78}
        self._say(run, "task_progress", description=description, last_tool_name=last_tool_name, usage=usage)

    def finish(
        self, run: Run, status: str = "completed", summary: str = "", *, wakes: bool = True, **more: Any
    ) -> None:
        """End a run: update, notification, level, and the turn that it wakes."""
        self._gone(run)
        patch = {"status": "killed" if status == "stopped" else status, "end_time": 1_764_000_000_000}
        self._say(run, "task_updated", patch=patch)
        self._output.setdefault(run.task_id, summary)
        self._notify(run, status, summary, f"/src/tasks/{run.task_id}.output", **more)
        self._level()
        if wakes:
            origin = {"kind": "task-notification", "producer": "session-task", "runId": run.run_id}
            self._command.wake({"origin": origin, "summary": summary})

    def stop(self, task_id: str) -> None:
        """`stop_task`: its end frames come before the answer; nothing happens to an unknown one."""
        run = self._running.get(task_id)
        if run is not None:
            self.finish(run, "stopped", run.description, wakes=run.task_type == "local_agent")

    def stop_agents(self) -> None:
        """An interrupt stops subagents, and leaves shells alone."""
        for run in [run for run in self._running.values() if run.task_type == "local_agent"]:
            self.finish(run, "stopped", run.description, wakes=False)

    def terminated(self) -> None:
        """SIGTERM: notification before update, and no path."""
        for run in list(self._running.values()):
            self._gone(run)
            self._notify(run, "stopped", run.description, "")
            self._say(run, "task_updated", patch={"status": "killed"})
        self._level()

    async def finish_after(self, seconds: float, run: Run, **how: Any) -> None:
        """End a run by itself, later."""
        await asyncio.sleep(seconds)
        if self._running.get(run.task_id) is run:
            self.finish(run, **how)

    def output_of(self, task_id: str) -> str | None:
        """What a task has printed; None for an unknown one."""
        return self._output.get(task_id)

    def _gone(self, run: Run) -> None:
        del self._running[run.task_id]
        if run.child is not None:
            os.killpg(run.child.pid, signal.SIGKILL)
            run.child.wait()

    def _notify(self, run: Run, status: str, summary: str, output_file: str, **more: Any) -> None:
        members = {"tool_use_id": run.tool_use_id, "status": status, "output_file": output_file, "summary": summary}
        self._say(run, "task_notification", **(members | more))

    def _level(self) -> None:
        if not self._command.options.no_level:
            tasks = [
                {"task_id": r.task_id, "run_id": r.run_id, "task_type": r.task_type, "description": r.description}
                for r in self._running.values()
            ]
            self._command.say("system", "background_tasks_changed", tasks=tasks)

    def _say(self, run: Run, subtype: str, **members: Any) -> None:
        self._command.say("system", subtype, task_id=run.task_id, run_id=run.run_id, **members)
