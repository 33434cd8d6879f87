"""The tools of a session's MCP servers: listed and called for a prompt, on a connection opened for that one prompt.

Whatever goes wrong with a server is the text of the answer, never an error of the prompt.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec

from acprt import mcp
from acprt.acp.schema import v1
from acprt.errors import RpcError
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.messages import Request
from acprt.testing.testy.http import HttpServer
from acprt.transports.process import AgentProcess

__all__ = ["call_tool", "list_tools"]

_WHO = mcp.Implementation(name="testy", version="1.0.0")
_FAILURES = (RpcError, OSError, EOFError, TimeoutError, ValueError)

Ask: TypeAlias = Callable[[Request[Any]], Awaitable[Any]]
"""Sends a request to an open server and waits for its result."""


async def list_tools(servers: Sequence[v1.McpServer], name: str) -> str:
    """`Available tools:` and a line for each, or `ERROR: …`."""
    lines = ["Available tools:"]
    try:
        async with _opened(servers, name) as ask:
            cursor: str | None = None
            while True:
                page: mcp.ListToolsResult = await ask(mcp.ListToolsRequest(cursor=cursor))
                lines += [f"  - {tool.name}: {tool.description or 'No description'}" for tool in page.tools]
                cursor = page.next_cursor or None
                if cursor is None:
                    break
    except _FAILURES as error:
        return _failure(error)
    return "\n".join(lines)


async def call_tool(servers: Sequence[v1.McpServer], name: str, tool: str, params: Any) -> str:
    """`OK: ` and the result as JSON, or `ERROR: …`."""
    arguments = params if isinstance(params, dict) else {}
    try:
        async with _opened(servers, name) as ask:
            result: mcp.CallToolResult = await ask(mcp.CallToolRequest(name=tool, arguments=arguments))
    except _FAILURES as error:
        return _failure(error)
    return f"OK: {msgspec.json.encode(result).decode()}"


@asynccontextmanager
async def _opened(servers: Sequence[v1.McpServer], name: str) -> AsyncIterator[Ask]:
    match next((server for server in servers if getattr(server, "name", None) == name), None):
        case None:
            raise ValueError(f"MCP server {name!r} not found")
        case v1.McpServerStdio() as server:
            variables = {variable.name: variable.value for variable in server.env}
            endpoint = Endpoint("testy", dialect=mcp.negotiated("client", info=_WHO))
            async with endpoint.connect(AgentProcess(server.command, *server.args, env=variables)) as cx:
                await mcp.negotiate(cx)
                yield lambda request: cx.send_request(request).block_task()
        case v1.McpServerHttp() as server:
            headers = [(header.name, header.value) for header in server.headers]
            async with HttpServer.opened(server.url, headers, _WHO) as http:
                yield http.ask
        case server:
            raise ValueError(f"{type(server).__name__.removeprefix('McpServer').upper()} MCP servers are not supported")


def _failure(error: Exception) -> str:
    return f"ERROR: {str(error) or type(error).__name__}"
