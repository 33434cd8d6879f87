"""What a transport reports, handed to the room that it concerns. It decides nothing, and keeps what `drain` asks."""

from __future__ import annotations

from acprt.runtime.ends import Ends
from acprt.runtime.inbox import Inbox
from acprt.runtime.outbox import Outbox

__all__ = ["TransportSink"]


class TransportSink:
    """The sink of one connection's transport."""

    __slots__ = ("_ends", "_inbox", "_outbox", "holds_bytes", "lines_received")

    def __init__(self, ends: Ends, inbox: Inbox, outbox: Outbox) -> None:
        self._ends = ends
        self._inbox = inbox
        self._outbox = outbox
        self.holds_bytes = False  # the transport has bytes that the peer has not taken
        self.lines_received = inbox.receive  # the room's own method: a call less for every read (bench-core w1)

    def pause_writing(self) -> None:
        """The transport is full: frames wait in the outbox."""
        self.holds_bytes = True
        self._outbox.pause()

    def resume_writing(self) -> None:
        """It is empty again."""
        self.holds_bytes = False
        self._outbox.resume()

    def eof_received(self) -> None:
        """EOF takes its turn behind what was received."""
        self._inbox.end()
        self._ends.eof_received()

    def connection_lost(self, error: Exception) -> None:
        """The connection fails."""
        self._ends.transport_lost(error)
