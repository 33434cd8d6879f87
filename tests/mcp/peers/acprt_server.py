"""A server on acprt for clients of other packages: one tool each for what they try."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import acprt
from acprt import mcp

INFO = mcp.Implementation(name="acprt-server", version="0")

server = acprt.Endpoint("server", dialect=mcp.negotiated("server", info=INFO))
mcp.answer_opening(server, info=INFO, capabilities={"tools": {"listChanged": True}})
mcp.offer_subscriptions(server)

SCHEMAS: dict[str, dict[str, Any]] = {
    "quick": {"type": "object", "properties": {"text": {"type": "string"}}},
    "slow": {"type": "object", "properties": {"steps": {"type": "integer"}, "seconds": {"type": "number"}}},
    "touch": {"type": "object"},
    "end": {"type": "object"},
}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def text(value: str) -> mcp.CallToolResult:
    return mcp.CallToolResult(content=[mcp.text_content(value)])


@server.method
async def list_tools(request: mcp.ListToolsRequest) -> mcp.ListToolsResult:
    return mcp.ListToolsResult(tools=[mcp.Tool(name=name, input_schema=SCHEMAS[name]) for name in SCHEMAS])


@server.method
async def call_tool(request: mcp.CallToolRequest, cx: acprt.Connection) -> mcp.CallToolResult:
    arguments = request.arguments or {}
    match request.name:
        case "quick":
            return text(f"got {arguments['text']}")
        case "slow":
            return await slow(cx, **arguments)
        case "touch":
            return text(f"touched {mcp.publish(cx, mcp.ToolListChangedNotification())}")
        case "end":
            ids = [each.id for each in cx.status().in_flight if each.method == "subscriptions/listen"]
            for id in ids:
                assert isinstance(id, int | str)
                await mcp.end_subscription(cx, id)
            return text(f"ended {len(ids)}")
    raise acprt.RpcError.invalid_params(f"no tool {request.name}")


async def slow(cx: acprt.Connection, steps: int, seconds: float) -> mcp.CallToolResult:
    say("slow began")
    try:
        for step in range(steps):
            await asyncio.sleep(seconds / steps)
            mcp.report_progress(cx, step + 1, steps)
    except asyncio.CancelledError:
        say("slow saw CancelledError")
        raise
    return text("done")


@server.on_receive_notification
async def cancelled(note: mcp.CancelledNotification) -> None:
    say(f"cancel with reason {note.reason!r}")


acprt.run(server)
