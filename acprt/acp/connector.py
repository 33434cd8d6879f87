"""A client of several versions: what the agent negotiates chooses the client whose handlers serve the connection."""

from __future__ import annotations

from acprt.acp.dialect import Side
from acprt.acp.several import SeveralVersions

__all__ = ["ClientConnector"]


class ClientConnector(SeveralVersions):
    """Made by `Client.connector(v1=…, v2=…)`. `acp.initialize(cx)` asks for the highest version and takes a lower one
    that the agent answers with; `cx.peer.version` tells which it is.

    Handlers, close callbacks and spawned work are those of the chosen client. What is registered here instead is a
    TypeError when the connector is connected.
    """

    side: Side = "client"
