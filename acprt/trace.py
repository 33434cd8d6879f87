"""The tap: what passed, in which direction, when. Sinks decide what to do with it.

`ACPRT_TRACE=FILE` appends every line of every connection of a process to FILE as JSON lines. Without a sink nothing
here runs.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from acprt.errors import mask_secrets
from acprt.wire.lines import Line, OversizedLine

__all__ = ["FileSink", "Tap", "TraceEvent", "TraceSink", "sink_from_environment"]

logger = logging.getLogger("acprt.trace")

_LINE_CHARACTERS = 16_384  # of a line that a trace keeps
_MASKED_BARE_VALUE = re.compile(r'(":\s*)\*\*\*(?=\s*[,}\]])')  # a number was there: `"maxTokens": 5` is masked too
_LINE_BYTES = 4 * _LINE_CHARACTERS  # that many characters take no more
_QUEUE_EVENTS = 10_000  # waiting for a slow disk; past it the oldest are dropped and counted
_QUEUE_BYTES = 16 * 1024 * 1024  # the same in bytes of their lines
_numbers = itertools.count(1)


class TraceEvent(msgspec.Struct, frozen=True):
    """One line that passed: Unix time in seconds, connection, direction as seen from here, size in bytes, the line."""

    time: float
    connection: str
    direction: Literal["in", "out"]
    size: int
    line: bytes


TraceSink = Callable[[TraceEvent], None]
"""Called on the connection's loop for every line; it must be quick. One that raises is called no more."""


class Tap:
    """Feeds the sinks of one connection."""

    def __init__(self, name: str, sinks: Sequence[TraceSink]) -> None:
        self._connection = f"{name}#{next(_numbers)}"
        self._sinks = tuple(sinks)

    def received(self, line: Line) -> None:
        """A line came in."""
        if isinstance(line, OversizedLine):
            self._show("in", line.head, line.size)
        else:
            self._show("in", line, len(line))

    def sent(self, line: bytes) -> None:
        """A line was queued to go out."""
        self._show("out", line, len(line))

    def _show(self, direction: Literal["in", "out"], line: bytes, size: int) -> None:
        event = TraceEvent(time.time(), self._connection, direction, size, line)
        for sink in self._sinks:
            try:
                sink(event)
            except Exception:  # who watches must not be able to break what he watches
                logger.exception("%s: a trace sink failed and is not called again", self._connection)
                self._sinks = tuple(other for other in self._sinks if other is not sink)


class FileSink:
    """Appends events to a file as JSON lines, from a thread of its own: a slow disk never holds the loop.

    Lines are cut at 16,384 characters and secret-looking values masked. `dropped` counts events lost to a full queue
    or a full disk.
    """

    def __init__(self, path: str) -> None:
        self.dropped = 0
        # Open for the life of the process, and for its user only: a trace holds prompts and files.
        self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self._events: deque[TraceEvent] = deque()
        self._bytes = 0
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="acprt-trace", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __call__(self, event: TraceEvent) -> None:
        """Queue one event; never waits for the disk."""
        if len(event.line) > _LINE_BYTES:
            event = msgspec.structs.replace(event, line=event.line[:_LINE_BYTES])
        with self._ready:
            self._events.append(event)
            self._bytes += len(event.line)
            while len(self._events) > _QUEUE_EVENTS or self._bytes > _QUEUE_BYTES:
                self._bytes -= len(self._events.popleft().line)
                self.dropped += 1
            self._ready.notify()

    def close(self) -> None:
        """Write what is queued and close the file; idempotent."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join(timeout=5.0)

    def _write_all(self) -> None:
        while True:
            with self._ready:
                while not self._events and not self._closed:
                    self._ready.wait()
                events, self._events = self._events, deque()
                self._bytes = 0
                closed = self._closed
            if events:
                self._write(events)
            elif closed:
                self._file.close()
                return

    def _write(self, events: Sequence[TraceEvent]) -> None:
        try:
            self._file.write(b"".join(map(_as_json_line, events)))
        except OSError as error:
            if not self.dropped:
                logger.warning("trace events are lost: %s", error)
            self.dropped += len(events)


def _as_json_line(event: TraceEvent) -> bytes:
    text = mask_secrets(event.line[:_LINE_BYTES].decode("utf-8", "replace")[:_LINE_CHARACTERS])
    text = _MASKED_BARE_VALUE.sub(r'\1"***"', text)
    frame: object = msgspec.Raw(text.encode()) if _is_json(text) else text
    shown = {
        "time": event.time,
        "connection": event.connection,
        "direction": event.direction,
        "size": event.size,
        "frame": frame,
    }
    return msgspec.json.encode(shown) + b"\n"


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sink_from_environment() -> FileSink | None:
    """The file sink that `ACPRT_TRACE` asks for, one per path and process; none when that file cannot be opened."""
    path = os.environ.get("ACPRT_TRACE")
    if not path:
        return None
    try:
        return _file_sink(path)
    except OSError as error:
        logger.warning("ACPRT_TRACE: nothing is traced: %s", error)
        return None


@lru_cache(maxsize=8)
def _file_sink(path: str) -> FileSink:
    return FileSink(path)
