"""Two endpoints joined in memory, both of their connections in the hands of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from acprt.acp import Client
from acprt.acp.handshake import initialize
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.transports.memory import memory_pair

__all__ = ["AcpPair", "EndpointPair", "acp_pair", "endpoint_pair"]


class EndpointPair(NamedTuple):
    """The connections of both endpoints, in the order in which they were given."""

    left: Connection
    right: Connection


class AcpPair(NamedTuple):
    """The connection of an agent, and that of its client."""

    agent: Connection
    client: Connection


@asynccontextmanager
async def endpoint_pair(left: Endpoint, right: Endpoint) -> AsyncIterator[EndpointPair]:
    """Connect two endpoints of any protocol. At the end `left` is closed first. What breaks a connection is raised."""
    near, far = memory_pair()
    async with right.connect(far) as right_cx, left.connect(near) as left_cx:
        yield EndpointPair(left_cx, right_cx)


@asynccontextmanager
async def acp_pair(
    agent: Endpoint, client: Endpoint | None = None, *, fallback: bool = True, timeout: float | None = None
) -> AsyncIterator[AcpPair]:
    """Connect an agent and a client (by default one that offers nothing), and do the handshake.

    `fallback` and `timeout` (seconds) are those of `acp.initialize`, and so are the errors.
    """
    client = client or Client("test-client", version="0")
    async with endpoint_pair(client, agent) as pair:
        await initialize(pair.left, fallback=fallback, timeout=timeout)
        yield AcpPair(agent=pair.right, client=pair.left)
