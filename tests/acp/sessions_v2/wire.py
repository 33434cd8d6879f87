"""The v2 messages that these tests send and expect, as JSON, and a client that follows sessions without a handshake:
on the wire, or with updates alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

import acprt
from acprt.acp import AcpDialect, sessions_v2, v2
from acprt.acp.sessions_v2.routing import update_route
from acprt.runtime.handlers import Route
from acprt.wire.payloads import decode_params, decoder_for
from tests.rawpeer import RawPeer, raw_server_for

OPTION = {"type": "boolean", "configId": "fast", "name": "Fast", "currentValue": True}
"""A configuration option."""


class V2Client(acprt.Endpoint):
    """What `acp.Client.v2` does for sessions, and nothing else."""

    def __init__(self, name: str, *, limits: acprt.Limits | None = None) -> None:
        super().__init__(name, limits=limits, dialect=AcpDialect(2, side="client"))

    def first_routes(self) -> Sequence[Route]:
        return (update_route(),)


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def update(tag: str, /, **members: Any) -> dict[str, Any]:
    """A session update."""
    return {"sessionUpdate": tag, **members}


def chunk(words: str, message_id: str = "a1", kind: str = "agent_message_chunk") -> dict[str, Any]:
    """A piece of a message."""
    return update(kind, messageId=message_id, content=text(words))


def state(name: str, **members: Any) -> dict[str, Any]:
    """A state update."""
    return update("state_update", state=name, **members)


def idle(reason: str | None = None) -> dict[str, Any]:
    """The idle state update, with a stop reason if there is one."""
    return state("idle") if reason is None else state("idle", stopReason=reason)


def decoded(wire: dict[str, Any]) -> Any:
    """An update as it comes out of the decoder."""
    params = msgspec.Raw(msgspec.json.encode({"sessionId": "s", "update": wire}))
    return decode_params(decoder_for(v2.UpdateSessionNotification), params).update


def send_updates(peer: RawPeer, *updates: dict[str, Any], session_id: str = "s") -> None:
    """Have the agent send updates of one session, in one write."""
    for each in updates:
        peer.notify("session/update", {"sessionId": session_id, "update": each})


async def expect(peer: RawPeer, method: str) -> dict[str, Any]:
    """The next line, which must be a call of that method."""
    line = await peer.receive()
    assert line.get("method") == method, line
    return line


async def serve_opening(peer: RawPeer, method: str = "session/new", **result: Any) -> dict[str, Any]:
    """Answer the request that opens session `s`; its params."""
    request = await expect(peer, method)
    peer.respond(request["id"], ({} if method == "session/resume" else {"sessionId": "s"}) | result)
    return request["params"]


async def serve_close(peer: RawPeer) -> None:
    """Answer the close of a session."""
    request = await expect(peer, "session/close")
    peer.respond(request["id"], {})


def begin(opening: sessions_v2.SessionOpening) -> asyncio.Task[sessions_v2.Session]:
    """Open a session beside the test, which answers for the agent."""

    async def open_it() -> sessions_v2.Session:
        return await opening

    return asyncio.create_task(open_it())


async def open_session(cx: acprt.Connection, peer: RawPeer) -> sessions_v2.Session:
    """An open session `s`."""
    session = begin(sessions_v2.session(cx, cwd="/w"))
    await serve_opening(peer)
    return await session


@asynccontextmanager
async def opened(client: acprt.Endpoint | None = None) -> AsyncIterator[tuple[sessions_v2.Session, RawPeer]]:
    """A followed session `s`, and the raw agent behind it."""
    async with raw_server_for(client or V2Client("c")) as (cx, peer):
        yield await open_session(cx, peer), peer


async def accept(peer: RawPeer, message_id: str = "m1") -> dict[str, Any]:
    """Answer the next prompt; its params."""
    request = await expect(peer, "session/prompt")
    peer.respond(request["id"], {"messageId": message_id})
    params: dict[str, Any] = request["params"]
    return params


def projected(*updates: dict[str, Any]) -> sessions_v2.Projection:
    """The projection of these updates, in this order."""
    projection = sessions_v2.Projection()
    for each in updates:
        projection.apply(decoded(each))
    return projection
