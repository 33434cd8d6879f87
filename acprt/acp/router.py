"""An agent of several versions: the first `initialize` of a client chooses the agent that serves its connection."""

from __future__ import annotations

from acprt.acp.dialect import Side
from acprt.acp.several import SeveralVersions

__all__ = ["AgentRouter"]


class AgentRouter(SeveralVersions):
    """Made by `Agent.router(v1=…, v2=…)`. A client gets the highest version that is not above the one it asks for.

    Handlers, close callbacks and spawned work are those of the chosen agent. What is registered here instead is a
    TypeError when the router is served.
    """

    side: Side = "agent"
