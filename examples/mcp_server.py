"""An MCP server on stdio that both kinds of clients can use: those that open with a handshake, and modern ones.

Its tools take their time, tell how far they are, and stop when they are cancelled. `ask` puts a question to the user,
which only a server of the legacy era may do; nobody who does not answer in time holds it up.
"""

import asyncio
import sys

import acprt
from acprt import mcp

INFO = mcp.Implementation(name="counter", version="0.1.0")

dialect = mcp.dialect(mcp.ProtocolEra.LEGACY_2024, "server") if "--legacy" in sys.argv else mcp.negotiated("server")
server = acprt.Endpoint("counter", dialect=dialect)
mcp.answer_opening(server, info=INFO, capabilities={"tools": {}})

TOOLS = [
    mcp.Tool(
        name="count",
        description="Counts, slowly.",
        input_schema={
            "type": "object",
            "properties": {"to": {"type": "integer"}, "pause": {"type": "number"}},
            "required": ["to"],
        },
    ),
    mcp.Tool(
        name="ask",
        description="Asks the user whether all is well.",
        input_schema={"type": "object", "properties": {"seconds": {"type": "number"}}},
    ),
]


@server.method
async def list_tools(request: mcp.ListToolsRequest) -> mcp.ListToolsResult:
    return mcp.ListToolsResult(tools=TOOLS)


@server.method
async def call_tool(request: mcp.CallToolRequest, cx: acprt.Connection) -> mcp.CallToolResult:
    arguments = request.arguments or {}
    match request.name:
        case "count":
            text = await count(cx, arguments["to"], arguments.get("pause", 0.01))
        case "ask":
            text = await ask(cx, arguments.get("seconds", 60.0))
        case _:
            raise acprt.RpcError.invalid_params(f"there is no tool {request.name}")
    return mcp.CallToolResult(content=[mcp.text_content(text)])


async def count(cx: acprt.Connection, to: int, pause: float) -> str:
    for number in range(1, to + 1):
        await asyncio.sleep(pause)  # a cancel ends the handler here
        mcp.report_progress(cx, number, to)
    return f"counted to {to}"


async def ask(cx: acprt.Connection, seconds: float) -> str:
    question = {"message": "Is all well?", "requestedSchema": {"type": "object", "properties": {}}}
    try:
        answer = await cx.send_request("elicitation/create", question).block_task(timeout=seconds)
    except TimeoutError:  # the client was told that the question is void
        return "nobody said anything"
    return "all is well" if answer["action"] == "accept" else "all is not well"


if __name__ == "__main__":
    acprt.run(server)
