"""Every number a user may set, with its unit, its default and the reason for that default.

A limit is there so that a bad peer costs one message, one request or one child, never the process.
"""

from __future__ import annotations

import msgspec

__all__ = ["DEFAULT_LIMITS", "Limits"]

KIB = 1024
MIB = 1024 * KIB

_LONGEST_SECONDS = 1e9  # event loops refuse far larger numbers, and nobody means them


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection. Sizes are bytes, times are seconds, counts are frames or requests."""

    line_bytes: int = 64 * MIB
    """Longest incoming line. Agents send 563 KB at start-up, images take 16 MiB; past this one message is lost."""

    line_out_bytes: int = 64 * MIB
    """Longest outgoing line: what an equal peer would refuse is refused here, where the caller can see it."""

    inbox_bytes: int = 16 * MIB
    """Undispatched input held in memory before reading pauses and the pipe pushes back."""

    inbox_frames: int = 20_000
    """The same as a count: small frames cost about 400 bytes of objects each, so this is some 8 MB."""

    outbox_high_bytes: int = 128 * KIB
    """Unwritten output above which `drain()` waits: two pipes full, so that both sides of a stream keep working."""

    outbox_max_bytes: int = 256 * MIB
    """Unwritten output that ends the connection: such a peer does not read; losing a message silently is worse."""

    in_flight_requests: int = 10_000
    """The peer's unanswered requests; one more is answered -32603 at once (DEC-12)."""

    parked_messages: int = 1_000
    """Messages parked for a later handler (PY-36); past it a request is answered -32601, a notification is dropped."""

    session_bytes: int = 16 * MIB
    """Updates of one ACP session that wait for its reader, or came before it was open; as much as the whole inbox.
    Past it that session's turn fails and is cancelled (DEC-29)."""

    tombstones: int = 1_024
    """Abandoned requests remembered, so that their late answers are told from unknown ones."""

    sync_threads: int = 32
    """Threads for plain `def` handlers of one connection; further calls wait their turn."""

    drain_seconds: float = 5.0
    """After EOF, how long a serving endpoint lets accepted requests finish before it answers them itself (DEC-25)."""

    exit_grace_seconds: float = 2.0
    """After its stdin closed, how long a child may take to exit before SIGTERM. Most take 0.01 to 2 s."""

    term_grace_seconds: float = 2.0
    """After SIGTERM to its group, how long before SIGKILL. Those that react do so within 0.1 s, or 2 s in mid-turn."""

    cancel_grace_seconds: float = 10.0
    """How long a cancelled ACP prompt may take to end before its session goes on without it. Agents take 0.01 to 0.1 s,
    one that runs a tool 2 s, and some never answer."""

    stderr_tail_bytes: int = 64 * KIB
    """How much of the end of a child's stderr is kept for error reports."""

    stderr_line_bytes: int = 64 * KIB
    """Longest stderr line given to `on_stderr`; the rest is cut and marked."""

    stderr_queue_lines: int = 1_000
    """Lines waiting for a slow `on_stderr`; past it the oldest are dropped and counted."""

    slow_handler_seconds: float = 10.0
    """How long one ordered handler may hold the dispatch loop before a warning names it and what it keeps waiting."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            counts = not name.endswith("_seconds")
            if isinstance(value, bool) or not isinstance(value, int if counts else (int, float)):
                raise TypeError(f"Limits.{name} takes {'an integer' if counts else 'seconds'}, not {value!r}")
            if not value >= (1 if counts else 0):
                raise ValueError(f"Limits.{name} must be {'positive' if counts else 'at least 0'}, not {value!r}")
            if not counts and _LONGEST_SECONDS < value != float("inf"):
                raise ValueError(
                    f"Limits.{name} is over {_LONGEST_SECONDS:g} seconds; float('inf') means without bound"
                )


DEFAULT_LIMITS = Limits()
