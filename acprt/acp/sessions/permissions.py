"""What a client owes the agent when it cancels a turn: each permission request of it is answered as cancelled, those
that are open and those that were on their way.

It must never touch a request of another session, nor one of another kind.
"""

from __future__ import annotations

from functools import cache

from acprt.acp import v1
from acprt.acp.sessions.routing import SessionRoutes
from acprt.runtime.connection import Connection
from acprt.runtime.dialect import CancelGroup
from acprt.runtime.handlers import Handled, Route, RouteKind
from acprt.runtime.messages import Request, method_of
from acprt.runtime.responder import ANSWERED, Responder

__all__ = ["permission_route", "settle_permissions"]

_PERMISSION = method_of(v1.RequestPermissionRequest)
_CANCELLED = v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())


class _OfSession(Request[v1.RequestPermissionResponse], method=_PERMISSION):
    session_id: str | None = None


def settle_permissions(cx: Connection, session_id: str) -> None:
    """Answer the session's open `session/request_permission` requests with the outcome `cancelled`, now.

    Their handlers are cancelled, as by the agent; what one of them answers afterwards is ignored.
    """
    unanswered = cx.inbound.of_group(session_id)
    cx.inbound.cancel(CancelGroup(session_id, _CANCELLED))
    for request in unanswered:
        if request.state is not ANSWERED:
            request.answer(_CANCELLED)


@cache
def permission_route() -> Route:
    """The handler that a client puts before its user's: a turn that is being cancelled asks nobody any more."""
    return Route(RouteKind.REQUEST, permission_of_cancelled_turn, {_PERMISSION: _OfSession}, takes_cx=True)


async def permission_of_cancelled_turn(
    request: _OfSession, responder: Responder[v1.RequestPermissionResponse], cx: Connection
) -> Handled | None:
    """Answer a request that met its cancel on the way; pass every other one on."""
    if request.session_id not in SessionRoutes.of(cx).cancelling:
        return Handled.no()
    responder.respond(_CANCELLED)
    return None
