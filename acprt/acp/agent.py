"""`Agent`: an endpoint that serves clients. It answers `initialize` by itself; the rest is its user's handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Raw, json

from acprt.acp.dialect import Side
from acprt.acp.handshake import first_route
from acprt.acp.peer import capabilities_member, info_member, schema_of
from acprt.acp.roles import INITIALIZE, Role
from acprt.acp.router import AgentRouter
from acprt.limits import Limits
from acprt.runtime.handlers import Route, RouteKind
from acprt.wire.payloads import decode_result, decoder_for

if TYPE_CHECKING:
    from acprt.acp.schema.v1 import AgentCapabilities, AuthMethod
    from acprt.acp.schema.v2 import AgentCapabilities as AgentCapabilitiesV2
    from acprt.acp.schema.v2 import AuthMethod as AuthMethodV2

__all__ = ["Agent"]


class Agent(Role):
    """An agent of version 1: handlers for `v1` messages, served by `acprt.run(agent)` or `agent.serve(transport)`.

    `name`, `version` and `title` go into the answer to `initialize`, as do capabilities: those that the handlers
    present imply, and beside them `capabilities` (a `v1.AgentCapabilities`), for what no handler shows, such as images
    in prompts. `auth_methods` are the ways to authenticate (`v1.AuthMethod…`). A handler for `v1.InitializeRequest`
    answers in the place of all that. `unstable` admits methods that are not stable yet; `strict_capabilities` makes
    requests fail that the client did not offer to answer, with -32601, before they are sent.
    """

    side: Side = "agent"

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        capabilities: AgentCapabilities | None = None,
        auth_methods: Sequence[AuthMethod] = (),
        unstable: bool = False,
        strict_capabilities: bool = False,
        limits: Limits | None = None,
        protocol: Literal[1, 2] = 1,
    ) -> None:
        super().__init__(
            name,
            version=version,
            title=title,
            capabilities=capabilities,
            unstable=unstable,
            strict_capabilities=strict_capabilities,
            limits=limits,
            protocol=protocol,
        )
        schema = schema_of(protocol)
        for way in auth_methods:
            if not isinstance(way, schema.AuthMethodAgent | schema.AuthMethodTerminal | schema.Unknown):
                raise TypeError(f"auth_methods= takes v{protocol}.AuthMethodAgent(…) and its like, not {way!r}")
        self.auth_methods = tuple(auth_methods)

    @classmethod
    def v2(
        cls,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        capabilities: AgentCapabilitiesV2 | None = None,
        auth_methods: Sequence[AuthMethodV2] = (),
        unstable: bool = False,
        strict_capabilities: bool = False,
        limits: Limits | None = None,
    ) -> Self:
        """An agent of the draft version 2: handlers, capabilities and ways to authenticate of `acp.v2`."""
        of_version_2: dict[str, Any] = {"capabilities": capabilities, "auth_methods": auth_methods}
        return cls(
            name,
            version=version,
            title=title,
            **of_version_2,
            unstable=unstable,
            strict_capabilities=strict_capabilities,
            limits=limits,
            protocol=2,
        )

    @staticmethod
    def router(*, v1: Agent | None = None, v2: Agent | None = None, limits: Limits | None = None) -> AgentRouter:
        """Both versions behind one transport: each client is served by the agent of the version it negotiates."""
        return AgentRouter(v1=v1, v2=v2, limits=limits)

    def first_routes(self) -> Sequence[Route]:
        """A look at `initialize` before any handler."""
        return (first_route(), *super().first_routes())

    def last_routes(self) -> Sequence[Route]:
        """The answer to `initialize`, unless a handler gave it."""
        response = self._response()

        async def initialize(request: Any) -> Any:
            return response

        taken = {INITIALIZE: schema_of(self.protocol).InitializeRequest}
        return (*super().last_routes(), Route(RouteKind.METHOD, initialize, taken, takes_cx=False))

    def _response(self) -> Any:
        """What it answers."""
        wire = {
            "protocolVersion": self.protocol,
            info_member("agent", self.protocol): self.info,
            capabilities_member("agent", self.protocol): self.capabilities(),
            "authMethods": self.auth_methods,
        }
        return decode_result(decoder_for(schema_of(self.protocol).InitializeResponse), Raw(json.encode(wire)))
