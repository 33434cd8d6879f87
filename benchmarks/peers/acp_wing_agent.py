"""The agent on `acprt.acp`: the whole schema of the Agent Client Protocol instead of the few messages used here."""

from __future__ import annotations

import asyncio
import sys

import acprt
import script
from acprt import acp
from acprt.acp import v1

DRAIN_EVERY = 256
"""Updates between two waits for the client: about 55 KB, so that a stream never piles up in memory."""

OPTIONS = [
    v1.PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    v1.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]
CALL = v1.ToolCallUpdate(tool_call_id=script.CALL_ID, title=script.CALL_TITLE)

agent = acp.Agent("benchmark-agent", version="1")
parked = 0


@agent.method
async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    return v1.NewSessionResponse(session_id=script.SESSION_ID)


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    block = request.prompt[0]
    text = block.text if isinstance(block, v1.TextContent) else ""
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
        permission = v1.RequestPermissionRequest(session_id=request.session_id, tool_call=CALL, options=OPTIONS)
        await cx.send_request(permission).block_task()
    return v1.PromptResponse(stop_reason="end_turn")


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


def update_of(session_id: str, text: str) -> v1.SessionNotification:
    return v1.SessionNotification(session_id=session_id, update=v1.AgentMessageChunk(content=v1.TextContent(text=text)))


if __name__ == "__main__":
    if sys.argv[1] == "uvloop":
        acprt.run(agent)
    else:
        asyncio.run(agent.serve(acprt.stdio()))
