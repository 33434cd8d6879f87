"""The server on mcp: one tool that takes the text and obeys the commands of `script`; updates are log messages."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

import script

DONE = types.CallToolResult(content=[types.TextContent(type="text", text="end_turn")])
parked = 0


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="prompt", input_schema={"type": "object"})])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = (params.arguments or {})["text"]
    command, number = script.command_of(text)
    if command == script.ECHO:
        await update(context, text)
    elif command == script.UPDATES:
        for i in range(number):
            await update(context, script.UPDATE_TEXTS[i & script.UPDATE_MASK])
    elif command == script.PARK:
        await park(context, number)
    elif command == script.NAP:
        await anyio.sleep(number / 1000)
    elif command == script.CALL:
        await context.session.send_request(types.PingRequest(), types.EmptyResult)
    return DONE


async def park(context: Any, number: int) -> None:
    global parked
    parked += 1
    if not parked % number:
        await update(context, script.PARKED)
    await anyio.Event().wait()


async def update(context: Any, text: str) -> None:
    params = types.LoggingMessageNotificationParams(level="info", data=text)
    await context.session.send_notification(types.LoggingMessageNotification(params=params))


async def main() -> None:
    # Its client shows its child to nobody: the version is the process id.
    server = Server("benchmark", version=str(os.getpid()), on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, backend_options={"use_uvloop": sys.argv[1] == "uvloop"})
