"""What a transport is, and what it delivers to. Transports know nothing of JSON-RPC and nothing above this floor.

A transport moves lines in and bytes out on one event loop. Its calls are synchronous except where waiting is the
point (`drain`, `aclose`); what happens on its own it reports to its sink, always on the loop's thread and, but for
`pause_writing`, never from inside a call of the sink's owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from acprt.limits import Limits
from acprt.wire.lines import OversizedLine

__all__ = ["ChildStatus", "ChildWatcher", "HasChild", "Sink", "Transport"]


class ChildStatus(msgspec.Struct, frozen=True):
    """A child process: its pid, its exit status (None while it runs, negative: the signal) and stderr lines dropped."""

    pid: int
    exit_status: int | None = None
    stderr_dropped: int = 0


class ChildWatcher(Protocol):
    """What hears of the children of a transport. None of it may wait or raise."""

    def child_started(self, pid: int, command: Sequence[str]) -> None:
        """On the loop."""

    def child_wrote(self, line: str) -> None:
        """A line of its stderr; on a thread of its own."""

    def child_exited(self, pid: int, status: int | None) -> None:
        """On the loop; None: nobody knows the status."""


@runtime_checkable
class HasChild(Protocol):
    """A transport that starts a child can be watched."""

    def watch(self, watcher: ChildWatcher) -> None:
        """Tell `watcher` of the children that are opened from now on."""


class Sink(Protocol):
    """Where a transport delivers. After `connection_lost` nothing more comes; after `eof_received` no more lines."""

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        """Complete lines in wire order, never an empty list."""

    def eof_received(self) -> None:
        """The peer will send nothing more; writing may still work (half-close). At most once."""

    def connection_lost(self, error: Exception) -> None:
        """Reading or writing failed: not an EOF (TF-01, TF-02). At most once; not after a local `aclose()`."""

    def pause_writing(self) -> None:
        """The transport holds bytes that the peer has not taken yet: write no more until `resume_writing`.

        The one call that may come from inside `write`, so that a writer that never yields is bounded, too.
        """

    def resume_writing(self) -> None:
        """All accepted bytes have left the process."""


class Transport(Protocol):
    """One duplex byte stream of lines. `open` is called once, on the loop; everything else afterwards."""

    @property
    def peer_is_child(self) -> bool:
        """Whether this side spawned its peer: then it never answers a line that it cannot read (DEC-23)."""

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start delivering to `sink`. Raises at once when the stream cannot be opened; leaves nothing behind then."""

    def write(self, data: bytes) -> None:
        """Take `data`, whole. What does not fit now is kept and announced by `pause_writing`. Never raises for I/O."""

    async def drain(self) -> None:
        """Wait until every byte accepted so far has left the process. Raises OSError when it cannot any more."""

    def pause_reading(self) -> None:
        """Deliver no more lines until `resume_reading`; the peer's pipe fills and pushes back."""

    def resume_reading(self) -> None:
        """Deliver again."""

    def close_write(self) -> None:
        """Half-close: the peer sees EOF once what was accepted is written. Idempotent."""

    async def aclose(self) -> None:
        """Release everything, in bounded time on every path; idempotent, from any task, finished even if cancelled."""

    def facts(self) -> dict[str, Any]:
        """What the end of this transport adds to a failed request's `data`: `exit_status`, `stderr_tail`, or none."""

    def child_status(self) -> ChildStatus | None:
        """The child process behind the transport, if there is one and it was started."""
