"""What `cx.status()` shows: plain data for a person who asks why nothing moves."""

from __future__ import annotations

from typing import Any

import msgspec

from acprt.transports.base import ChildStatus
from acprt.wire.ids import RequestId

__all__ = ["ConnectionStatus", "Counters", "InFlight", "Pending", "Queue", "plain_id"]


def plain_id(id: RequestId) -> RequestId:
    """An id to be shown: one that a dialect keeps raw for its spelling (`1.0`) as that text."""
    kept: object = id
    return bytes(kept).decode() if isinstance(kept, msgspec.Raw) else id


class Pending(msgspec.Struct, frozen=True):
    """One of our requests that waits for its answer; `age` in seconds."""

    id: RequestId
    method: str
    age: float


class InFlight(msgspec.Struct, frozen=True):
    """One of the peer's requests that we have not answered; `age` in seconds."""

    id: RequestId
    method: str
    age: float
    is_cancelled: bool


class Queue(msgspec.Struct, frozen=True):
    """A queue: frames, bytes, and seconds that the oldest frame has waited."""

    count: int
    bytes: int
    oldest_age: float


class Counters(msgspec.Struct, frozen=True):
    """What went wrong quietly since the connection opened."""

    bad_lines: int
    unmatched_responses: int
    late_responses: int
    stderr_dropped: int


class ConnectionStatus(msgspec.Struct, frozen=True):
    """A snapshot of one connection."""

    name: str
    state: str
    pending: list[Pending]
    in_flight: list[InFlight]
    inbox: Queue
    outbox: Queue
    child: ChildStatus | None
    counters: Counters
    running_handler: str | None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.state}"]
        if self.child is not None:
            end = "running" if self.child.exit_status is None else f"exit status {self.child.exit_status}"
            lines.append(f"  child    pid {self.child.pid}, {end}")
        for title, queue in (("inbox", self.inbox), ("outbox", self.outbox)):
            lines.append(f"  {title:8} {queue.count} frames, {queue.bytes} bytes, oldest {queue.oldest_age:.1f} s")
        if self.running_handler is not None:
            lines.append(f"  running  {self.running_handler}")
        lines += [f"  pending  {call.method} (id {call.id!r}) for {call.age:.1f} s" for call in self.pending]
        lines += [
            f"  serving  {call.method} (id {call.id!r}) for {call.age:.1f} s" + " (cancelled)" * call.is_cancelled
            for call in self.in_flight
        ]
        counts = msgspec.structs.asdict(self.counters)
        lines += [f"  {name:8} {count}" for name, count in counts.items() if count]
        return "\n".join(lines)
