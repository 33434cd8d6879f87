"""What a child writes to its stderr: the end of it is kept as text for error reports, its lines go to a callback.

It must never hold up the child or the event loop, whatever the callback does, and never keep more than its limits.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import threading
import traceback
from collections import deque
from collections.abc import Callable

from acprt.limits import Limits

__all__ = ["StderrLines", "StderrTail"]

_TAIL_CUT = "[stderr truncated; showing last {} bytes]\n"
_LINE_CUT = "… [stderr line truncated]"
_LOG_RECORDS = 10  # a callback that raises for every line says nothing new after that

_logger = logging.getLogger("acprt.process")


class StderrTail:
    """The last `limit` bytes fed to it."""

    __slots__ = ("_limit", "_seen", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen = 0
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        """Take `data`; forget what is too old to be shown."""
        self._seen += len(data)
        self._tail += data
        if len(self._tail) > 2 * self._limit:  # not on every call: each cut moves the rest
            del self._tail[: len(self._tail) - self._limit]

    def text(self) -> str:
        """The tail as text of at most `limit` bytes in UTF-8, a line in front saying so if anything was cut (AG-32)."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._limit) :])
        cut = self._seen > self._limit
        shown = (_whole_characters(tail) if cut else tail).decode("utf-8", "replace")
        encoded = shown.encode()
        if not cut and len(encoded) <= self._limit:  # a replacement takes three bytes for one
            return shown
        room = self._limit - len(_TAIL_CUT.format(self._limit))
        if room <= 0:
            room = self._limit  # too small a limit for both: the end of stderr is worth more than the exact size
        encoded = _whole_characters(encoded[max(0, len(encoded) - room) :])
        return _TAIL_CUT.format(len(encoded)) + encoded.decode()


class StderrLines:
    """Splits what is fed to it into lines and gives them to `on_line`, one by one, on one daemon thread of its own.

    At most `stderr_queue_lines` wait for it; past that the oldest are dropped and counted. What `on_line` raises is
    logged, ten times at most. A line past `stderr_line_bytes` is cut and marked.
    """

    def __init__(self, on_line: Callable[[str], object], limits: Limits, *, name: str) -> None:
        self.dropped = 0
        """Lines that `on_line` never saw because it was too slow."""
        self._on_line = on_line
        self._line_bytes = limits.stderr_line_bytes
        self._name = name
        self._partial = bytearray()
        self._partial_size = 0
        self._queue: deque[tuple[bytes, bool]] = deque(maxlen=limits.stderr_queue_lines)  # line, whether it was cut
        self._changed = threading.Condition()  # held for moments only, never during a call of `on_line`
        self._thread: threading.Thread | None = None
        self._closed = False
        self._finished = False
        self._announce: Callable[[], object] | None = None
        self._records_left = _LOG_RECORDS

    def feed(self, data: bytes) -> None:
        """Take `data`, queue the lines that it completes."""
        pieces = data.split(b"\n")
        rest = pieces.pop()
        if pieces:
            self._put([self._complete(piece) for piece in pieces])
        self._hold(rest)

    def close(self) -> None:
        """Queue the unterminated last line, and let the thread end once it has delivered everything. Idempotent."""
        if self._closed:
            return
        if self._partial_size:
            self._put([self._take(terminated=False)])
        with self._changed:
            self._closed = True
            self._finished = self._thread is None
            self._changed.notify()

    async def delivered(self, seconds: float) -> None:
        """After `close`: wait until `on_line` has seen the last line, for at most `seconds`."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def announce() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(done.set)

        with self._changed:
            if self._finished:
                return
            self._announce = announce
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await done.wait()

    def _complete(self, piece: bytes) -> tuple[bytes, bool]:
        self._hold(piece)
        return self._take(terminated=True)

    def _hold(self, piece: bytes) -> None:
        room = self._line_bytes + 1 - len(self._partial)  # one more may be the CR that is not part of the line
        self._partial += piece[:room]
        self._partial_size += len(piece)

    def _take(self, *, terminated: bool) -> tuple[bytes, bool]:
        line, size = bytes(self._partial), self._partial_size
        self._partial.clear()
        self._partial_size = 0
        if terminated and size == len(line) and line.endswith(b"\r"):
            line, size = line[:-1], size - 1
        return line[: self._line_bytes], size > self._line_bytes

    def _put(self, lines: list[tuple[bytes, bool]]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name=f"acprt stderr of {self._name}", daemon=True)
            self._thread.start()
        with self._changed:
            self.dropped += max(0, len(self._queue) + len(lines) - (self._queue.maxlen or 0))
            self._queue.extend(lines)
            self._changed.notify()

    def _deliver(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue:
                    self._finished = True
                    if self._announce is not None:
                        self._announce()
                    return
                line, cut = self._queue.popleft()
            try:
                self._on_line(_line_text(line, cut))
            except BaseException:  # no frame above could handle it, and the next line is still to be delivered
                self._log_failure()

    def _log_failure(self) -> None:
        if self._records_left:
            self._records_left -= 1
            last = "" if self._records_left else " (this is not logged any more)"
            # as text: a record that keeps the exception keeps every frame of the callback alive
            _logger.error("on_stderr of %s raised%s\n%s", self._name, last, traceback.format_exc().rstrip())


def _line_text(line: bytes, cut: bool) -> str:
    if not cut:
        return line.decode("utf-8", "replace")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(line) + _LINE_CUT  # not final: half a character at the cut is left out


def _whole_characters(data: bytes) -> bytes:
    """`data` without the last bytes of a character whose first were cut off."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
