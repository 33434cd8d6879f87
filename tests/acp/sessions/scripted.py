"""A client and the far end of its connection, which a test plays line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import acprt
from acprt import acp
from tests.rawpeer import RawPeer, raw_server_for

INITIALIZED = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "scripted", "version": "1"}}
MODES: dict[str, Any] = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
FAST: dict[str, Any] = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}
CLOSES: dict[str, Any] = {"sessionCapabilities": {"close": {}}}


@asynccontextmanager
async def connected(
    client: acp.Client | None = None,
    *,
    capabilities: dict[str, Any] | None = None,
    limits: acprt.Limits | None = None,
    unstable: bool = False,
) -> AsyncIterator[tuple[acprt.Connection, RawPeer]]:
    """A connection behind its handshake. `capabilities` are the agent's, as on the wire."""
    client = client or acp.Client("tester", version="1", limits=limits, unstable=unstable)
    async with raw_server_for(client) as (cx, peer):
        handshake = asyncio.create_task(acp.initialize(cx))
        request = await peer.receive()
        peer.respond(request["id"], {**INITIALIZED, "agentCapabilities": capabilities or {}})
        await handshake
        yield cx, peer


@asynccontextmanager
async def in_session(
    client: acp.Client | None = None, *, result: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[acp.Session, RawPeer]]:
    """The same with a session `s` open. It is not left at the end; the connection is closed."""
    async with connected(client, **options) as (cx, peer):
        yield await opened(cx, peer, "s", result), peer


async def opened(
    cx: acprt.Connection, peer: RawPeer, session_id: str, result: dict[str, Any] | None = None
) -> acp.Session:
    """Open a session that the agent names `session_id`."""
    opening = begin(awaited(acp.session(cx)))
    request = await received(peer, "session/new")
    peer.respond(request["id"], {"sessionId": session_id, **(result or {})})
    return await opening


async def awaited(opening: acp.SessionOpening) -> acp.Session:
    """The session, as a coroutine that can be made a task."""
    return await opening


def begin(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start what will wait for the agent."""
    return asyncio.create_task(work)


async def received(peer: RawPeer, method: str) -> dict[str, Any]:
    """The next line from the client, which must be of `method`."""
    line: dict[str, Any] = await peer.receive()
    assert line.get("method") == method, line
    return line


def update(update: dict[str, Any], session_id: str = "s") -> dict[str, Any]:
    """One `session/update` line."""
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": update}}


def chunk(text: str, session_id: str = "s") -> dict[str, Any]:
    """A line by which the agent says something."""
    content = {"type": "text", "text": text}
    return update({"sessionUpdate": "agent_message_chunk", "content": content}, session_id)


def stopped(request: dict[str, Any], reason: str = "end_turn") -> dict[str, Any]:
    """The answer to a prompt."""
    return {"jsonrpc": "2.0", "id": request["id"], "result": {"stopReason": reason}}


def failed(request: dict[str, Any], code: int = -32603, message: str = "model failed") -> dict[str, Any]:
    """An error for a request."""
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


def asks_permission(id: Any, session_id: str = "s") -> dict[str, Any]:
    """A request of the agent for a permission."""
    params = {
        "sessionId": session_id,
        "toolCall": {"toolCallId": "t"},
        "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
    }
    return {"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}


def texts(updates: list[Any]) -> list[str]:
    """What the chunks among them say."""
    return [each.content.text for each in updates]


async def read(turn: acp.Turn) -> list[Any]:
    """Every update of a turn."""
    return [each async for each in turn]


def current_mode(session: acp.Session) -> str | None:
    """The id of the mode in force."""
    return None if session.modes is None else session.modes.current_mode_id
