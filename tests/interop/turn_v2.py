"""Whole turns in the draft version 2 with agents of other projects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2


@asynccontextmanager
async def session_v2_with(
    agent: acprt.Transport, cwd: str = "/"
) -> AsyncIterator[tuple[sessions_v2.Session, list[v2.RequestPermissionRequest]]]:
    """From `initialize` to a followed session, and what permission was asked for; every one is given."""
    asked: list[v2.RequestPermissionRequest] = []
    client = acp.Client.v2("interop", version="1.0.0")

    @client.method
    async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        asked.append(request)
        chosen = next(option for option in request.options if option.kind == "allow_once")
        return v2.RequestPermissionResponse(outcome=v2.SelectedPermissionOutcome(option_id=chosen.option_id))

    async with client.connect(agent) as cx:
        await acp.initialize(cx)
        assert cx.peer.version == 2
        async with sessions_v2.session(cx, cwd=cwd) as session:
            yield session, asked


async def turn_v2(session: sessions_v2.Session, text: str, *, cancel: bool = False) -> tuple[list[str], str | None]:
    """The texts of a whole turn, and why it stopped; `cancel`: with a `session/cancel` at the first text."""
    texts = []
    turn = session.prompt(text)
    async for update in turn:
        match update:
            case v2.AgentMessageChunk(content=v2.TextContent(text=said)):
                texts.append(said)
                if cancel:
                    turn.cancel()
    return texts, turn.stop_reason
