"""What a user of `acprt.acp` may write as it stands, in both versions: `mypy --strict` must have nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import msgspec

import acprt
from acprt import acp
from acprt.acp import sessions_v2, updates, v1, v2

agent = acp.Agent(
    "a",
    capabilities=v1.AgentCapabilities(prompt_capabilities=v1.PromptCapabilities(image=True)),
    auth_methods=[v1.AuthMethodAgent(id="k", name="Key")],
    limits=acprt.Limits(session_bytes=10_000_000),
)
client = acp.Client("c", capabilities=v1.ClientCapabilities(terminal=True))
draft = acp.Agent.v2(
    "a", capabilities=v2.AgentCapabilities(), auth_methods=[v2.AuthMethodAgent(method_id="k", name="Key")]
)
client2 = acp.Client.v2("c", capabilities=v2.ClientCapabilities())
both = acp.Agent.router(v1=agent, v2=draft)
either = acp.Client.connector(v1=client, v2=client2)


@client.method
def read(request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
    return v1.ReadTextFileResponse(content=Path(request.path).read_text())


@client.method
def write(request: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
    Path(request.path).write_text(request.content)
    return v1.WriteTextFileResponse()


def show(update: v1.SessionUpdate) -> str:
    match update:
        case v1.UserMessageChunk() | v1.AgentMessageChunk() | v1.AgentThoughtChunk():
            return type(update.content).__name__
        case v1.ToolCall(title=title, kind=kind, locations=locations):
            return f"{title} {kind} {[place.line for place in locations]}"
        case v1.ToolCallUpdate(status="completed" | "failed" as status):
            return status
        case v1.ToolCallUpdate(content=[v1.Diff(path=path), *_]):
            return path
        case v1.Unknown(tag=tag):
            return tag
        case _:
            return update.session_update


def tell(say: acp.SessionUpdates, steps: list[str], on: Callable[[v1.SessionUpdate], None]) -> None:
    say.plan(*steps)
    say.plan("a", v1.PlanEntry(content="b", priority="high", status="completed"))
    say.message(v1.ImageContent(data="", mime_type="image/png"))
    with say.tool_call("T", kind="edit", locations=["/a", ("/b", 3)], content=["x", updates.diff("/a", "b")]) as call:
        call.update(content=[v1.TextContent(text="x")], raw_output={"a": 1})
    update = updates.agent_message("x")
    on(update)


async def use(cx: acprt.Connection) -> None:
    peer = await acp.initialize(cx)
    print(cx.peer.version, peer.version + 1)
    servers = [v1.McpServerStdio(name="n", command="c", args=[], env=[])]
    async with acp.session(cx, cwd=Path(), mcp_servers=servers) as session:
        turn: acp.Turn = session.prompt(["a", v1.TextContent(text="b")])
        async for update in turn:
            print(show(update))
        reason: str | None = session.stop_reason
        response = await session.prompt(v1.TextContent(text="b")).finished()
        print(response.usage, reason, peer.capabilities.load_session)
        for option in session.config_options or ():
            match option:
                case v1.SessionConfigSelect(options=choices):
                    for choice in choices:
                        if isinstance(choice, v1.SessionConfigSelectOption):
                            print(choice.value)
                case v1.SessionConfigBoolean(current_value=on):
                    print(on)
                case _:
                    assert_never(option)
    opened = await cx.send_request(v1.NewSessionRequest(cwd="/", mcp_servers=[])).block_task()
    blocks = [v1.TextContent(text="x")]
    await cx.send_request(v1.PromptRequest(session_id=opened.session_id, prompt=[*blocks])).block_task()
    await session.prompt(blocks).text()
    infos = await acp.list_sessions(cx)
    print(infos[0].title)


async def use2(cx: acprt.Connection) -> None:
    async with sessions_v2.session(cx, cwd=".") as session:
        blocks = [v2.TextContent(text="x")]
        turn = session.prompt(blocks)
        reason = await turn
        print(reason)
        async with session.prompt("x") as second:
            async for update in second:
                match update:
                    case v2.ToolCallUpdate(status=status, title=str(title)):
                        print(status, title)
                    case v2.StateUpdate(state="idle", stop_reason=why):
                        print(why)
                    case v2.Unknown(tag=tag, raw=raw):
                        print(tag, raw)
        for record in session.projection.timeline:
            if isinstance(record, sessions_v2.ToolCall):
                print(record.title)


async def testing() -> None:
    async with acp.Client("t").connect(agent) as cx, acp.session(cx) as s:
        print(s)
        turn = acp.allow_first(
            v1.RequestPermissionRequest(session_id="s", tool_call=v1.ToolCallPatch(tool_call_id="x"), options=[])
        )
        turn2 = acp.allow_first(v2.RequestPermissionRequest(session_id="s", title="x", options=[]))
        match turn.outcome:
            case v1.SelectedPermissionOutcome(option_id=o):
                print(o)
            case v1.CancelledPermissionOutcome():
                print(turn2)
    print(msgspec.json.encode(v1.TextContent(text="x")), v1.json_schema(v1.TextContent))
    if isinstance(v2.decode_client_notification("session/cancel", b"{}"), v2.CancelSessionNotification):
        ...
