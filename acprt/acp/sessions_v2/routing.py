"""Where a v2 client hears `session/update`: before its user's handlers, and passing everything on.

A v2 turn ends with an update. Were the route walked last, as in v1, a user's handler that claims updates would leave
every turn waiting for an end that has passed.
"""

from __future__ import annotations

from acprt.acp import v2
from acprt.acp.sessions import routing
from acprt.runtime.connection import Connection
from acprt.runtime.handlers import Handled, Route, RouteKind

__all__ = ["update_route"]


def update_route() -> Route:
    """The handler that a v2 client puts in front of its user's."""
    sized = routing.update_route(v2.UpdateSessionNotification)
    return Route(RouteKind.NOTIFICATION, _seen, sized.taken, takes_cx=True)


async def _seen(heard: routing.SizedUpdate, cx: Connection) -> Handled:
    await routing.SessionRoutes.of(cx).heard(heard)
    return Handled.no()
