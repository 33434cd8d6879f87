"""Bytes in and bytes out of one descriptor, on any event loop: readiness from the loop, `os.read` and `os.write` by us.

The pipe transports of the loops are never used: they leave `O_NONBLOCK` on descriptions that others share, and
uvloop's abort the interpreter on a regular file. What kind of descriptor it is, `descriptors.py` has settled. This
room never splits lines and never reads more than it can hand on.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections import deque
from collections.abc import Callable

from acprt.transports.descriptors import READ_BYTES, source_of, target_of

__all__ = ["FdReader", "FdWriter"]

_READS_PER_TURN = 4  # a full read hints at an enlarged pipe (256 KiB); more would starve the loop's other work

_Callback = Callable[[], None]


class FdReader:
    """Reads `fd`, which it owns from now on (also when this fails), and gives its bytes to `on_data` as they come.

    `on_end` is called once: with None at end of file, with the error when reading failed. All calls come from the
    running loop, none from inside the constructor. A pipe that this process made must be non-blocking already
    (`os.set_blocking(fd, False)`); a blocking one is served too, by a thread.
    """

    __slots__ = ("_closed", "_on_data", "_on_end", "_paused", "_receive", "_source", "_terminal", "_watching")

    def __init__(self, fd: int, *, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end
        self._source = source_of(fd, asyncio.get_running_loop())
        self._receive = self._source.receive
        self._terminal = stat.S_ISCHR(os.fstat(fd).st_mode)
        self._paused = False
        self._closed = False
        self._watching = False
        try:
            self.resume()
        except BaseException:
            self._source.close()
            raise

    def pause(self) -> None:
        """Give no more bytes until `resume`. Also stops a turn that is giving them just now."""
        self._paused = True  # the watch is ended when it next fires: most pauses are shorter than two system calls

    def resume(self) -> None:
        """Give bytes again."""
        if self._closed:
            return
        self._paused = False
        if not self._watching:
            self._source.watch(self._ready)
            self._watching = True

    def redirect(self, on_data: Callable[[bytes], None]) -> None:
        """Give what comes from now on to `on_data`."""
        self._on_data = on_data

    def close(self) -> None:
        """Stop at once and close the descriptor; no callback comes any more. Idempotent."""
        if not self._closed:
            self._closed = self._paused = True
            self._unwatch()
            self._source.close()

    def _ready(self) -> None:
        for _ in range(_READS_PER_TURN):
            if self._paused:
                self._unwatch()
                return
            try:
                data = self._receive()
            except BlockingIOError:
                return
            except OSError as error:
                hung_up = self._terminal and error.errno == errno.EIO  # how a terminal whose other side went says EOF
                self._end(None if hung_up else error)
                return
            if not data:
                self._end(None)
                return
            self._on_data(data)
            if len(data) < READ_BYTES:
                return

    def _end(self, error: OSError | None) -> None:
        self.close()
        self._on_end(error)

    def _unwatch(self) -> None:
        if self._watching:
            self._watching = False
            self._source.unwatch()


class FdWriter:
    """Writes to `fd`, which it owns from now on (also when this fails): at once, or behind what is kept already.

    `on_pause` tells, from inside `write`, that bytes are kept, and `on_resume` that none are left; `on_error` is called
    once, when writing failed. The last two come from the running loop, never from inside `write`. What is written after
    an error or after `close` is dropped. As for `FdReader`, a pipe of our own must be non-blocking already.
    """

    __slots__ = (
        "_aborted", "_closing", "_error", "_kept", "_loop", "_on_error", "_on_pause", "_on_resume",
        "_paused", "_released", "_send", "_target", "_waiters", "buffered",
    )  # fmt: skip

    def __init__(
        self, fd: int, *, on_pause: _Callback, on_resume: _Callback, on_error: Callable[[OSError], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_pause = on_pause
        self._on_resume = on_resume
        self._on_error = on_error
        self._target = target_of(fd, self._loop)
        self._send: Callable[[bytes | memoryview], int] = self._target.send
        self._kept: deque[memoryview] = deque()
        self.buffered = 0
        """Bytes accepted and not yet written."""
        self._waiters: list[asyncio.Future[None]] = []
        self._error: OSError | None = None
        self._paused = False  # `on_pause` was called and `on_resume` not yet
        self._closing = False
        self._aborted = False
        self._released = False

    def write(self, data: bytes) -> None:
        """Write `data` now as far as it goes and keep the rest. Never raises for I/O."""
        if self.buffered:
            self._keep(memoryview(data))
            return
        try:
            sent = self._send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._fail(error)
            return
        if sent != len(data):
            self._keep(memoryview(data)[sent:])

    async def drain(self) -> None:
        """Wait until what was accepted so far is written. Raises OSError (a BrokenPipeError, say) when it cannot be."""
        if self.buffered:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                self._waiters.remove(waiter)
        if self._error is not None:
            raise OSError(*self._error.args)  # a new one each time, of the same class, so that no traceback piles up

    def close(self) -> None:
        """Close the descriptor once everything kept is written: the other side then sees EOF. Idempotent."""
        if not self._closing:
            self._closing = True
            if not self.buffered:
                self._finish()

    def abort(self) -> None:
        """Drop what is kept and close the descriptor now; no callback comes any more. Idempotent."""
        self._closing = self._aborted = True
        if self.buffered:
            self._error = BrokenPipeError(errno.EPIPE, "closed before everything was written")
        self._release()

    def _keep(self, rest: memoryview) -> None:
        if self._closing:
            return
        if not self.buffered:
            self._target.watch(self._flush)
            if not self._paused:
                self._paused = True
                self._on_pause()
        self._kept.append(rest)
        self.buffered += len(rest)

    def _flush(self) -> None:
        kept = self._kept
        while kept:
            head = kept[0]
            try:
                sent = self._send(head)
            except BlockingIOError:
                return
            except OSError as error:
                self._fail(error)
                return
            self.buffered -= sent
            if sent < len(head):
                kept[0] = head[sent:]
                return
            kept.popleft()
            if len(kept) > 1:
                self._join_small()
        self._target.unwatch()
        self._wake()
        if self._closing:
            self._finish()
        if self._paused:
            self._paused = False
            self._on_resume()

    def _join_small(self) -> None:
        """Many small buffers become one of a pipe's size: one system call instead of one each."""
        kept, batch, size = self._kept, [], 0
        while kept and size + len(kept[0]) <= READ_BYTES:
            size += len(kept[0])
            batch.append(kept.popleft())
        if batch:
            kept.appendleft(memoryview(b"".join(batch)))

    def _fail(self, error: OSError) -> None:
        self._error = error
        self._release()
        self._loop.call_soon(self._announce_error, error)

    def _finish(self) -> None:
        self._target.half_close()
        self._release()

    def _release(self) -> None:
        if not self._released:
            self._released = True
            if self.buffered:
                self._target.unwatch()
            self._kept.clear()
            self.buffered = 0
            self._send = len  # from now on everything counts as written: it is dropped without a test in `write`
            self._target.close()
            self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _announce_error(self, error: OSError) -> None:
        if not self._aborted:
            self._on_error(error)
