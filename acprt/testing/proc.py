"""What Linux tells of the processes that run: /proc, read once. Other systems have none, and tell nothing here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["HAS_PROC", "RunningProcess", "running_processes"]

HAS_PROC = os.path.isdir("/proc/self")


class RunningProcess(NamedTuple):
    """One process. `label` is `pid (name)`; `state` is the kernel's letter, such as Z for one that was not reaped."""

    label: str
    state: str
    parent: int
    group: int


def running_processes() -> Iterator[RunningProcess]:
    """Every process there is; one that ends meanwhile is left out. Nothing where there is no /proc."""
    for stat in Path("/proc").glob("[0-9]*/stat") if HAS_PROC else ():
        with suppress(FileNotFoundError, ProcessLookupError):
            start, _, fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")
            state, parent, group = fields.split()[:3]
            yield RunningProcess(f"{start})", state, int(parent), int(group))
