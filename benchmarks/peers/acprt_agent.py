"""The acprt agent: `method` handlers with typed messages, served by `acprt.run` (or by stock asyncio when told to)."""

from __future__ import annotations

import asyncio
import sys

import acprt
import script
from acprt_messages import (
    AgentMessageChunk,
    Initialize,
    InitializeReply,
    NewSession,
    NewSessionReply,
    Prompt,
    PromptReply,
    SessionUpdate,
    Text,
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
    return PromptReply(stop_reason="end_turn")


async def stream(session_id: str, count: int, cx: acprt.Connection) -> None:
    for i in range(count):
        cx.send_notification(update_of(session_id, script.UPDATE_TEXTS[i & script.UPDATE_MASK]))
        if not i % DRAIN_EVERY:
            await cx.drain()


async def park(session_id: str, count: int, cx: acprt.Connection) -> None:
    global parked
    parked += 1
    if parked == count:
        cx.send_notification(update_of(session_id, script.PARKED))
    await asyncio.Event().wait()


def update_of(session_id: str, text: str) -> SessionUpdate:
    return SessionUpdate(session_id=session_id, update=AgentMessageChunk(Text(text)))


if __name__ == "__main__":
    if sys.argv[1] == "uvloop":
        acprt.run(agent)
    else:
        asyncio.run(agent.serve(acprt.stdio()))
