"""`Turn`: what a scenario works with: its session, its prompt, ids, and the report that it ends with.

It knows no scenario. Cancelling needs nothing here: the turn's task is cancelled wherever it waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from acprt.acp.schema import v1
from acprt.errors import RpcError
from acprt.runtime.messages import Request, method_of
from acprt.testing.testy.sessions import Ids, Session

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["Turn"]

R = TypeVar("R")


class Turn:
    """The work on one prompt."""

    def __init__(self, cx: Connection, session: Session, prompt: Sequence[v1.ContentBlock], ids: Ids) -> None:
        self.cx = cx
        self.session = session
        self.prompt = prompt
        self.ids = ids
        self.report: list[str] = []
        """A line for each step."""

    def send(self, update: v1.SessionUpdate) -> None:
        """Send a session update."""
        self.cx.send_notification(v1.SessionNotification(session_id=self.session.id, update=update))

    async def ask(self, request: Request[R], *, label: str | None = None) -> R | None:
        """Ask the client and report the answer; None for an error."""
        label = label or method_of(request)
        try:
            response = await self.cx.send_request(request).block_task()
        except RpcError as error:
            self.failed(label, error)
            return None
        self.answered(label, response)
        return response

    def answered(self, label: str, response: Any) -> None:
        """Report an answer, as JSON."""
        self.report.append(f"{label}: ok {msgspec.json.encode(response).decode()}")

    def failed(self, label: str, error: RpcError) -> None:
        """Report an error, on one line."""
        self.report.append(f"{label}: error {' '.join(str(error).split())}")
