"""A small MCP server on stdio for testy to use: a program of its own, `python mcp_server.py`."""

from __future__ import annotations

import asyncio
import os

import acprt
from acprt import mcp

server = acprt.Endpoint("tools", dialect=mcp.negotiated("server"))
mcp.answer_opening(server, info=mcp.Implementation(name="tools", version="1"), capabilities={"tools": {}})


@server.method
async def list_tools(request: mcp.ListToolsRequest) -> mcp.ListToolsResult:
    """Two pages."""
    if request.cursor is None:
        return mcp.ListToolsResult(tools=[mcp.Tool(name="greet", description="Greets")], next_cursor="2")
    return mcp.ListToolsResult(tools=[mcp.Tool(name="hang")])


@server.method
async def call_tool(request: mcp.CallToolRequest) -> mcp.CallToolResult:
    match request.name:
        case "greet":
            name = (request.arguments or {}).get("name", "nobody")
            return mcp.CallToolResult(content=[mcp.text_content(f"{os.environ['GREETING']}, {name}!")])
        case "hang":
            print("hanging", file=open(os.environ["TOLD"], "w"), flush=True)  # noqa: SIM115
            await asyncio.Event().wait()
    raise acprt.RpcError.invalid_params(f"no tool {request.name}")


if __name__ == "__main__":
    acprt.run(server)
