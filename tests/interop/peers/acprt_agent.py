"""The acprt agent that clients of other projects drive: it says each word back in an update of its own.

"ASK" asks for permission and says which option was chosen; "FILE" writes a file by the client and says what the client
reads back; "RUN" lets the client run a command and says its output; "WAIT" goes on until the turn is cancelled.
"""

from __future__ import annotations

import asyncio

import acprt
from acprt import acp
from acprt.acp import v1

SECONDS = 20.0

agent = acp.Agent("words", version="1.0.0")
folders: dict[str, str] = {}


@agent.method
async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    session_id = f"session-{len(folders)}"
    folders[session_id] = request.cwd
    return v1.NewSessionResponse(session_id=session_id)


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    def say(text: str) -> None:
        update = v1.AgentMessageChunk(content=v1.TextContent(text=text))
        cx.send_notification(v1.SessionNotification(session_id=request.session_id, update=update))

    for block in request.prompt:
        if not isinstance(block, v1.TextContent):
            continue
        for word in block.text.split():
            if word == "ASK":
                say(await permission(request.session_id, cx))
            elif word == "FILE":
                say(await file(request.session_id, cx))
            elif word == "RUN":
                say(await run(request.session_id, cx))
            else:
                say(word)
            if word == "WAIT":
                await asyncio.Event().wait()
    return v1.PromptResponse(stop_reason="end_turn")


async def permission(session_id: str, cx: acprt.Connection) -> str:
    request = v1.RequestPermissionRequest(
        session_id=session_id,
        tool_call=v1.ToolCallUpdate(tool_call_id="call-1", title="A tool", kind="other", status="pending"),
        options=[
            v1.PermissionOption(option_id="no", name="No", kind="reject_once"),
            v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
        ],
    )
    try:
        answer = await cx.send_request(request).block_task(timeout=SECONDS)
    except acprt.RpcError as error:
        return f"refused: {error.code}"
    outcome = answer.outcome
    return outcome.option_id if isinstance(outcome, v1.SelectedPermissionOutcome) else "cancelled"


async def file(session_id: str, cx: acprt.Connection) -> str:
    path = f"{folders[session_id]}/from_the_agent.txt"
    write = v1.WriteTextFileRequest(session_id=session_id, path=path, content="one\ntwo\nthree\n")
    await cx.send_request(write).block_task(timeout=SECONDS)
    read = v1.ReadTextFileRequest(session_id=session_id, path=path, line=2, limit=1)
    answer = await cx.send_request(read).block_task(timeout=SECONDS)
    return answer.content.strip()


async def run(session_id: str, cx: acprt.Connection) -> str:
    create = v1.CreateTerminalRequest(session_id=session_id, command="sh", args=["-c", "printf done; exit 3"])
    terminal = (await cx.send_request(create).block_task(timeout=SECONDS)).terminal_id
    wait = v1.WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal)
    status = await cx.send_request(wait).block_task(timeout=SECONDS)
    look = v1.TerminalOutputRequest(session_id=session_id, terminal_id=terminal)
    output = await cx.send_request(look).block_task(timeout=SECONDS)
    release = v1.ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal)
    await cx.send_request(release).block_task(timeout=SECONDS)
    return f"{output.output} {status.exit_code}"


if __name__ == "__main__":
    acprt.run(agent)
