"""Scripted MCP peers: raw lines on a memory pair, with the metadata that the modern era wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import acprt
from acprt import mcp
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for

LEGACY, MODERN = mcp.ProtocolEra.LEGACY_2024, mcp.ProtocolEra.MODERN_2026
ERAS = [LEGACY, MODERN]
INFO = mcp.Implementation(name="server", version="0")

PREFIX = "io.modelcontextprotocol/"
SUBSCRIPTION = PREFIX + "subscriptionId"
MODERN_META: dict[str, Any] = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientInfo": {"name": "client", "version": "0"},
    PREFIX + "clientCapabilities": {},
}


class Client:
    """The scripted client of a server under test."""

    def __init__(self, peer: RawPeer, era: mcp.ProtocolEra) -> None:
        self.peer = peer
        self.era = era

    def call(self, id: Any, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """One request of this era."""
        whole = (MODERN_META if self.era is MODERN else {}) | meta
        body = (params or {}) | ({"_meta": whole} if whole else {})
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": body}

    def cancelled(self, id: Any, **members: Any) -> dict[str, Any]:
        """One cancel."""
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id} | members}

    def send(self, *messages: Any) -> None:
        """All in one write."""
        self.peer.send(*messages)

    async def settled(self) -> list[Any]:
        """What was written before the answer to a request that is sent now."""
        self.send(self.call("settled?", "acprt-test/no-such-method"))
        lines: list[Any] = []
        while (line := await self.peer.receive()).get("id") != "settled?":
            lines.append(line)
        return lines


def server_of(era: mcp.ProtocolEra | None, **options: Any) -> acprt.Endpoint:
    """A server of one era, or of whichever the client opens with, that answers its opening."""
    dialect = mcp.negotiated("server", **options) if era is None else mcp.dialect(era, "server", **options)
    server = acprt.Endpoint("server", dialect=dialect)
    mcp.answer_opening(server, info=INFO, capabilities={"tools": {}})
    return server


@asynccontextmanager
async def client_of(server: acprt.Endpoint, era: mcp.ProtocolEra) -> AsyncIterator[Client]:
    """Serve `server` and be its client. At the end: EOF, and serving must end cleanly."""
    async with raw_client_of(server) as peer:
        yield Client(peer, era)


@asynccontextmanager
async def server_for(client: acprt.Endpoint) -> AsyncIterator[tuple[acprt.Connection, RawPeer]]:
    """Connect `client` to a scripted server, as if it had spawned it."""
    async with raw_server_for(client, spawned=True) as (cx, peer):
        yield cx, peer


def client_endpoint(era: mcp.ProtocolEra | None, **options: Any) -> acprt.Endpoint:
    """A client of one era, or of whichever the server answers to."""
    options = {"info": mcp.Implementation(name="client", version="0")} | options
    dialect = mcp.negotiated("client", **options) if era is None else mcp.dialect(era, "client", **options)
    return acprt.Endpoint("client", dialect=dialect)


class Tools:
    """Handlers that stop where a test wants them to, and what became of each call."""

    def __init__(self, server: acprt.Endpoint) -> None:
        self.seen: list[Any] = []
        self.ended: list[Any] = []
        self.go = asyncio.Event()
        server.method("slow")(self.slow)
        server.method("stubborn")(self.stubborn)
        server.method("quick")(self.quick)
        server.method("chatty")(self.chatty)

    async def slow(self, params: Any, cx: acprt.Connection) -> str:
        """Waits for `go`; cancelled, it says so."""
        name = params.get("name")
        self.seen.append(name)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append(("cancelled", name))
            raise
        self.ended.append(("done", name))
        return "value"

    async def stubborn(self, params: Any, cx: acprt.Connection) -> str:
        """Swallows its cancel, reports, and returns."""
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("swallowed")
        mcp.report_progress(cx, 2)
        mcp.log(cx, "error", "still there")
        cx.send_notification("notifications/other", {})
        return "value"

    async def quick(self, params: Any) -> dict[str, Any]:
        return {"quick": params.get("name")}

    async def chatty(self, params: Any, cx: acprt.Connection) -> dict[str, Any]:
        """Reports, then returns at once."""
        for step in range(3):
            mcp.report_progress(cx, step)
        mcp.log(cx, "info", "nearly")
        return {}


async def until(condition: Any, turns: int = 2000) -> None:
    """Let the loop run until something holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come about")


def cancel(id: int, **members: Any) -> dict[str, Any]:
    """A cancel, in the words of either era."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id} | members}


async def request_of(peer: RawPeer) -> dict[str, Any]:
    """The next line, which must be a request."""
    message: dict[str, Any] = await peer.receive()
    assert "id" in message, message
    return message
