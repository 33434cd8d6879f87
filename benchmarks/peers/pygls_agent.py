"""The agent on pygls: features of a JsonRPCServer, which reads stdin by a thread pool and runs stock asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.server import JsonRPCServer

import pygls_messages as messages
import script

server = JsonRPCServer(messages.Protocol, messages.converter)
parked = 0


@server.feature("initialize")
async def initialize(params: Any) -> Any:
    return {"protocolVersion": params.protocolVersion}


@server.feature("session/new")
async def new_session(_params: Any) -> Any:
    return {"sessionId": script.SESSION_ID}


@server.feature("session/prompt")
async def prompt(params: Any) -> Any:
    block = params.prompt[0]
    text = block.text if isinstance(block, messages.Text) else ""
    command, number = script.command_of(text)
    if command == script.ECHO:
        update(params.sessionId, text)
    elif command == script.UPDATES:
        for i in range(number):
            update(params.sessionId, script.UPDATE_TEXTS[i & script.UPDATE_MASK])
    elif command == script.PARK:
        await park(params.sessionId, number)
    elif command == script.NAP:
        await asyncio.sleep(number / 1000)
    elif command == script.CALL:
        await ask(params.sessionId)
    return messages.PromptResult("end_turn")


async def park(session_id: str, number: int) -> None:
    global parked
    parked += 1
    if not parked % number:
        update(session_id, script.PARKED)
    await asyncio.Event().wait()


async def ask(session_id: str) -> None:
    call = messages.ToolCall(script.CALL_ID, script.CALL_TITLE, "tool_call")
    options = [messages.Option(*words) for words in script.OPTIONS]
    permission = messages.Permission(session_id, call, options)
    await server.protocol.send_request_async("session/request_permission", permission)


def update(session_id: str, text: str) -> None:
    chunk = messages.AgentMessageChunk(messages.Text(text, "text"), "agent_message_chunk")
    server.protocol.notify("session/update", messages.Update(session_id, chunk))


if __name__ == "__main__":
    server.start_io()
