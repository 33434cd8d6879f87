"""Runs any program with stdin and stdout redirected in every way a user can, and watches what happens to both.

The whole matrix (PY-76) for whatever serves stdio: the program under test
is an argument vector. Nothing here knows the program's protocol.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

STDIN = ["pipe", "closed-pipe", "file", "null", "tty", "socket", "closed"]
STDOUT = ["pipe", "new-file", "append-file", "null", "tty"]

SILENT_STDIN = {"null", "closed"}
"""Kinds of stdin that give no line: the end comes at once."""

APPENDED_TO = b"what was there\n"
"""What an append-file holds before the program starts."""

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | {
    "PYTHONPATH": str(ROOT)
}
SECONDS = 30  # for one program: an end that is not reached by then is a hang


class Outcome(NamedTuple):
    """How a program ended, what it wrote (None: nobody can know), and the status flags of what it was given."""

    exit_status: int
    output: bytes | None
    errors: str
    flags_before: list[int]
    flags_after: list[int]


class Source(NamedTuple):
    """A stdin: the child's descriptor (None: closed) and what the parent does once the child runs."""

    fd: int | None
    feed: Callable[[], None]


class Drain(NamedTuple):
    """A stdout: the child's descriptor and how the parent learns, after the end, what was written."""

    fd: int
    collect: Callable[[], bytes | None]


def run_redirected(argv: Sequence[str], stdin: str, stdout: str, data: bytes, directory: Path) -> Outcome:
    """Run `argv` with `data` (whole lines, less than a pipe holds) as its input, to its end."""
    with open_source(stdin, data, directory) as source, open_drain(stdout, directory) as drain:
        shared = [fd for fd in (source.fd, drain.fd) if fd is not None]
        before = [flags(fd) for fd in shared]
        child = spawn(argv, source.fd, drain.fd, directory)
        try:
            source.feed()
            status = child.wait(SECONDS)
        finally:
            child.kill()
            child.wait()
        after = [flags(fd) for fd in shared]
        output = drain.collect()
    return Outcome(status, output, errors_of(directory), before, after)


def spawn(argv: Sequence[str], stdin: int | None, stdout: int, directory: Path) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, without a controlling terminal; its stderr goes to a file."""
    if stdin is None:
        argv = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *argv]
    with (directory / "stderr").open("ab") as stderr:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout,
            stderr=stderr,
            env=ENVIRONMENT,
            start_new_session=True,
        )


def errors_of(directory: Path) -> str:
    """What programs started with this directory wrote to stderr."""
    return (directory / "stderr").read_text()


def flags(fd: int) -> int:
    """The status flags of the description behind `fd`, which everybody shares."""
    return fcntl.fcntl(fd, fcntl.F_GETFL)


@contextlib.contextmanager
def open_source(kind: str, data: bytes, directory: Path) -> Iterator[Source]:
    """A stdin of this kind that will give `data` and then its end."""
    with contextlib.ExitStack() as stack:

        def closing(*fds: int) -> None:
            for fd in fds:
                stack.callback(_close, fd)

        def nothing() -> None:
            pass

        def feed_and_close(fd: int) -> None:
            os.write(fd, data)
            os.close(fd)

        if kind == "pipe":
            read_end, write_end = os.pipe()
            closing(read_end)
            yield Source(read_end, lambda: feed_and_close(write_end))
        elif kind == "closed-pipe":
            read_end, write_end = os.pipe()
            closing(read_end)
            feed_and_close(write_end)
            yield Source(read_end, nothing)
        elif kind == "file":
            (directory / "stdin").write_bytes(data)
            fd = os.open(directory / "stdin", os.O_RDONLY)
            closing(fd)
            yield Source(fd, nothing)
        elif kind == "null":
            fd = os.open(os.devnull, os.O_RDONLY)
            closing(fd)
            yield Source(fd, nothing)
        elif kind == "tty":
            master, slave = open_terminal()
            closing(master, slave)

            def type_in() -> None:
                os.write(master, data + b"\x04")  # Ctrl-D at the start of a line

            yield Source(slave, type_in)
        elif kind == "socket":
            ours, theirs = (end.detach() for end in socket.socketpair())
            closing(theirs)
            yield Source(theirs, lambda: feed_and_close(ours))
        elif kind == "closed":
            yield Source(None, nothing)
        else:
            raise ValueError(kind)


@contextlib.contextmanager
def open_drain(kind: str, directory: Path) -> Iterator[Drain]:
    """A stdout of this kind."""
    path = directory / "stdout"
    with contextlib.ExitStack() as stack:
        if kind == "pipe":
            read_end, write_end = os.pipe()
            stack.callback(_close, read_end)
            stack.callback(_close, write_end)
            yield Drain(write_end, lambda: _read_all(read_end, write_end))
        elif kind in ("new-file", "append-file"):
            mode = os.O_WRONLY | os.O_CREAT
            if kind == "append-file":
                path.write_bytes(APPENDED_TO)
                mode |= os.O_APPEND
            else:
                mode |= os.O_TRUNC
            fd = os.open(path, mode, 0o600)
            stack.callback(_close, fd)
            yield Drain(fd, path.read_bytes)
        elif kind == "null":
            fd = os.open(os.devnull, os.O_WRONLY)
            stack.callback(_close, fd)
            yield Drain(fd, lambda: None)
        elif kind == "tty":
            master, slave = open_terminal()
            stack.callback(_close, master)
            stack.callback(_close, slave)
            yield Drain(slave, lambda: _read_all(master, slave))
        else:
            raise ValueError(kind)


def open_terminal() -> tuple[int, int]:
    """Both sides of a terminal that gives lines, knows Ctrl-D, echoes nothing and passes output as it is."""
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[tty.OFLAG] &= ~termios.OPOST
    attributes[tty.LFLAG] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    return master, slave


def _read_all(ours: int, theirs: int) -> bytes:
    os.close(theirs)  # the last copy: now there is an end
    chunks = []
    with contextlib.suppress(OSError):  # EIO: how a terminal says it
        while chunk := os.read(ours, 65536):
            chunks.append(chunk)
    return b"".join(chunks)


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):  # closed already, on purpose
        os.close(fd)
