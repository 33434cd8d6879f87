"""A server on the PyPI package `mcp`, of both eras. Run by the interop tests with an interpreter that has it."""

from __future__ import annotations

import gc
import sys

import anyio
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.subscriptions import ListenHandler

server = MCPServer("python-server", version="0")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@server.tool()
async def quick(text: str) -> str:
    """Give it back."""
    return f"got {text}"


@server.tool()
async def slow(steps: int, seconds: float, ctx: Context) -> str:
    """Report each step."""
    say("slow began")
    try:
        for step in range(steps):
            await anyio.sleep(seconds / steps)
            await ctx.report_progress(step + 1, steps)
    except BaseException as error:
        say(f"slow saw {type(error).__name__}")
        raise
    return "done"


@server.tool()
async def touch(ctx: Context) -> str:
    """Tell who listens that the tools have changed."""
    await ctx.notify_tools_changed()
    return "touched"


@server.tool()
async def end(ctx: Context) -> str:
    """End every subscription."""
    for handler in [each for each in gc.get_objects() if isinstance(each, ListenHandler)]:
        handler.close()
    return "ended"


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask the client something, as a server of the legacy era may."""
    content = types.TextContent(type="text", text="hi")
    message = types.SamplingMessage(role="user", content=content)
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=5)
    try:
        result = await ctx.session.send_request(types.CreateMessageRequest(params=params), types.CreateMessageResult)
    except BaseException as error:
        say(f"ask saw {type(error).__name__}")
        raise
    return str(result)


server.run("stdio")
