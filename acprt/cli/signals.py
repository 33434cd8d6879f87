"""How a command that has an agent ends when it is told to: by SIGTERM, or by SIGHUP when its terminal closes.

The agent's group is not the command's, so neither signal reaches it. It must be gone before the command is, in bounded
time, and whatever it does: many agents heed no end of input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import click

from acprt.cli.exit_codes import ExitCode

__all__ = ["hangup_is_an_end", "run_with_agent"]

T = TypeVar("T")

_SIGHUP = getattr(signal, "SIGHUP", None)  # None where there are no terminals that close
_CODES = {signal.SIGTERM: ExitCode.TERMINATED} | ({_SIGHUP: ExitCode.HUNG_UP} if _SIGHUP is not None else {})


def run_with_agent(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run(main)`, where SIGTERM and SIGHUP cancel `main` as Ctrl-C does.

    Raises Exit once `main` is over, with the code of the first signal; more of them change nothing, since `timeout` and
    shells send two. A signal that was ignored when the command began stays so (nohup).
    """
    told: list[ExitCode] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    def end(number: int, _frame: FrameType | None) -> None:
        if told:
            return
        told.append(_CODES[signal.Signals(number)])
        _give_up_pipes()
        for loop, task in running:
            with suppress(RuntimeError):  # the loop is closed: `main` is over
                loop.call_soon_threadsafe(task.cancel)

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        running.append((task.get_loop(), task))
        if told:
            task.cancel()
        return await main

    with _handled_by(end):
        try:
            return asyncio.run(watched())
        finally:
            if told:  # whatever else that brought about, such as a terminal that takes nothing any more
                raise click.exceptions.Exit(told[0]) from None


def hangup_is_an_end() -> None:
    """SIGHUP is taken as SIGTERM is, for the rest of the process; not where it is ignored (nohup)."""
    if _SIGHUP is not None and signal.getsignal(_SIGHUP) is signal.SIG_DFL:
        signal.signal(_SIGHUP, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))


@contextmanager
def _handled_by(end: Any) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _CODES}
    ours = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _give_up_pipes() -> None:
    """What is written to a pipe from now on goes nowhere: a write that waits for a reader would wait for ever.

    It is tried again when the signal's handler has returned, and then there is room.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with suppress(OSError):
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                os.dup2(nothing, descriptor)
    os.close(nothing)
