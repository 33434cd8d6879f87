"""A trace in a file: one JSON object a line, written by a thread of its own.

It must never hold the loop, whatever the disk does, and never keep more than its bounds: past them the oldest events
are dropped, and the file says how many.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence

import msgspec

from acprt.trace.records import LINE_BYTES, VALUE_CHARACTERS, Recorder
from acprt.trace.tap import TraceEvent

__all__ = ["FileSink"]

logger = logging.getLogger("acprt.trace")

_QUEUE_EVENTS = 10_000  # waiting for a slow disk; past it the oldest are dropped and counted
_QUEUE_BYTES = 16 * 1024 * 1024  # the same in bytes of their lines
_GATHER_SECONDS = 0.005  # for more to write: a thread that wakes for each event costs the loop 0.1 ms each
_WRITE_EVENTS = 500  # made into one write: the thread lets go of the interpreter between two


class FileSink:
    """Appends what passes to a file as JSON lines (docs/traces.md), from a thread of its own.

    Text values longer than `value_characters` are cut. `redact` masks values that look like secrets. `dropped` counts
    events lost to a full queue or a full disk. Raises OSError when the file cannot be opened.
    """

    def __init__(self, path: str, *, redact: bool = True, value_characters: int = VALUE_CHARACTERS) -> None:
        self.dropped = 0
        # Open for the life of the process, and for its user only: a trace holds prompts and files.
        self._file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115
        self._recorder = Recorder(time.monotonic(), redact=redact, value_characters=value_characters)
        self._events: deque[TraceEvent] = deque()
        self._bytes = 0
        self._told_dropped = 0
        self._told_failure = False
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="acprt-trace", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def __call__(self, event: TraceEvent) -> None:
        """Queue one event; never waits for the disk."""
        if len(event.line) > LINE_BYTES:
            event = msgspec.structs.replace(event, line=event.line[:LINE_BYTES])
        with self._ready:
            self._events.append(event)
            self._bytes += len(event.line)
            while len(self._events) > _QUEUE_EVENTS or self._bytes > _QUEUE_BYTES:
                self._bytes -= len(self._events.popleft().line)
                self.dropped += 1
            if len(self._events) == 1:
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
                if not self._closed:
                    self._ready.wait(_GATHER_SECONDS)
                events, self._events = self._events, deque()
                self._bytes = 0
                closed, dropped = self._closed, self.dropped
            if dropped > self._told_dropped:
                self._write([self._recorder.gap(dropped - self._told_dropped)], 0)
                self._told_dropped = dropped
            while events:
                some = [events.popleft() for _ in range(min(_WRITE_EVENTS, len(events)))]
                self._write([record for event in some for record in self._records(event)], len(some))
            if closed:
                with self._ready:
                    if self._events:  # came meanwhile
                        continue
                self._file.close()
                return

    def _records(self, event: TraceEvent) -> list[bytes]:
        try:
            return self._recorder.records(event)
        except Exception:  # a line that we did not think of costs its record, not the trace
            logger.exception("%s: a line cannot be traced", event.connection)
            self.dropped += 1
            return []

    def _write(self, records: Sequence[bytes], events: int) -> None:
        try:
            self._file.write(b"".join(records))
        except OSError as error:
            if not self._told_failure:
                self._told_failure = True
                logger.warning("trace events are lost: %s", error)
            self.dropped += events


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
