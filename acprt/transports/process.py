"""A child process as a transport: an agent started on pipes of our own, and ended for certain.

`AgentProcess` is what a user holds: a command, and the run of it that is open. How a run goes, from its first byte to
the last descriptor, is in `child_run.py`. Nothing here may block the event loop or leave a process behind.

POSIX only: on Windows there are no process groups to end, and `open` says so.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import logging
import os
import shlex
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from acprt.errors import ErrorCode, RpcError
from acprt.limits import Limits
from acprt.transports.base import ChildStatus, ChildWatcher, Sink
from acprt.transports.child import Child
from acprt.transports.child_run import ChildRun
from acprt.transports.command import (
    as_arguments,
    as_config,
    as_environment,
    child_environment,
    parse_command,
    show_command,
    show_environment,
)

__all__ = ["AgentProcess"]

_logger = logging.getLogger("acprt.process")


class AgentProcess:
    """An agent to be started from its command, one child at a time: `AgentProcess("python", "agent.py")`.

    Connecting starts it: the object itself starts nothing. It may be connected again once the connection before is
    closed, and starts a fresh child then; connecting it while a child of it is still in use raises RuntimeError.

    - `env`: variables over those of this process (`inherit_env=True`, as they are when the child starts), or all that
      the child gets (`inherit_env=False`; not even PATH, so that the command is looked for in the system's default
      path). A value of None removes a variable.
    - `cwd`: the child's working directory; a relative command that has a slash is looked for from there.
    - `on_stderr(line)`: called for each line of the child's stderr on a thread of its own, so it may be slow, and must
      go through `loop.call_soon_threadsafe` to touch what belongs to the event loop. If it is too slow the oldest
      waiting lines are dropped and counted (`cx.status()`). Without it nothing is printed. In both cases the end of
      stderr is kept and is part of the error of each request that the child's end fails.
    - `die_with_parent`: the child is killed also when this process dies without a chance to do it (SIGKILL). Linux
      only, elsewhere NotImplementedError. It is tied to the thread that connects: when that thread ends, so does the
      child. It reaches the child itself, not its descendants.
    - `limits`: sizes of lines, stderr and the times of the teardown; those of the endpoint when not given.

    The child leads its own process group. It ends with the connection: its stdin is closed and it may exit by itself,
    then its group gets SIGTERM, then SIGKILL. When it exits first, what is left of its group is killed.
    """

    def __init__(
        self,
        *argv: str | os.PathLike[str],
        env: Mapping[str, str | None] | None = None,
        inherit_env: bool = True,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        die_with_parent: bool = False,
        limits: Limits | None = None,
    ) -> None:
        if inspect.iscoroutinefunction(on_stderr):
            raise TypeError("on_stderr must be a plain function: it runs on a thread of its own, not on the loop")
        if die_with_parent and sys.platform != "linux":
            raise NotImplementedError("die_with_parent=True needs Linux: no other system can do it for any command")
        self.argv = as_arguments(argv)
        self.env = as_environment(env)
        self.inherit_env = inherit_env
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.on_stderr = on_stderr
        self.die_with_parent = die_with_parent
        self.limits = limits
        self._run: ChildRun | None = None
        self._watcher: ChildWatcher | None = None

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        inherit_env: bool = True,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        die_with_parent: bool = False,
        limits: Limits | None = None,
    ) -> AgentProcess:
        """The agent that a text describes: `FOO=1 agent --flag` or `{"command": …, "args": […], "env": {…}}`.

        The first form is split into POSIX shell words, leading `NAME=value` words are environment; no shell is run.
        Unknown JSON keys are refused. A ValueError says what is wrong with the text.
        """
        argv, env = parse_command(text)
        return cls(
            *argv,
            env=env,
            inherit_env=inherit_env,
            cwd=cwd,
            on_stderr=on_stderr,
            die_with_parent=die_with_parent,
            limits=limits,
        )

    def config(self) -> dict[str, Any]:
        """`{"command", "args", "env"}`, empty parts left out: what `parse` takes as JSON."""
        return as_config(self.argv, self.env)

    def __repr__(self) -> str:
        parts = [repr(word) for word in show_command(self.argv)]
        if self.env:
            parts.append(f"env={show_environment(self.env)!r}")
        if not self.inherit_env:
            parts.append("inherit_env=False")
        if self.cwd is not None:
            parts.append(f"cwd={self.cwd!r}")
        text = f"AgentProcess({', '.join(parts)})"
        status = self.child_status()
        return text if status is None else f"<{text} pid={status.pid} exit_status={status.exit_status}>"

    @property
    def peer_is_child(self) -> bool:
        """True: this side spawned its peer and never answers a line that it cannot read (DEC-23)."""
        return True

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start the child and deliver to `sink`. Raises RpcError when it cannot be started; nothing is left then.

        Never awaits, so that no cancellation can come between the start and the record of it (PY-70).
        """
        if sys.platform == "win32":
            raise NotImplementedError("AgentProcess needs POSIX process groups; on Windows use streams() for now")
        if self._run is not None and not self._run.closed:
            raise RuntimeError(f"{self!r} is already in use: close that connection first, or make another AgentProcess")
        loop = asyncio.get_running_loop()
        child = self._spawn()
        try:
            self._run = ChildRun(child, sink, self.limits or limits, self.on_stderr, loop, self._watcher)
        except BaseException:
            child.end_now()
            raise
        weakref.finalize(self, _dropped, child).atexit = False  # at exit the run sees to it
        if self._watcher is not None:
            self._watcher.child_started(child.pid, show_command(self.argv))

    def watch(self, watcher: ChildWatcher) -> None:
        """Tell `watcher` of the children that are opened from now on: start, lines of stderr, exit."""
        self._watcher = watcher

    def write(self, data: bytes) -> None:
        """Send `data`. What the child does not read yet is kept; once it is gone everything is dropped."""
        run = self._run or self._opened()
        run.writer.write(data)

    async def drain(self) -> None:
        """Wait until the child's pipe took everything. Raises OSError when it cannot any more."""
        await self._opened().writer.drain()

    def pause_reading(self) -> None:
        """Deliver no lines until `resume_reading`."""
        self._opened().pause_reading()

    def resume_reading(self) -> None:
        """Deliver again."""
        self._opened().resume_reading()

    def close_write(self) -> None:
        """Close the child's stdin once what was accepted is written."""
        self._opened().writer.close()

    async def aclose(self) -> None:
        """End the child and its group: stdin closed, then SIGTERM, then SIGKILL, each after its grace (`Limits`).

        Bounded on every path. Any number of tasks may call it; they share one teardown. A task that is cancelled in it
        makes it skip to SIGKILL, and is let go once the child is dead.
        """
        if self._run is not None:
            await self._run.aclose()

    def facts(self) -> dict[str, Any]:
        """`exit_status` (None: running or unknown; negative: the signal) and `stderr_tail`; empty before the start."""
        run = self._run
        return {} if run is None else {"exit_status": run.child.exit_status, "stderr_tail": run.stderr_tail()}

    def child_status(self) -> ChildStatus | None:
        """The child that was started last, running or not; None before the start."""
        run = self._run
        return None if run is None else ChildStatus(run.child.pid, run.child.exit_status, run.stderr_dropped)

    def _opened(self) -> ChildRun:
        if self._run is None:
            raise RuntimeError(f"{self!r} was not connected yet")
        return self._run

    def _spawn(self) -> Child:
        env = child_environment(self.env, inherit=self.inherit_env)
        try:
            return Child(self.argv, env=env, cwd=self.cwd, die_with_parent=self.die_with_parent)
        except (OSError, subprocess.SubprocessError) as error:
            data = {
                "reason": "spawn_failed",
                "stage": "spawn",
                "error": self._why_not(error, env),
                "command": shlex.join(self.argv),  # last: it may be long, and `str(error)` is bounded
            }
            raise RpcError(ErrorCode.INTERNAL_ERROR, "Could not start the agent", data) from error

    def _why_not(self, error: Exception, env: Mapping[str, str]) -> str:
        """What stood in the way, in words of the command that the user wrote."""
        program = self.argv[0]
        if not isinstance(error, OSError):
            return str(error)
        if self.cwd is not None and error.filename == self.cwd:
            return f"cannot enter the working directory {self.cwd!r}: {error.strerror}"
        if error.errno == errno.ENOENT:
            from shutil import which  # brings compression libraries, which only this failure is worth

            in_path = None if os.sep in program else which(program, path=env.get("PATH", os.defpath))
            place = in_path or os.path.join(self.cwd or "", program)
            if in_path or (os.sep in program and os.path.exists(place)):
                return f"{place!r} is there, but the interpreter that it names is not: {error.strerror}"
            where = "" if os.sep in program else ", nor on PATH"
            return f"there is no program {program!r}{where}: {error.strerror}"
        if error.errno == errno.ENOEXEC:
            return f"{program!r} is not a program (a script needs a first line such as `#!/bin/sh`): {error.strerror}"
        if error.errno in (errno.EACCES, errno.EPERM):
            return f"{program!r} may not be executed: {error.strerror}"
        return str(error)


def _dropped(child: Child) -> None:
    """The `AgentProcess` is gone without `aclose()`. The run, held by the loop, clears up once the child has exited."""
    if not child.reaped:
        _logger.warning(
            "pid %d lost its AgentProcess and was killed: close its connection before (`async with`, or `aclose()`)",
            child.pid,
        )
        child.signal_group(signal.SIGKILL)
