"""What a connection shows to those who watch it: lines as they passed, and what became of its child.

Who watches must never be able to break or hold up what he watches.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from acprt.wire.lines import Line, OversizedLine

__all__ = ["Tap", "TraceEvent", "TraceSink"]

logger = logging.getLogger("acprt.trace")

_numbers = itertools.count(1)


class TraceEvent(msgspec.Struct, frozen=True):
    """One line that passed: Unix time in seconds, connection, direction as seen from here, size in bytes, the line.

    `clock` is the same moment on a clock that only goes forward (seconds, for differences). `peer_is_child` says that
    this side spawned the other one. `kind` is "line" for the wire; to sinks that asked for it also "stderr" (`line` is
    what the child wrote there) and "process" (`line` is JSON: `{"event": "started", "pid", "command"}` or
    `{"event": "exited", "pid", "status"}`, a negative status being the signal).
    """

    time: float
    connection: str
    direction: Literal["in", "out"]
    size: int
    line: bytes
    clock: float = 0.0
    peer_is_child: bool = False
    kind: Literal["line", "stderr", "process"] = "line"


TraceSink = Callable[[TraceEvent], None]
"""Called on the connection's loop for every line; it must be quick. One that raises is called no more."""


class Tap:
    """Feeds the sinks of one connection; `process_sinks` are those that also hear of its child."""

    def __init__(
        self,
        name: str,
        sinks: Sequence[TraceSink],
        *,
        process_sinks: Sequence[TraceSink] = (),
        peer_is_child: bool = False,
    ) -> None:
        self._connection = f"{name}#{next(_numbers)}"
        self._sinks = tuple(sinks)
        self._process_sinks = tuple(process_sinks)
        self._peer_is_child = peer_is_child

    def received(self, line: Line) -> None:
        """A line came in."""
        if isinstance(line, OversizedLine):
            self._show("in", line.head, line.size)
        else:
            self._show("in", line, len(line))

    def sent(self, line: Line) -> None:
        """A line was queued to go out."""
        if isinstance(line, OversizedLine):
            self._show("out", line.head, line.size)
        else:
            self._show("out", line, len(line))

    def child_started(self, pid: int, command: Sequence[str]) -> None:
        """The other side was started as a child of this process."""
        self._tell("process", msgspec.json.encode({"event": "started", "pid": pid, "command": list(command)}))

    def child_wrote(self, line: str) -> None:
        """The child wrote a line to its stderr."""
        self._tell("stderr", line.encode("utf-8", "replace"))

    def child_exited(self, pid: int, status: int | None) -> None:
        """The child is gone; `status` is None when nobody knows it."""
        self._tell("process", msgspec.json.encode({"event": "exited", "pid": pid, "status": status}))

    def _show(self, direction: Literal["in", "out"], line: bytes, size: int) -> None:
        event = TraceEvent(time.time(), self._connection, direction, size, line, time.monotonic(), self._peer_is_child)
        self._sinks = self._call(self._sinks, event)

    def _tell(self, kind: Literal["stderr", "process"], line: bytes) -> None:
        if self._process_sinks:
            event = TraceEvent(
                time.time(), self._connection, "in", len(line), line, time.monotonic(), self._peer_is_child, kind
            )
            self._process_sinks = self._call(self._process_sinks, event)

    def _call(self, sinks: tuple[TraceSink, ...], event: TraceEvent) -> tuple[TraceSink, ...]:
        for sink in sinks:
            try:
                sink(event)
            except Exception:
                logger.exception("%s: a trace sink failed and is not called again", self._connection)
                sinks = tuple(other for other in sinks if other is not sink)
        return sinks
