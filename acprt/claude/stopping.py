"""How a prompt is stopped: taken back while it is queued, interrupted once it runs.

An interrupt stops whatever runs when it arrives. It must never be sent for a prompt whose turn has not begun, nor a
second time while the first is unanswered: it would hit the prompt behind.
"""

from __future__ import annotations

from typing import Any

from acprt.claude.control import CancelAsyncMessage, Interrupt
from acprt.claude.tickets import Ticket, Tickets, TicketState
from acprt.runtime.connection import Connection
from acprt.runtime.results import Ok, Result

__all__ = ["stop"]


def stop(ticket: Ticket, tickets: Tickets, cx: Connection) -> None:
    """Ask the command to stop a prompt that was sent and is not done; what comes of it is told by the ticket's end."""
    if ticket.is_being_stopped:
        return
    if ticket.state is TicketState.STARTED:
        _interrupt(ticket, cx)
        return

    async def taken_back(result: Result[Any]) -> None:
        ticket.is_being_stopped = False
        if isinstance(result, Ok) and result.value.cancelled:
            tickets.cancelled(ticket)
        elif tickets.has_not_begun(ticket):
            ticket.stop_when_started = True
        elif ticket.state is not TicketState.DONE and not cx.is_ending:
            _interrupt(ticket, cx)  # it has started meanwhile

    ticket.is_being_stopped = True
    cx.send_request(CancelAsyncMessage(message_uuid=ticket.uuid)).on_receiving_result(taken_back)


def _interrupt(ticket: Ticket, cx: Connection) -> None:
    async def answered(_: Result[Any]) -> None:
        ticket.is_being_stopped = False

    ticket.is_being_stopped = True
    cx.send_request(Interrupt()).on_receiving_result(answered)
