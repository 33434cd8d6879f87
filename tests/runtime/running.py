"""A child that runs `acprt.run`, for tests that send it lines and signals."""

from __future__ import annotations

import os
import select
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import pytest

from tests.programs import python_code
from tests.runtime.scripted import request, result

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30

PREAMBLE = """
import asyncio, os, signal, sys, threading, time
if {hide_uvloop}:
    sys.modules["uvloop"] = None
import acprt
from acprt import Limits
sys.modules["acprt.runtime.run"]._SIGNAL_DRAIN_SECONDS = sys.modules["acprt.runtime.tasks"]._LAST_WAIT = {moment}
agent = acprt.Endpoint("agent")

@agent.method("ready")
async def ready(params): return "ready"

@agent.method("slow")
async def slow(params):
    await asyncio.Event().wait()
"""


MOMENT = 1.0
"""Seconds that a signal leaves to running handlers, and each cancel to who swallows it."""


class Agent:
    """A child that runs `acprt.run` on pipes; everything the test waits for is bounded."""

    def __init__(self, program: str, *, run: str, loop: str, moment: float, **options: Any) -> None:
        code = PREAMBLE.format(hide_uvloop=loop == "asyncio", moment=moment) + textwrap.dedent(program) + f"\n{run}\n"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(
            python_code(code),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            **(pipes | options),
        )
        self.process = cast("subprocess.Popen[bytes]", child)
        self._unread = b""

    def send(self, *messages: Any) -> None:
        """Write messages as lines."""
        stdin = self._pipe(self.process.stdin)
        stdin.write(b"".join((m if isinstance(m, bytes) else msgspec.json.encode(m)) + b"\n" for m in messages))
        stdin.flush()

    def receive(self) -> Any:
        """The next line that it writes, decoded."""
        fd, until = self._pipe(self.process.stdout).fileno(), time.monotonic() + SECONDS
        while b"\n" not in self._unread:
            readable, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
            assert readable, f"nothing more was written; stderr: {self.stop()}"
            data = os.read(fd, 65536)
            assert data, f"its output ended; stderr: {self.stop()}"
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return msgspec.json.decode(line)

    def until_ready(self) -> None:
        """Let it start and dispatch everything sent so far."""
        self.send(request("ready", "ready"))
        assert self.receive() == result("ready", "ready")

    def end(self, *, within: float = SECONDS, status: int = 0) -> tuple[list[Any], str]:
        """Close its stdin, and wait for its end: what it still wrote, and its stderr."""
        out, err = self.process.communicate(timeout=within)
        assert self.process.returncode == status, err.decode()
        return [msgspec.json.decode(line) for line in (self._unread + out).splitlines()], err.decode()

    def end_by(self, number: int, *, within: float = SECONDS) -> tuple[list[Any], str]:
        """Send a signal with stdin left open, and wait for its end."""
        self.process.send_signal(number)
        self.process.wait(within)
        return self.end()

    def stop(self) -> str:
        """Kill it; its stderr."""
        self.process.kill()
        return self.process.communicate(timeout=SECONDS)[1].decode()

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None, "this stream is no pipe of the test's"
        return stream


@contextmanager
def agent(
    program: str = "",
    *,
    run: str = "acprt.run(agent)",
    loop: str = "uvloop",
    moment: float = MOMENT / 10,
    **options: Any,
) -> Iterator[Agent]:
    """An `Agent` that is gone afterwards. It is less patient than a real one, except where that is tested."""
    child = Agent(program, run=run, loop=loop, moment=moment, **options)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.stop()
        for stream in (child.process.stdin, child.process.stdout, child.process.stderr):
            if stream is not None:
                stream.close()


both_loops = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
