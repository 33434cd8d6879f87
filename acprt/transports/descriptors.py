"""What a file descriptor is, and the one right way to serve each kind without harming whoever shares it.

A pipe, a terminal, a socket, a file or nothing at all may stand behind the number: here it becomes a source or a
target that behaves like a non-blocking one. This room must never change a description that this process did not
open (the `O_NONBLOCK` flag is the parent's too), and never give a loop what cannot be polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol

__all__ = [
    "READ_BYTES",
    "Source",
    "Target",
    "duplicate",
    "is_inherited",
    "make_private",
    "open_closed_descriptors",
    "source_of",
    "target_of",
]

READ_BYTES = 64 * 1024
"""One read. A default pipe holds no more, and a block of 256 KiB would be mapped and unmapped by malloc each time."""

_PTY_MASTER = os.makedev(5, 2) if sys.platform == "linux" else None  # opening it again would make another terminal

_Callback = Callable[[], None]


def make_private(fd: int, access: int) -> int:
    """A descriptor of our own (never 0, 1 or 2; not inherited) for what `fd` names, to read (`os.O_RDONLY`) or write.

    The `O_NONBLOCK` flag belongs to the description, which an inherited descriptor shares with the parent and its
    terminal: it must stay as found (PY-76), also when this process is killed. So a pipe or a terminal is opened again,
    which makes a non-blocking description of our own. Anything else, or a refusal, gives a plain duplicate: sockets
    are then used without the flag, and the rest by threads. A regular file must be duplicated, not opened again: the
    shared offset is what makes two writers of one log append to each other.
    """
    if sys.platform == "win32":
        return duplicate(fd)
    status = os.fstat(fd)
    fifo = stat.S_ISFIFO(status.st_mode)
    if fifo or (stat.S_ISCHR(status.st_mode) and status.st_rdev != _PTY_MASTER and os.isatty(fd)):
        try:
            own = os.open(f"/proc/self/fd/{fd}", access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # no /proc, another user's terminal, a pipe without a reader
            return duplicate(fd)
        if not (fifo and access == os.O_RDONLY and _hung_up(fd)):
            return own if own > 2 else _moved_up(own)
        os.close(own)  # a named pipe opened after its last writer went never reports the end to a loop
    return duplicate(fd)


def duplicate(fd: int) -> int:
    """A duplicate of `fd` that children do not inherit, never numbered 0, 1 or 2, even when those are closed."""
    if sys.platform == "win32":
        return os.dup(fd)
    import fcntl  # not on Windows

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def open_closed_descriptors() -> None:
    """Open what is closed of 0, 1 and 2 on the null device. To be called before a loop is made.

    Otherwise the loop's own descriptors land there, and whatever prints then writes into the loop.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            os.set_inheritable(fd, True)


def is_inherited(fd: int) -> bool:
    """Whether `fd` came with the process. One that is not passed on was opened here, perhaps by the loop itself."""
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


class Source(Protocol):
    """Where bytes are read from, as though it were non-blocking."""

    def receive(self) -> bytes:
        """Up to `READ_BYTES` bytes, b"" at the end; raises BlockingIOError when there is nothing yet."""

    def watch(self, ready: _Callback) -> None:
        """Call `ready` from the loop whenever `receive` is worth a try."""

    def unwatch(self) -> None:
        """End the watch."""

    def close(self) -> None:
        """Close the descriptor; called once, and unwatched before."""


class Target(Protocol):
    """Where bytes are written to, as though it were non-blocking."""

    def send(self, data: bytes | memoryview) -> int:
        """How much of `data` was written; after BlockingIOError the same data must be offered again."""

    def watch(self, ready: _Callback) -> None:
        """Call `ready` from the loop whenever `send` is worth a try."""

    def unwatch(self) -> None:
        """End the watch."""

    def half_close(self) -> None:
        """Tell the other side that nothing more comes, where closing a descriptor does not."""

    def close(self) -> None:
        """Close the descriptor; called once, and unwatched before."""


def source_of(fd: int, loop: asyncio.AbstractEventLoop) -> Source:
    """`fd` as a source, which owns it from now on; closed when this fails."""
    try:
        mode = os.fstat(fd).st_mode
        if sys.platform == "linux" and stat.S_ISSOCK(mode):
            return _SocketSource(fd, loop)
        if _can_be_watched(fd, mode):
            return _ReadySource(fd, loop)
        from acprt.transports.blocking import ThreadSource  # a pipe needs no thread (bench-core w5)

        return ThreadSource(fd, READ_BYTES, loop)
    except BaseException:
        _close_quietly(fd)
        raise


def target_of(fd: int, loop: asyncio.AbstractEventLoop) -> Target:
    """`fd` as a target, which owns it from now on; closed when this fails."""
    try:
        status = os.fstat(fd)
        if sys.platform == "linux" and stat.S_ISSOCK(status.st_mode):
            return _SocketTarget(fd, loop)
        if _can_be_watched(fd, status.st_mode):
            return _ReadyTarget(fd, loop)
        if stat.S_ISREG(status.st_mode) or _is_null_device(status):
            return _FileTarget(fd)
        from acprt.transports.blocking import ThreadTarget  # as above

        return ThreadTarget(fd, loop)
    except BaseException:
        _close_quietly(fd)
        raise


def _can_be_watched(fd: int, mode: int) -> bool:
    """Whether a loop may have `fd`: pollable, and non-blocking already (uvloop would set the flag by itself)."""
    if sys.platform == "win32" or os.get_blocking(fd):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


class _ReadySource:
    """A non-blocking pipe or terminal."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._loop = loop
        self.receive: Callable[[], bytes] = partial(os.read, fd, READ_BYTES)

    def watch(self, ready: _Callback) -> None:
        self._loop.add_reader(self._fd, ready)

    def unwatch(self) -> None:
        self._loop.remove_reader(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class _ReadyTarget:
    """A non-blocking pipe or terminal."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fd = fd
        self._loop = loop
        self.send: Callable[[bytes | memoryview], int] = partial(os.write, fd)

    def watch(self, ready: _Callback) -> None:
        self._loop.add_writer(self._fd, ready)

    def unwatch(self) -> None:
        self._loop.remove_writer(self._fd)

    def half_close(self) -> None:
        pass  # closing says it

    def close(self) -> None:
        os.close(self._fd)


class _FileTarget:
    """A regular file or the null device: always ready, so it is written to directly."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def send(self, data: bytes | memoryview) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        return len(data)

    def watch(self, ready: _Callback) -> None:
        raise AssertionError("a file is always ready")

    def unwatch(self) -> None:
        pass

    def half_close(self) -> None:
        pass  # closing says it

    def close(self) -> None:
        os.close(self._fd)


if sys.platform == "linux":  # elsewhere inherited sockets are left to threads

    class _InheritedSocket:
        """A socket whose description may be shared: used with `MSG_DONTWAIT`, since it cannot be opened again.

        The loop gets an epoll descriptor of ours that watches the socket: uvloop sets `O_NONBLOCK` on what it watches.
        """

        def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, events: int) -> None:
            self._loop = loop
            self._epoll = select.epoll()
            self._epoll.register(fd, events)
            default = socket.getdefaulttimeout()  # a default timeout would make the socket non-blocking right here
            socket.setdefaulttimeout(None)
            try:
                self._socket = socket.socket(fileno=fd)
            finally:
                socket.setdefaulttimeout(default)

        def watch(self, ready: _Callback) -> None:
            self._loop.add_reader(self._epoll.fileno(), ready)

        def unwatch(self) -> None:
            self._loop.remove_reader(self._epoll.fileno())

        def close(self) -> None:
            self._epoll.close()
            self._socket.close()

    class _SocketSource(_InheritedSocket):
        def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(fd, loop, select.EPOLLIN)
            self.receive: Callable[[], bytes] = partial(self._socket.recv, READ_BYTES, socket.MSG_DONTWAIT)

    class _SocketTarget(_InheritedSocket):
        def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
            super().__init__(fd, loop, select.EPOLLOUT)

        def send(self, data: bytes | memoryview) -> int:
            return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

        def half_close(self) -> None:
            # The same socket may be stdin as well, and then closing one of two descriptors says nothing to the peer.
            with contextlib.suppress(OSError):  # the peer is gone already
                self._socket.shutdown(socket.SHUT_WR)


def _hung_up(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, 0)
    return any(events & select.POLLHUP for _, events in poller.poll(0))


def _moved_up(fd: int) -> int:
    try:
        return duplicate(fd)
    finally:
        os.close(fd)


def _is_null_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev


def _close_quietly(fd: int) -> None:
    with contextlib.suppress(OSError):  # it was no descriptor at all
        os.close(fd)
