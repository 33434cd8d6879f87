"""`Client`: an endpoint that uses agents. Its handlers are what agents may ask of it; sessions are opened on its
connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from acprt.acp.connector import ClientConnector
from acprt.acp.dialect import Side
from acprt.acp.peer import schema_of
from acprt.acp.roles import INITIALIZE, Role, wrong_direction
from acprt.acp.sessions.permissions import permission_route
from acprt.acp.sessions.routing import update_route
from acprt.limits import Limits
from acprt.runtime.handlers import Route, RouteKind

if TYPE_CHECKING:
    from acprt.acp.schema.v2 import ClientCapabilities as ClientCapabilitiesV2

__all__ = ["Client"]


class Client(Role):
    """A client of version 1: handlers for what agents ask (`v1.RequestPermissionRequest`, files, terminals).

    `name`, `version` and `title` go into `initialize`, as do capabilities: those that the handlers present imply, and
    beside them `capabilities` (a `v1.ClientCapabilities`). `unstable` admits methods that are not stable yet;
    `strict_capabilities` makes requests fail that the agent did not offer to answer, with -32601, before they are sent.
    """

    side: Side = "client"

    @classmethod
    def v2(
        cls,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        capabilities: ClientCapabilitiesV2 | None = None,
        unstable: bool = False,
        strict_capabilities: bool = False,
        limits: Limits | None = None,
    ) -> Self:
        """A client of the draft version 2: handlers and capabilities of `acp.v2`."""
        return cls(
            name,
            version=version,
            title=title,
            capabilities=capabilities,
            unstable=unstable,
            strict_capabilities=strict_capabilities,
            limits=limits,
            protocol=2,
        )

    @staticmethod
    def connector(
        *, v1: Client | None = None, v2: Client | None = None, limits: Limits | None = None
    ) -> ClientConnector:
        """Both versions towards one agent: it is served by the client of the version that is negotiated."""
        return ClientConnector(v1=v1, v2=v2, limits=limits)

    def first_routes(self) -> Sequence[Route]:
        """What sessions see before the user's handlers: version 1 answers the permission requests of a turn that is
        being cancelled; version 2 sees its updates and passes them on, since a turn of theirs ends with one.
        """
        if self.protocol == 1:
            return (*super().first_routes(), permission_route())
        from acprt.acp.sessions_v2.routing import update_route as passing_route  # nothing of v2 comes without need

        return (*super().first_routes(), passing_route())

    def last_routes(self) -> Sequence[Route]:
        """Sessions of version 1 get the updates that no handler took; agents initialize nothing."""
        updates = (update_route(schema_of(1).SessionNotification),) if self.protocol == 1 else ()
        refusal = Route(RouteKind.METHOD, _refuse_initialize, {INITIALIZE: None}, takes_cx=False)
        return (*super().last_routes(), *updates, refusal)


async def _refuse_initialize(params: Any) -> None:
    raise wrong_direction()
