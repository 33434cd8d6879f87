"""`acprt trace`: stand between an editor and an agent, pass every byte on as it is, and record what it meant.

Passing comes first: nothing that the trace does can hold a byte up, change it or lose it. Half-closes, the exit code
and the signals of the agent are passed on as well. A line is queued for the trace just before it is written, so that
an answer never stands before its request.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import click

from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import Failure
from acprt.cli.trace_file import opened_sink
from acprt.trace import Tap
from acprt.trace.records import LINE_BYTES
from acprt.transports.child import ask_for_death_with_parent
from acprt.transports.command import show_command
from acprt.transports.descriptors import open_closed_descriptors
from acprt.wire.lines import LineSplitter

__all__ = ["trace"]

_READ_BYTES = 256 * 1024
_LAST_WORDS_MILLISECONDS = 200  # after the agent's exit, how long its pipe may be silent: a descendant may hold it
_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_FROM_THE_TERMINAL = ("SIGINT", "SIGQUIT", "SIGHUP")  # reach the whole foreground group, so the agent has them already


@click.command
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Where the trace goes. It is appended to; a new file can be read by you only.",
)
@click.option("--stderr", "process", is_flag=True, help="Also record the agent's stderr, its start and its exit.")
@click.option("--no-redact", is_flag=True, help="Do not mask what looks like a secret.")
@click.option("--name", help="What the connection is called in the trace. [default: the program's name]")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- AGENT...")
def trace(output: str, process: bool, no_redact: bool, name: str | None, command: tuple[str, ...]) -> None:
    """Run AGENT and record everything that an editor and it say to each other.

    Put it in front of the agent's command in the editor's settings: `acprt trace -o trace.jsonl -- my-agent --flag`.
    Bytes, half-closes, signals and the exit code pass unchanged. Read the file with `acprt show`.

    In the trace, long values are cut. Exit codes: that of AGENT, or 2 usage, 3 it could not be started.
    """
    if sys.platform == "win32":
        raise click.UsageError("acprt trace needs POSIX pipes and signals")
    open_closed_descriptors()
    sink = opened_sink(output, option="--output", redact=not no_redact)
    label = name or os.path.basename(command[0])
    tap = Tap(label, [sink], process_sinks=[sink] if process else [], peer_is_child=True)
    try:
        child = _start(command, with_stderr=process)
    except OSError as error:
        raise Failure(f"{command[0]!r} could not be started: {error.strerror}", ExitCode.SPAWN_FAILED) from None
    with _signals_passed_on(child):
        status = _pass_everything(child, tap, show_command(command))
    tap.child_exited(child.pid, status)
    sink.close()
    _end_as(status)


def _start(command: tuple[str, ...], *, with_stderr: bool) -> subprocess.Popen[bytes]:
    """The agent in our own process group: who signals the group, as a terminal does, reaches it as without us."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if with_stderr else None,
        bufsize=0,
        preexec_fn=ask_for_death_with_parent() if sys.platform == "linux" else None,  # a killed tee is no shelter
    )


def _pass_everything(child: subprocess.Popen[bytes], tap: Tap, command: list[str]) -> int:
    """Pass both directions until the agent is gone and its last words are out; its status as `Popen` tells it."""
    assert child.stdin is not None
    assert child.stdout is not None
    tap.child_started(child.pid, command)
    gone_fd, announce_fd = os.pipe()
    to_agent, from_agent = LineSplitter(LINE_BYTES), LineSplitter(LINE_BYTES)
    lock = threading.Lock()  # events stand in the trace in the order in which they were passed

    def sent(data: bytes) -> None:
        with lock:
            for line in to_agent.feed(data) if data else to_agent.finish():
                tap.sent(line)

    def received(data: bytes) -> None:
        with lock:
            for line in from_agent.feed(data) if data else from_agent.finish():
                tap.received(line)

    outputs = [_Flow("stdout", child.stdout.fileno(), 1, received, gone_fd)]
    if child.stderr is not None:
        wrote = _Lines(tap.child_wrote)
        outputs.append(_Flow("stderr", child.stderr.fileno(), 2, wrote, gone_fd))
    _Flow("stdin", 0, child.stdin.fileno(), sent).start()
    for flow in outputs:
        flow.start()
    status = child.wait()
    os.close(announce_fd)
    for flow in outputs:
        flow.join()
    return status


class _Flow(threading.Thread):
    """Passes bytes from one descriptor to another until the first ends or the second is closed; then ends both.

    `gone_fd` reaches EOF when the agent has exited: from then on silence is the end, whoever still holds the pipe.
    """

    def __init__(
        self, name: str, source: int, target: int, seen: Callable[[bytes], None], gone_fd: int | None = None
    ) -> None:
        super().__init__(name=f"acprt trace {name}", daemon=True)
        self._source, self._target, self._seen, self._gone_fd = source, target, seen, gone_fd

    def run(self) -> None:
        """Pass, then let each side see the end that the other has come to."""
        try:
            while data := self._read():
                self._show(data)
                if not _write(self._target, data):
                    break
        finally:
            # Its own descriptors, not the objects of this process: nobody else uses them, and the other side of each
            # must see the end now. /dev/null takes their places, so that no later file gets the number.
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, self._target)
            os.dup2(nothing, self._source)
            os.close(nothing)
            self._show(b"")

    def _show(self, data: bytes) -> None:
        with contextlib.suppress(Exception):  # a trace with a gap is better than an agent without its input
            self._seen(data)

    def _read(self) -> bytes:
        """What has come; empty at the end."""
        while True:
            if not self._wait():
                return b""
            try:
                return os.read(self._source, _READ_BYTES)
            except BlockingIOError:  # the editor shares a description that does not block
                continue
            except OSError as error:
                if error.errno in (errno.EIO, errno.ECONNRESET, errno.EBADF):  # a terminal, or a socket, that has gone
                    return b""
                raise

    def _wait(self) -> bool:
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        if self._gone_fd is not None:
            poll.register(self._gone_fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll()}
        if self._source not in ready and self._gone_fd is not None:
            poll.unregister(self._gone_fd)
            return bool(poll.poll(_LAST_WORDS_MILLISECONDS))
        return True


def _write(target: int, data: bytes) -> bool:
    """Write all of it; False when that cannot be, since nobody reads there any more or the disk is full."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(target, select.POLLOUT)
            poll.poll()
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.EIO):
                with contextlib.suppress(OSError):
                    os.write(2, f"acprt: the output cannot be written: {error.strerror}\n".encode())
            return False
    return True


class _Lines:
    """Bytes of stderr as lines of text."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._splitter = LineSplitter(LINE_BYTES)

    def __call__(self, data: bytes) -> None:
        for line in self._splitter.feed(data) if data else self._splitter.finish():
            text = line if isinstance(line, bytes) else line.head
            self._on_line(text.decode("utf-8", "replace"))


@contextlib.contextmanager
def _signals_passed_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """While the agent runs, signals to us are for it; we end when it does."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if child.returncode is not None:  # nobody takes its last words
            os._exit(128 + number)
        if not (name in _FROM_THE_TERMINAL and _in_the_foreground()):
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (getattr(signal, name) for name in _PASSED_ON)}
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_the_foreground() -> bool:
    """Whether a terminal sends its Ctrl-C to our whole group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _end_as(status: int) -> None:
    """End as the agent did: by the same exit code, or by the same signal."""
    if status < 0:
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the core that matters is the agent's
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
        status = 128 - status  # a signal that does not end a process: what a shell would say
    # Not sys.exit: stdin may be held by a thread in a read, and stdout was given up already.
    os._exit(status)
