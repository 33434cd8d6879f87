"""Descriptors that no loop may have (regular files, odd devices, shared pipes), served by a thread each.

Both ends look like non-blocking ones to `pipes.py`: BlockingIOError now, a call when trying again is worth it. The
threads are daemons and wait in `poll` next to a wake-up pipe, so that neither a close nor the end of the process has
to wait for a peer. At most one chunk is in flight. Nothing here may touch the flags of a descriptor.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable

__all__ = ["ThreadSource", "ThreadTarget"]

_Callback = Callable[[], None]


class _ThreadEnd:
    """What both directions share: the thread, its orders, and the way back to the loop."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, events: int) -> None:
        self._fd = fd
        self._loop = loop
        self._events = events
        self._ready: _Callback | None = None
        self._closed = False
        self._busy = False  # the thread has an order whose result has not arrived
        self._data: bytes | memoryview = b""  # what the order is about
        self._ordered = threading.Semaphore(0)
        self._wake_read, self._wake_write = os.pipe()
        try:
            threading.Thread(target=self._run, name=f"acprt-fd-{fd}", daemon=True).start()
        except BaseException:
            os.close(self._wake_read)
            os.close(self._wake_write)
            raise

    def unwatch(self) -> None:
        """End the watch; what is in flight is kept."""
        self._ready = None

    def close(self) -> None:
        """The thread ends as soon as it can, and closes the descriptor: closing it under a read would be a race."""
        if not self._closed:
            self._closed = True
            self._ordered.release()
            os.close(self._wake_write)

    def _order(self, data: bytes | memoryview) -> None:
        self._busy = True
        self._data = data
        self._ordered.release()

    def _run(self) -> None:
        try:
            while self._ordered.acquire() and not self._closed:
                result = self._perform(self._data)
                if result is None:
                    return
                self._data = b""
                self._loop.call_soon_threadsafe(self._arrived, result)
        except RuntimeError:  # the loop was closed meanwhile: nobody is left to tell
            if not self._loop.is_closed():
                raise
        finally:
            os.close(self._fd)
            os.close(self._wake_read)

    def _perform(self, data: bytes | memoryview) -> bytes | int | OSError | None:
        """Carry out one order; None when closed before it could be."""
        raise NotImplementedError

    def _arrived(self, result: bytes | int | OSError) -> None:
        raise NotImplementedError

    def _wait(self) -> bool:
        """Wait until the descriptor is ready, or until `close`, which gives False."""
        if hasattr(select, "poll"):  # elsewhere (Windows) the call itself blocks
            poller = select.poll()
            poller.register(self._fd, self._events)
            poller.register(self._wake_read, select.POLLIN)
            return not any(fd == self._wake_read for fd, _ in poller.poll())
        return not self._closed


class ThreadSource(_ThreadEnd):
    """A descriptor to read: the thread reads one chunk while it is watched, and waits until that was taken."""

    def __init__(self, fd: int, size: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(fd, loop, select.POLLIN if hasattr(select, "poll") else 0)
        self._size = size
        self._result: bytes | OSError | None = None

    def receive(self) -> bytes:
        """The chunk that the thread has read, b"" at the end; BlockingIOError when it has none yet."""
        result = self._result
        if result is None:
            raise BlockingIOError
        self._result = None
        if isinstance(result, OSError):
            raise result
        if result and self._ready is not None:
            self._order(b"")
        return result

    def watch(self, ready: _Callback) -> None:
        """Call `ready` when a chunk is there; reading starts with the first watch."""
        self._ready = ready
        if self._result is not None:
            self._loop.call_soon(self._tell)
        elif not self._busy:
            self._order(b"")

    def _perform(self, data: bytes | memoryview) -> bytes | OSError | None:
        while self._wait():
            try:
                return os.read(self._fd, self._size)
            except BlockingIOError:  # somebody else set the flag, or was faster
                continue
            except OSError as error:
                return error
        return None

    def _arrived(self, result: bytes | int | OSError) -> None:
        assert not isinstance(result, int)
        self._busy = False
        self._result = result
        self._tell()

    def _tell(self) -> None:
        if self._ready is not None and not self._closed and self._result is not None:
            self._ready()


class ThreadTarget(_ThreadEnd):
    """A descriptor to write: the thread writes one buffer, then says so."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(fd, loop, select.POLLOUT if hasattr(select, "poll") else 0)
        self._result: int | OSError | None = None
        self._piece = getattr(select, "PIPE_BUF", 512)  # what poll calls ready takes that much without blocking

    def send(self, data: bytes | memoryview) -> int:
        """Hand `data` to the thread, then BlockingIOError; when it is written, the same call gives its length."""
        result, self._result = self._result, None
        if result is None:
            if not data:
                return 0
            if not self._busy:
                self._order(data)
            raise BlockingIOError
        if isinstance(result, OSError):
            raise result
        return result

    def watch(self, ready: _Callback) -> None:
        """Call `ready` when the thread has written what it was given."""
        self._ready = ready
        if self._result is not None:
            self._loop.call_soon(self._tell)

    def half_close(self) -> None:
        """Nothing to do: closing says it."""

    def _perform(self, data: bytes | memoryview) -> int | OSError | None:
        rest = memoryview(data)
        while rest:
            if not self._wait():
                return None
            try:
                rest = rest[os.write(self._fd, rest[: self._piece]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                return error
        return len(data)

    def _arrived(self, result: bytes | int | OSError) -> None:
        assert not isinstance(result, bytes)
        self._busy = False
        self._result = result
        self._tell()

    def _tell(self) -> None:
        if self._ready is not None and not self._closed and self._result is not None:
            self._ready()
