"""An agent whose prompts wait to be cancelled, and the lines that do it."""

from __future__ import annotations

import asyncio
from typing import Any

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.talking import prompt_params

CANCELLED = {"stopReason": "cancelled"}


def cancel_of(session_id: str = "s") -> dict[str, Any]:
    """The cancel of a session."""
    return {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session_id}}


def prompt_line(id: Any, session_id: str = "s") -> dict[str, Any]:
    """A prompt to a session."""
    return {"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt_params(session_id)}


class Waiting:
    """An agent whose prompts wait for ever; `started` tells of each."""

    def __init__(self) -> None:
        self.agent = acp.Agent("waiting")
        self.started: asyncio.Queue[str] = asyncio.Queue()
        self.agent.method(self.prompt)

    async def prompt(self, request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
        self.started.put_nowait(request.session_id)
        await self.abort(request, cx)
        return v1.PromptResponse(stop_reason="end_turn")

    async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
        await asyncio.Event().wait()
