"""The v2 messages that these tests send and expect, as JSON, and a client that follows sessions without a handshake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

import acprt
from acprt.acp import AcpDialect, v2
from acprt.acp.sessions_v2.routing import update_route
from acprt.runtime.handlers import Route
from acprt.wire.payloads import decode_params, decoder_for
from tests.rawpeer import RawPeer


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
