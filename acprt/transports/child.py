"""A child process and its group: started on pipes of our own, watched, signalled, reaped, never left behind.

It must never wait on the event loop's thread for more than a moment, and never signal a group whose number the system
could have given away: the child stays unreaped until what is left of its group was killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence

from acprt.transports.descriptors import duplicate

if sys.platform != "win32":
    import fcntl
    import select

__all__ = ["Child", "ask_for_death_with_parent"]

_PIPE_BYTES = 256 * 1024  # 1 MiB echoes run 1.7 times faster than on the default 64 KiB; 1 MiB pipes add nothing
_REAP_SECONDS = 0.25  # what a finalizer may wait for the end of a process that was sent SIGKILL: it takes about 1 ms
_PR_SET_PDEATHSIG = 1

_logger = logging.getLogger("acprt.process")


class Child:
    """Starts `argv` as the leader of its own process group. Raises OSError, with nothing left open, when that fails.

    `stdin`, `stdout` and `stderr` are our ends, non-blocking; `exit_fd` becomes readable once the child has exited.
    Whoever made the `Child` closes those four.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, die_with_parent: bool) -> None:
        self.exit_status: int | None = None
        """Set once the child was reaped; negative: the signal that ended it."""
        self._owner = os.getpid()  # a fork of this process must not end a child that is not its own
        self._reaped = False
        self._given_up = False  # a thread waits for it
        self._lock = threading.RLock()  # finalizers run anywhere, also inside a call that holds it
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            child_stdin, self.stdin = _pipe(theirs, ours)
            self.stdout, child_stdout = _pipe(ours, theirs)
            self.stderr, child_stderr = _pipe(ours, theirs)
            for fd in (self.stdin, self.stdout, self.stderr):
                os.set_blocking(fd, False)
            for fd in (self.stdin, self.stdout):
                _enlarge(fd)
            process = _popen(
                argv,
                stdin=child_stdin,
                stdout=child_stdout,
                stderr=child_stderr,
                env=env,
                cwd=cwd,
                preexec=ask_for_death_with_parent() if die_with_parent else None,
            )
            self.pid = process.pid
            process.returncode = 0  # from here on the child is ours to wait for: Popen neither reaps it nor warns
            try:
                self.exit_fd = _exit_descriptor(self.pid)
            except BaseException:
                self.end_now()
                raise
            ours.pop_all()

    @property
    def reaped(self) -> bool:
        """Whether there is nothing to end: the child was waited for, or it belongs to the process we are a fork of."""
        return self._reaped or os.getpid() != self._owner

    def signal_group(self, number: signal.Signals) -> None:
        """Send `number` to the child's group, descendants behind a wrapper included. A group that is gone is fine."""
        with self._lock:
            if not self._still_ours():
                return
            try:
                os.killpg(self.pid, number)
                reached = True
            except ProcessLookupError:
                reached = False  # the child moved to another group
            except PermissionError as error:  # a set-uid program; on macOS also a group of zombies only
                reached = False
                _logger.debug("the group of pid %d cannot be sent %s: %s", self.pid, number.name, error)
            if not reached or number == signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, number)

    def reap(self) -> None:
        """The child has exited: kill what is left of its group, then wait for it, so that the number is free again."""
        with self._lock:
            self.signal_group(signal.SIGKILL)
            if not self._wait():
                self._wait_elsewhere()

    def end_now(self) -> None:
        """The last resort, from any thread, for a child that nobody closes: SIGKILL to the group, and reap."""
        with self._lock:
            self.signal_group(signal.SIGKILL)
            deadline = time.monotonic() + _REAP_SECONDS
            while not self._wait():
                if self._given_up or time.monotonic() > deadline:
                    self._wait_elsewhere()
                    return
                time.sleep(0.001)

    def _still_ours(self) -> bool:
        """Whether the child runs or is an unreaped zombie of ours, so that its number cannot be anybody else's."""
        if self.reaped:
            return False
        if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            try:
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._lost()
                return False
        return True

    def _wait(self) -> bool:
        if self.reaped:
            return True
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            self._lost()
            return True
        if pid:
            self.exit_status = os.waitstatus_to_exitcode(status)
            self._reaped = True
        return self._reaped

    def _lost(self) -> None:
        self._reaped = True
        _logger.warning(
            "pid %d was waited for by something else in this process (or SIGCHLD is ignored here): its exit status is"
            " unknown and what is left of its group was not killed",
            self.pid,
        )

    def _wait_elsewhere(self) -> None:
        """Not even SIGKILL ended it yet (it is deep in the kernel): a thread waits, so that no zombie stays."""
        if self._given_up:
            return
        self._given_up = True
        _logger.warning("pid %d is not gone though it was sent SIGKILL", self.pid)
        with contextlib.suppress(RuntimeError):  # at interpreter exit no thread starts: init will wait for it
            threading.Thread(target=self._wait_long, name=f"acprt reaps {self.pid}", daemon=True).start()

    def _wait_long(self) -> None:
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
            self.exit_status = os.waitstatus_to_exitcode(status)
        self._reaped = True


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    """A close-on-exec pipe whose ends are closed by the stacks, both above the standard descriptors."""
    low = os.pipe()
    if min(low) > 2:
        reading.callback(os.close, low[0])
        writing.callback(os.close, low[1])
        return low
    try:  # this process runs with closed standard descriptors: what it prints must not reach the agent
        read_end = duplicate(low[0])
        reading.callback(os.close, read_end)
        write_end = duplicate(low[1])
        writing.callback(os.close, write_end)
    finally:
        os.close(low[0])
        os.close(low[1])
    return read_end, write_end


def _enlarge(fd: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # EPERM: this user's share of pipe memory is used up. The default does too
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _popen(
    argv: Sequence[str],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
    cwd: str | None,
    preexec: Callable[[], None] | None,
) -> subprocess.Popen[bytes]:
    with contextlib.ExitStack() as stack:
        if preexec is not None:  # 3.12+ warns of a fork in a threaded process: the child makes two system calls there
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", DeprecationWarning)
        return subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            process_group=0,
            preexec_fn=preexec,
        )


def ask_for_death_with_parent() -> Callable[[], None]:
    """What the child does between fork and exec: everything that can be prepared is prepared here, before the fork."""
    import ctypes  # only who asks for it pays for the import

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        if prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != parent:  # it died before we asked: nobody will send the signal
            os._exit(1)

    return ask


def _exit_descriptor(pid: int) -> int:
    """A descriptor that is readable once `pid` has exited, before it is reaped: a pidfd, else a pipe and a thread."""
    if hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except OSError as error:  # an old kernel, or a sandbox that forbids it
            _logger.debug("no pidfd for pid %d (%s): a thread waits for it", pid, error)
    with contextlib.ExitStack() as opened:
        exit_fd, announce_fd = _pipe(opened, opened)
        threading.Thread(
            target=_announce_exit, args=(pid, announce_fd), name=f"acprt waits for {pid}", daemon=True
        ).start()
        opened.pop_all()
    return exit_fd


def _announce_exit(pid: int, announce_fd: int) -> None:
    try:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        else:
            _wait_by_kqueue(pid)
    except (ChildProcessError, ProcessLookupError):
        pass  # somebody waited for it before us: it has exited all the same
    finally:
        os.close(announce_fd)


def _wait_by_kqueue(pid: int) -> None:
    """macOS before Python 3.13 has no waitid: the kernel's process filter tells of the exit without reaping."""
    queue = select.kqueue()  # type: ignore[attr-defined,unused-ignore]  # absent on the platforms that have waitid
    with contextlib.closing(queue):
        event = select.kevent(  # type: ignore[attr-defined,unused-ignore]  # as above
            pid,
            filter=select.KQ_FILTER_PROC,  # type: ignore[attr-defined,unused-ignore]  # as above
            flags=select.KQ_EV_ADD | select.KQ_EV_ONESHOT,  # type: ignore[attr-defined,unused-ignore]  # as above
            fflags=select.KQ_NOTE_EXIT,  # type: ignore[attr-defined,unused-ignore]  # as above
        )
        queue.control([event], 1, None)
