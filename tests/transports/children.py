"""What the tests of child processes share: a sink that remembers, children in a line of code, who is still there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.transports.process import AgentProcess
from acprt.wire.lines import OversizedLine
from tests.programs import python_code

ROOT = Path(__file__).resolve().parents[2]

QUICK = Limits(exit_grace_seconds=0.1, term_grace_seconds=0.1)
"""For children that are expected to use up a grace."""

PATIENT = Limits(exit_grace_seconds=60, term_grace_seconds=60)
"""For children that are not: a test that waits for one of these fails by its own bound."""

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
"""Neither EOF nor SIGTERM ends it."""

NEEDS_SIGTERM = "import signal; print('up', flush=True); signal.pause()"
"""EOF does not end it."""

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
"""Sends each line back; EOF ends it."""


WITH_DESCENDANT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", {STUBBORN!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""Starts a descendant that nothing but SIGKILL ends, and prints its pid once it is up."""


class RecordingSink:
    """Remembers what it was told, in order, and lets a test wait for it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lines: list[bytes | OversizedLine] = []
        self.lost: list[Exception] = []
        self._changed = asyncio.Event()

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        assert lines
        self.lines += lines
        self._note("lines")

    def eof_received(self) -> None:
        self._note("eof")

    def connection_lost(self, error: Exception) -> None:
        self.lost.append(error)
        self._note("lost")

    def pause_writing(self) -> None:
        self._note("pause")

    def resume_writing(self) -> None:
        self._note("resume")

    def _note(self, event: str) -> None:
        if not (event == "lines" and self.events[-1:] == ["lines"]):
            self.events.append(event)
        self._changed.set()

    async def until(self, happened: Callable[[], Any]) -> None:
        """Wait until `happened()` is true; it is asked after each call of the sink."""
        while not happened():
            self._changed.clear()
            await self._changed.wait()

    async def event(self, name: str) -> None:
        """Wait until the sink was told `name`."""
        await self.until(lambda: name in self.events)

    async def line(self, number: int = 1) -> str:
        """The line with that number, counted from 1, once it is there."""
        await self.until(lambda: len(self.lines) >= number)
        line = self.lines[number - 1]
        assert isinstance(line, bytes)
        return line.decode()

    @property
    def ends(self) -> list[str]:
        return [event for event in self.events if event in ("eof", "lost")]


def python(code: str, *args: str, **options: Any) -> AgentProcess:
    """An agent that runs `code`."""
    return AgentProcess(sys.executable, "-I", "-S", "-c", code, *args, **options)


def shell(script: str, **options: Any) -> AgentProcess:
    """An agent that runs a shell script: it starts ten times faster."""
    return AgentProcess("/bin/sh", "-c", script, **options)


def opened(agent: AgentProcess, limits: Limits = PATIENT) -> RecordingSink:
    """Start `agent`; the sink that it delivers to."""
    sink = RecordingSink()
    agent.open(sink, limits)
    return sink


def when_reaped(agent: AgentProcess) -> asyncio.Event:
    """An event for what a sink is not told: the transport has seen the exit of the child and reaped it."""
    child, event = agent._opened().child, asyncio.Event()
    reap = child.reap

    def observed() -> None:
        reap()
        event.set()

    child.reap = observed  # type: ignore[method-assign]  # seen from outside
    return event


async def gone(pid: int) -> None:
    """Wait until the process has exited, whoever reaps it."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, exited = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pidfd, exited.set)
    try:
        await exited.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def is_running(pid: int) -> bool:
    """Whether the process is there and not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def descriptors() -> list[str]:
    """What this process has open, one entry a descriptor, comparable between two moments."""
    gc.collect()
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
        except FileNotFoundError:  # the one that listed the folder
            continue
    return sorted(found)


def children() -> set[int]:
    """The pids of this process's children, zombies included; without /proc 0 for whichever there are."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()
    if not Path("/proc/self").exists():
        return {0}
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


def has_children() -> bool:
    """Whether this process has a child, a zombie included, beside those that it had before the test."""
    return bool(children() - children_before)


children_before: set[int] = set()
"""Of an earlier test that failed, or of the program that became this one."""


def run_script(script: str, status: int = 0) -> str:
    """What the program `script` prints; it must end by itself, with that status and no traceback."""
    command = python_code(textwrap.dedent(script))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def spawn_error(agent: AgentProcess) -> RpcError:
    """Why `agent` cannot be started."""
    with pytest.raises(RpcError) as caught:
        opened(agent)
    return caught.value


def pid_of(agent: AgentProcess) -> int:
    """The pid of the child, which was started."""
    status = agent.child_status()
    assert status is not None
    return status.pid
