"""A v2 agent for one handler, and a raw client that plays a session of it line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import acprt
from acprt.acp import AcpDialect, v2
from acprt.acp.sessions_v2 import AgentSession, AgentSessions, Projection, Work
from tests.acp.sessions_v2.wire import expect, state, text, update
from tests.rawpeer import RawPeer, raw_client_of

Handler = Callable[[Work], Awaitable[str | None]]

YES = v2.PermissionOption(option_id="y", name="Yes", kind="allow_once")
NO = v2.PermissionOption(option_id="n", name="No", kind="reject_once")


class Agent(acprt.Endpoint):
    """An agent with one handler for prompts, and a session `s` on each of its connections."""

    def __init__(self, handler: Handler | None = None, *, hold: bool = False) -> None:
        super().__init__("agent", dialect=AcpDialect(2, side="agent"))
        self.sessions = AgentSessions(self, hold=hold)
        if handler is not None:
            self.sessions.on_prompt(handler)
        self.session: AgentSession | None = None
        self.with_spawned(self._open)

    async def _open(self, cx: acprt.Connection) -> None:
        self.session = self.sessions.open(cx, "s", cwd="/w", history=Projection())


@asynccontextmanager
async def client_of(agent: Agent) -> AsyncIterator[RawPeer]:
    """A raw client of it, once its session is there."""
    async with raw_client_of(agent) as peer:
        await peer.settled()
        yield peer


async def until_cancelled(work: Work) -> str | None:
    """Work that only a cancel ends."""
    await asyncio.Event().wait()
    return None


def prompt(peer: RawPeer, id: int, words: str = "go") -> None:
    peer.request(id, "session/prompt", {"sessionId": "s", "prompt": [text(words)]})


def cancel(peer: RawPeer) -> None:
    peer.notify("session/cancel", {"sessionId": "s"})


async def next_update(peer: RawPeer) -> dict[str, Any]:
    line = await expect(peer, "session/update")
    assert line["params"]["sessionId"] == "s"
    found: dict[str, Any] = line["params"]["update"]
    return found


async def insertion(peer: RawPeer, id: int, words: str = "go") -> str:
    """The answer to a prompt, the echo of its message and the beginning of the work; the message id."""
    answer = await peer.receive()
    assert answer["id"] == id, answer
    message_id: str = answer["result"]["messageId"]
    assert await next_update(peer) == update("user_message", messageId=message_id, content=[text(words)])
    assert await next_update(peer) == state("running")
    return message_id
