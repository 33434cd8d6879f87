"""The machine: what it is, and how much of it others used while a sample was taken."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["ForeignLoad", "commit", "describe", "quietest_core"]


LOOK_SECONDS = 0.1
"""Ten ticks of the clock by which systems count: enough to tell a busy core from an idle one."""


class ForeignLoad:
    """The share of all cores that was busy for others between its making and `share()`; None where nobody tells."""

    def __init__(self) -> None:
        self._busy = _busy_seconds()
        self._ours = _children_seconds()
        self._wall = time.perf_counter()

    def share(self) -> float | None:
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        ours = _children_seconds() - self._ours
        wall = time.perf_counter() - self._wall
        return max(0.0, busy - self._busy - ours) / (wall * (os.cpu_count() or 1))


def describe() -> str:
    """Processor, cores, system."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def commit() -> str:
    """The commit that was measured, marked when files differ from it; empty outside a checkout."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        outcome = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=False)
        return outcome.stdout.strip() if outcome.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short", "HEAD")
        return f"{name} with changes" if name and git("status", "--porcelain", "--", ":/acprt") else name
    except FileNotFoundError:
        return ""


def quietest_core() -> int | None:
    """The core, of those we may use, that was idle the longest just now; None where processes cannot be pinned."""
    if sys.platform != "linux":
        return None
    before = _idle_ticks()
    time.sleep(LOOK_SECONDS)
    after = _idle_ticks()
    return max(sorted(os.sched_getaffinity(0)), key=lambda core: after.get(core, 0) - before.get(core, 0))


def _idle_ticks() -> dict[int, int]:
    """Idle ticks by core; empty where the system hides them."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    cores = (line.split() for line in lines if line.startswith("cpu") and line[3].isdigit())
    return {int(fields[0][3:]): int(fields[4]) for fields in cores}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _busy_seconds() -> float | None:
    """All cores' time spent on anything, stolen time included, waiting excluded."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _children_seconds() -> float:
    ours, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return ours.ru_utime + ours.ru_stime + children.ru_utime + children.ru_stime
