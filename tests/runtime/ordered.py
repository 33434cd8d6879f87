"""What the tests of order share: a callback that can be held, an endpoint that logs notes, lines to send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for


class Note(acprt.Notification, method="note"):
    text: str = ""


def answer(id: int, result: Any = "ok") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def note(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "note", "params": {"text": text}}


def request(id: int, method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


class Held:
    """An ordered callback that can be held: it logs its start and end, and what it got."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.result: Any = None

    async def __call__(self, result: Any) -> None:
        self.result = result
        self.log.append("callback starts")
        self.entered.set()
        await self.release.wait()
        self.log.append("callback ends")


def noting(log: list[str]) -> acprt.Endpoint:
    """An endpoint that logs every note that is dispatched to it."""
    endpoint = acprt.Endpoint("near")

    @endpoint.on_receive_notification
    async def on_note(note: Note) -> None:
        log.append(note.text)

    return endpoint


@asynccontextmanager
async def upstream_responder(endpoint: acprt.Endpoint) -> AsyncIterator[tuple[acprt.Responder[Any], RawPeer]]:
    """A responder that waits for an answer, and the peer that would get it, on a connection of its own.

    Whoever takes the responder is the only one to hold it.
    """
    kept: list[acprt.Responder[Any]] = []
    asked = asyncio.Event()

    @endpoint.on_receive_request("up")
    async def up(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
        kept.append(responder)
        asked.set()

    async with raw_client_of(endpoint) as peer:
        peer.request("up-1", "up")
        await asked.wait()
        yield kept.pop(), peer


async def until_it_ends(endpoint: acprt.Endpoint, script: Callable[[acprt.Connection, RawPeer], None]) -> None:
    """Run `script` in the block of a connection that nothing but its own failure ends."""
    async with raw_server_for(endpoint) as (cx, peer):
        script(cx, peer)
        await asyncio.Event().wait()


async def sent_by(peer: RawPeer) -> list[str]:
    """The methods of what reached the peer, once everything has come to rest."""
    return [line["method"] for line in await peer.settled()]
