"""The acprt agent: `method` handlers with typed messages, served by `acprt.run` (or by stock asyncio when told to)."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acprt
import script
from acprt_messages import (
    AgentMessageChunk,
    Initialize,
    InitializeReply,
    NewSession,
    NewSessionReply,
    Option,
    Permission,
    Prompt,
    PromptReply,
    SessionUpdate,
    Text,
    ToolCall,
)

DRAIN_EVERY = 256
"""Updates between two waits for the client: about 55 KB, so that a stream never piles up in memory."""

agent = acprt.Endpoint("benchmark-agent")
parked = 0


@agent.method
async def initialize(request: Initialize) -> InitializeReply:
    return InitializeReply(protocol_version=request.protocol_version)


@agent.method
async def new_session(request: NewSession) -> NewSessionReply:
    return NewSessionReply(session_id=script.SESSION_ID)


@agent.method
async def prompt(request: Prompt, cx: acprt.Connection) -> PromptReply:
    block = request.prompt[0]
    text = block.text if isinstance(block, Text) else ""
    command, number = script.command_of(text)
    if command == script.ECHO:
        cx.send_notification(update_of(request.session_id, text))
    elif command == script.UPDATES:
        await stream(request.session_id, number, cx)
    elif command == script.PARK:
        await park(request.session_id, number, cx)
    elif command == script.NAP:
        await asyncio.sleep(number / 1000)
    elif command == script.CALL:
        await cx.send_request(permission_of(request.session_id)).block_task()
    return PromptReply(stop_reason="end_turn")


async def stream(session_id: str, count: int, cx: acprt.Connection) -> None:
    for i in range(count):
        cx.send_notification(update_of(session_id, script.UPDATE_TEXTS[i & script.UPDATE_MASK]))
        if not i % DRAIN_EVERY:
            await cx.drain()


async def park(session_id: str, count: int, cx: acprt.Connection) -> None:
    global parked
    parked += 1
    if not parked % count:
        cx.send_notification(update_of(session_id, script.PARKED))
    await asyncio.Event().wait()


def permission_of(session_id: str) -> Permission:
    call = ToolCall(script.CALL_ID, script.CALL_TITLE)
    return Permission(session_id=session_id, tool_call=call, options=[Option(*words) for words in script.OPTIONS])


def update_of(session_id: str, text: str) -> SessionUpdate:
    return SessionUpdate(session_id=session_id, update=AgentMessageChunk(Text(text)))


def register_more(count: int) -> None:
    """Handlers that nobody calls: a program with many must not pay for them with each message."""
    for number in range(count):

        @agent.method(f"more/{number}")
        async def more(_params: Any) -> None:
            return None


if __name__ == "__main__":
    register_more(int(sys.argv[2]))
    if sys.argv[1] == "uvloop":
        acprt.run(agent)
    else:
        asyncio.run(agent.serve(acprt.stdio()))
