"""One run of a child process, from the first byte to the last descriptor: delivery, exit, teardown.

The exit of the child is the end of its input, whatever its status and whoever else holds its pipes (DEC-27). It must
never wait without a bound, and never let the end of the loop, of a task or of the interpreter leave the child behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import os
import signal
import weakref
from collections.abc import Callable

from acprt.limits import Limits
from acprt.transports.base import ChildWatcher, Sink
from acprt.transports.child import Child
from acprt.transports.child_output import ChildOutput
from acprt.transports.pipes import FdWriter
from acprt.transports.stderr import StderrLines, StderrTail
from acprt.wire.lines import LineSplitter

__all__ = ["ChildRun"]

_LAST_WORDS_SECONDS = 0.2  # between two signs of one end: EOF or EPIPE and exit; exit and EOF (a `tee` after the agent)
_KILL_SECONDS = 1.0  # SIGKILL takes about a millisecond; only a process deep in the kernel needs longer

_logger = logging.getLogger("acprt.process")


class _Stage(enum.IntEnum):
    RUNNING = 0
    EXITED = 1  # gone, but not reaped: for a moment its pipes may still end by themselves
    REAPED = 2  # its group was killed; what the pipes hold is being read
    RELEASED = 3  # every descriptor is closed


class ChildRun:
    """Takes over a started `child` and everything that is open to it; delivers to `sink`."""

    def __init__(
        self,
        child: Child,
        sink: Sink,
        limits: Limits,
        on_stderr: Callable[[str], object] | None,
        loop: asyncio.AbstractEventLoop,
        watcher: ChildWatcher | None = None,
    ) -> None:
        self.child = child
        self._watcher = watcher
        if watcher is not None:
            on_stderr = _both(watcher.child_wrote, on_stderr)
        self._sink = sink
        self._limits = limits
        self._loop = loop
        self._stage = _Stage.RUNNING
        self._told = False  # the sink has heard of the end, one way or the other
        self._end_due = False  # it will when it reads again
        self._paused = False
        self._discarding = False  # lines were dropped: none may follow
        self._hurried = False
        self._exited = asyncio.Event()
        self._released = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._splitter = LineSplitter(limits.line_bytes)
        self._tail = StderrTail(limits.stderr_tail_bytes)
        self._lines = None if on_stderr is None else StderrLines(on_stderr, limits, name=f"pid {child.pid}")
        with contextlib.ExitStack() as undo:
            untaken = {child.stdin, child.stdout, child.stderr, child.exit_fd}
            undo.callback(_close_all, untaken)
            untaken.discard(child.stdin)
            self.writer = FdWriter(
                child.stdin, on_pause=sink.pause_writing, on_resume=sink.resume_writing, on_error=self._stdin_failed
            )
            undo.callback(self.writer.abort)
            untaken.discard(child.stdout)
            self._stdout = ChildOutput(child.stdout, on_data=self._stdout_data, on_end=self._stdout_ended)
            undo.callback(self._stdout.close)
            untaken.discard(child.stderr)
            self._stderr = ChildOutput(child.stderr, on_data=self._stderr_data, on_end=self._stderr_ended)
            undo.callback(self._stderr.close)
            guard = _LoopGuard(self)
            loop.add_reader(child.exit_fd, guard.child_exited)
            weakref.finalize(guard, self._abandon)
            undo.pop_all()
        self._exit_fd: int | None = child.exit_fd
        _logger.debug("pid %d started", child.pid)

    @property
    def closed(self) -> bool:
        """Whether `aclose` came to its end, or the loop did."""
        if self._loop.is_closed():
            return True
        return self._stage is _Stage.RELEASED and self._closing is not None and self._closing.done()

    @property
    def stderr_dropped(self) -> int:
        """Lines that a slow `on_stderr` never saw."""
        return self._lines.dropped if self._lines else 0

    def stderr_tail(self) -> str:
        """The end of what the child wrote to its stderr so far."""
        return self._tail.text()

    # ── Input ────────────────────────────────────────────────────────────────────────────────────────────────────

    def pause_reading(self) -> None:
        """Deliver no lines until `resume_reading`; while closing, drop them instead, so that the child can end."""
        if self._closing is not None:
            self._discarding = True
        else:
            self._paused = True
            self._stdout.pause()

    def resume_reading(self) -> None:
        """Deliver again."""
        if self._paused:
            self._paused = False
            self._stdout.resume()
            if self._end_due:
                self._loop.call_soon(self._report_end)

    def _stdout_data(self, data: bytes) -> None:
        if not self._discarding:
            lines = self._splitter.feed(data)
            if lines:
                self._sink.lines_received(lines)

    def _stderr_data(self, data: bytes) -> None:
        self._tail.feed(data)
        if self._lines:
            self._lines.feed(data)

    # ── How it ends ──────────────────────────────────────────────────────────────────────────────────────────────

    def _stdout_ended(self, error: OSError | None) -> None:
        if error is not None:
            self._lose(error)
        if self._stage is _Stage.RUNNING:  # most likely it is exiting, and its status belongs to the errors (PY-75)
            self._loop.call_later(_LAST_WORDS_SECONDS, self._stop_waiting_for_exit)
        else:
            self._output_ended()

    def _stderr_ended(self, error: OSError | None) -> None:
        if error is not None:
            _logger.warning("stderr of pid %d cannot be read any more: %s", self.child.pid, error)
        if self._lines:
            self._lines.close()
        self._output_ended()

    def _stdin_failed(self, error: OSError) -> None:
        if self._stage is _Stage.RUNNING:
            self._loop.call_later(_LAST_WORDS_SECONDS, self._lose_if_it_lives_on, error)

    def _lose_if_it_lives_on(self, error: OSError) -> None:
        if self._stage is _Stage.RUNNING and not self._stdout.ended:
            self._lose(error)

    def _stop_waiting_for_exit(self) -> None:
        if self._stage is _Stage.RUNNING:
            self._report_end()
        else:
            self._reap()

    def _child_exited(self) -> bool:
        """The child is gone. True: its outputs have not ended, be back in a moment and `_reap`."""
        self._stage = _Stage.EXITED
        self._exited.set()
        if self._hurried:
            self._reap()
        else:
            self._output_ended()
        return self._stage is _Stage.EXITED

    def _output_ended(self) -> None:
        if self._stdout.ended and self._stderr.ended:
            self._reap()
            if self._stage is _Stage.REAPED:
                try:
                    self._report_end()
                finally:
                    self._release()

    def _reap(self) -> None:
        if self._stage is not _Stage.EXITED:
            return
        self._stage = _Stage.REAPED
        self.child.reap()
        _logger.debug("pid %d exited with status %s", self.child.pid, self.child.exit_status)
        if self._watcher is not None:
            self._watcher.child_exited(self.child.pid, self.child.exit_status)
        self.writer.abort()
        self._stdout.settle()
        self._stderr.settle()
        self._output_ended()

    def _lose(self, error: OSError) -> None:
        if not self._told and self._closing is None:
            self._told = self._discarding = True
            self._sink.connection_lost(error)

    def _report_end(self) -> None:
        if self._told:
            return
        if self._paused:
            self._end_due = True
            return
        self._told = True
        lines = self._splitter.finish()
        if lines and not self._discarding:
            self._sink.lines_received(lines)
        self._sink.eof_received()

    def _release(self) -> None:
        """Close every descriptor that is open to the child. Idempotent."""
        self._stage = _Stage.RELEASED
        with contextlib.ExitStack() as all_of_it:  # waking a waiter raises when the loop is closed: the rest must go on
            all_of_it.callback(self._released.set)
            if self._lines:
                all_of_it.callback(self._lines.close)
            if self._exit_fd is not None:
                all_of_it.callback(os.close, self._exit_fd)
                all_of_it.callback(self._loop.remove_reader, self._exit_fd)
                self._exit_fd = None
            for end in (self.writer.abort, self._stdout.close, self._stderr.close):
                all_of_it.callback(end)

    # ── How it is ended ──────────────────────────────────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """End the child; shared by all who call it. A cancelled caller makes it skip to SIGKILL."""
        if self._loop.is_closed():
            self._abandon()
            return
        task = self._closing
        if task is None:
            task = self._closing = self._loop.create_task(self._close(), name=f"acprt closes pid {self.child.pid}")
            _closing_tasks.add(task)
            task.add_done_callback(_closing_tasks.discard)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            self._kill()
            await asyncio.wait({task}, timeout=_KILL_SECONDS)
            raise
        if task.cancelled():  # together with all others, at the end of the loop: perhaps before its first step
            self._end_now()
        else:
            task.result()

    async def _close(self) -> None:
        try:
            if self._paused:
                self._discarding = True
                self.resume_reading()
            await self._end_gracefully()
            await _happens(self._released, within=_KILL_SECONDS)
            if self._lines and not self._hurried:
                await self._lines.delivered(_LAST_WORDS_SECONDS)
        finally:
            self._end_now()

    async def _end_gracefully(self) -> None:
        pid, limits = self.child.pid, self._limits
        self.writer.close()
        if self._stage is not _Stage.RUNNING:
            return
        _logger.debug("pid %d: stdin closed, it has %g s to exit", pid, limits.exit_grace_seconds)
        if await _happens(self._exited, within=limits.exit_grace_seconds):
            return
        self.writer.abort()  # it does not read: a descendant in a group of its own must see EOF nevertheless
        _logger.debug("pid %d: SIGTERM to its group, it has %g s to exit", pid, limits.term_grace_seconds)
        self.child.signal_group(signal.SIGTERM)
        if await _happens(self._exited, within=limits.term_grace_seconds):
            return
        self._kill()
        await _happens(self._exited, within=_KILL_SECONDS)

    def _kill(self) -> None:
        self._hurried = True
        if self._stage is _Stage.RUNNING:
            self.writer.abort()
            _logger.debug("pid %d: SIGKILL to its group", self.child.pid)
            self.child.signal_group(signal.SIGKILL)
        elif self._stage is _Stage.EXITED:
            self._loop.call_soon(self._reap)  # the sink is never called from inside a call of its owner

    def _end_now(self) -> None:
        """Whatever the stage: leave no process and no descriptor. Idempotent."""
        if self._stage is not _Stage.RELEASED:
            self.child.end_now()
            self._release()

    def _abandon(self) -> None:
        """The loop, or the interpreter, is at its end and nobody closed the child."""
        if not self.child.reaped:
            _logger.warning(
                "pid %d still ran at the end of its event loop and was killed: close its connection before"
                " (`async with`, or `aclose()`)",
                self.child.pid,
            )
            self.child.end_now()
        if self._loop.is_closed():
            if self._closing is not None:
                _closing_tasks.discard(self._closing)  # it will never be done
            with contextlib.suppress(RuntimeError):  # tasks of the closed loop cannot be woken any more
                self._end_now()


class _LoopGuard:
    """Held by nothing but the loop's tables, so that it goes when the loop is closed: nothing else tells of that."""

    __slots__ = ("__weakref__", "_run")

    def __init__(self, run: ChildRun) -> None:
        self._run = run

    def child_exited(self) -> None:
        run = self._run
        run._loop.remove_reader(run.child.exit_fd)
        if run._child_exited():
            run._loop.call_later(_LAST_WORDS_SECONDS, self.last_words_are_over)

    def last_words_are_over(self) -> None:
        self._run._reap()


_closing_tasks: set[asyncio.Task[None]] = set()  # a loop holds its tasks weakly, and a teardown must come to its end


def _both(first: Callable[[str], object], second: Callable[[str], object] | None) -> Callable[[str], object]:
    def call(line: str) -> None:
        first(line)
        if second is not None:
            second(line)

    return call


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


def _close_all(descriptors: set[int]) -> None:
    for fd in descriptors:
        os.close(fd)
