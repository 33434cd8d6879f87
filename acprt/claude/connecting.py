"""How a conversation with the command begins: `connect` for one that lasts, `query` for a single prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from acprt.claude.base import Message
from acprt.claude.client import BACKGROUND_SECONDS, CONTROL_SECONDS, ClaudeClient
from acprt.claude.control import Initialize
from acprt.claude.host import AskCallback, DialogCallback, ElicitationCallback, Hook, Host
from acprt.claude.process import ClaudeProcess
from acprt.claude.prompts import Content
from acprt.limits import Limits
from acprt.runtime.endpoint import Endpoint
from acprt.transports.base import Transport

__all__ = ["connect", "query"]

_GREETING = Initialize()


@asynccontextmanager
async def connect(
    process: ClaudeProcess | Transport,
    *,
    can_use_tool: AskCallback | None = None,
    hooks: Mapping[str, Sequence[Hook]] | None = None,
    mcp_servers: Mapping[str, Endpoint] | None = None,
    on_elicitation: ElicitationCallback | None = None,
    dialogs: Mapping[str, DialogCallback] | None = None,
    handlers: Endpoint | None = None,
    initialize: Initialize | None = _GREETING,
    timeout: float = CONTROL_SECONDS,
    limits: Limits | None = None,
) -> AsyncIterator[ClaudeClient]:
    """Start the command, greet it, and end it with the block.

    - `can_use_tool(request)`: asked before a tool runs, answers `Allow` or `Deny`; without it the command refuses what
      nobody allowed.
    - `hooks`: event name → `Hook`s; `mcp_servers`: name → endpoint that speaks MCP; `on_elicitation`; `dialogs`: kind →
      callback. `handlers`: an endpoint whose `method`s serve any other control request.
    - `initialize`: what to say in it besides; None leaves it out. It must be answered within `timeout` seconds.
    - `limits`: of the connection; lines, stderr and teardown are the process's own.

    Raises `StartError`, or `ProcessEnded` when the command ends before it has answered.
    """
    host = Host(
        can_use_tool=can_use_tool, hooks=hooks, mcp_servers=mcp_servers, on_elicitation=on_elicitation, dialogs=dialogs
    )
    if can_use_tool is not None and isinstance(process, ClaudeProcess):
        process.ask_host()
    client = ClaudeClient(process, host, handlers, limits)
    await client.open(initialize, timeout)
    try:
        yield client
    finally:
        await client.aclose()


async def query(
    process: ClaudeProcess | Transport,
    content: Content,
    *,
    can_use_tool: AskCallback | None = None,
    background_seconds: float = BACKGROUND_SECONDS,
) -> AsyncIterator[Message]:
    """One prompt to a fresh process: its messages, then those of the agents and workflows that it left running.

    stdin stays open, so that asks can be answered, until nothing more is owed (`ClaudeClient.settled`). Leaving the
    loop early ends the process, at the latest when the iterator is closed (`contextlib.aclosing`).
    """
    async with connect(process, can_use_tool=can_use_tool) as client:
        async for message in client.prompt(content):
            yield message
        closing = asyncio.create_task(client.end_when_settled(background_seconds=background_seconds))
        try:
            async for message in client.messages():
                yield message
        finally:
            closing.cancel()
