"""What the tests of descriptors share: a reader and a writer that remember, and who is still there."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import tty
from collections.abc import Callable
from pathlib import Path

from acprt.transports.pipes import FdReader, FdWriter

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024


class Read:
    """A reader with what it told: chunks, the end, and an event for each."""

    def __init__(self, fd: int, *, on_data: Callable[[bytes], None] | None = None) -> None:
        self.chunks: list[bytes] = []
        self.ends: list[OSError | None] = []
        self.some = asyncio.Event()
        self.ended = asyncio.Event()
        self._also = on_data
        self.reader = FdReader(fd, on_data=self._data, on_end=self._end)

    def _data(self, data: bytes) -> None:
        self.chunks.append(data)
        self.some.set()
        if self._also is not None:
            self._also(data)

    def _end(self, error: OSError | None) -> None:
        self.ends.append(error)
        self.ended.set()

    @property
    def data(self) -> bytes:
        return b"".join(self.chunks)


class Written:
    """A writer with what it told."""

    def __init__(self, fd: int) -> None:
        self.calls: list[str] = []
        self.errors: list[OSError] = []
        self.failed = asyncio.Event()
        self.paused = asyncio.Event()
        self.writer = FdWriter(
            fd, on_pause=self._pause, on_resume=lambda: self.calls.append("resume"), on_error=self._error
        )

    def _pause(self) -> None:
        self.calls.append("pause")
        self.paused.set()

    def _error(self, error: OSError) -> None:
        self.errors.append(error)
        self.failed.set()


async def ticks(count: int = 5) -> None:
    """Let the loop go round: what was going to be called soon has been called then."""
    for _ in range(count):
        await asyncio.sleep(0)


def own_pipe() -> tuple[int, int]:
    """A pipe as a parent makes it for itself: non-blocking."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def flags(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def descriptors() -> set[int]:
    return {fd for fd in range(200) if os.path.exists(f"/proc/self/fd/{fd}")}


def raw_terminal() -> tuple[int, int]:
    """Both sides of a terminal that passes bytes as they are."""
    master, slave = os.openpty()
    tty.setraw(slave)
    return master, slave


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("acprt-fd-")]


def join_threads(name: str) -> None:
    for thread in threads():
        if thread.name.startswith(name):
            thread.join(10)
            assert not thread.is_alive()
