"""An ACP agent that offers the tools of an MCP server: each session has a server of its own, as a child process.

A prompt is the name of a tool and its arguments as JSON; `tools` lists them. Try it with
`python examples/one_prompt.py "python examples/mcp_bridge.py python examples/mcp_server.py" 'count {"to": 5}'`.

The two protocols cancel differently, and nothing here has to care. An editor that cancels the turn cancels the handler,
which cancels the call: the server answers nothing any more, and the turn ends as cancelled. A server that cancels a
question of its own cancels the handler of that, which withdraws the question that the editor was asked; what the editor
still answers is heard by nobody.
"""

import itertools
import json
import sys
from typing import Any

import acprt
from acprt import acp, mcp
from acprt.acp import v1

INFO = mcp.Implementation(name="mcp-bridge", version="0.1.0")

agent = acp.Agent("mcp-bridge", version="0.1.0")
client = acprt.Endpoint("mcp-bridge", dialect=mcp.negotiated("client", info=INFO, capabilities={"elicitation": {}}))

session_ids = (f"bridge-{number}" for number in itertools.count(1))
servers: dict[str, acprt.Connection] = {}  # by session
asking: dict[acprt.Connection, tuple[acp.SessionUpdates, acp.RunningToolCall]] = {}  # the turn that a server works for

YES = v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
NO = v1.PermissionOption(option_id="no", name="No", kind="reject_once")


@agent.method
async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    try:
        server = await open_server(request.cwd)
    except (acprt.RpcError, TimeoutError) as error:  # about that connection: the editor's own is well
        raise acprt.RpcError.internal_error(f"the MCP server cannot be used: {error}") from error
    session_id = next(session_ids)
    servers[session_id] = server
    return v1.NewSessionResponse(session_id=session_id)


async def open_server(cwd: str) -> acprt.Connection:
    server = await client.open(acprt.AgentProcess(*sys.argv[1:], cwd=cwd))
    try:
        await mcp.negotiate(server)
    except BaseException:
        await server.aclose()
        raise
    return server


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    server = servers[request.session_id]
    say = acp.SessionUpdates(cx, request.session_id)
    name, _, rest = "".join(block.text for block in request.prompt if isinstance(block, v1.TextContent)).partition(" ")
    if name == "tools":
        tools = await mcp.call(server, mcp.ListToolsRequest())
        say.message("\n".join(f"{tool.name}: {tool.description}" for tool in tools.tools))
        return v1.PromptResponse(stop_reason="end_turn")

    arguments = json.loads(rest or "{}")
    with say.tool_call(name, raw_input=arguments) as call:
        asking[server] = say, call

        def progress(note: mcp.ProgressNotification) -> None:
            call.update(
                content=[f"{note.progress:g}" if note.total is None else f"{note.progress:g} of {note.total:g}"]
            )

        try:
            result = await mcp.call(server, mcp.CallToolRequest(name=name, arguments=arguments), on_progress=progress)
        except (acprt.RpcError, TimeoutError) as error:
            call.update(status="failed", content=[str(error)])
            say.message(f"{name} failed")
        else:
            for block in result.content:
                say.message(block.get("text", f"[{block['type']}]"))
        finally:
            del asking[server]
    return v1.PromptResponse(stop_reason="end_turn")


@client.method("elicitation/create")
async def elicit(params: dict[str, Any], server: acprt.Connection) -> dict[str, Any]:
    say, call = asking[server]
    say.message(f"{params['message']}\n")
    chosen = await say.ask(call, [YES, NO])
    if chosen is None:
        return {"action": "cancel"}
    return {"action": "accept", "content": {}} if chosen is YES else {"action": "decline"}


@agent.on_close
async def close_servers(cx: acprt.Connection) -> None:
    for server in servers.values():
        await server.aclose()


if __name__ == "__main__":
    acprt.run(agent)
