"""The Claude Code command as an ACP agent, so that any ACP client can drive it: `claude_as_acp.py [COMMAND…]`.

One process of the command per session. What belongs to no prompt (ends of background tasks, turns that they wake) is
told between prompts, on the tool call that it came from.
"""

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import acprt
from acprt import acp, claude
from acprt.acp import updates, v1

COMMAND = sys.argv[1:] or ["claude"]
MODES = {"default": "Ask", "acceptEdits": "Accept edits", "plan": "Plan", "dontAsk": "Refuse what is not allowed"}
KINDS: dict[str, v1.ToolKind] = {
    "Bash": "execute",
    "Read": "read",
    "Glob": "search",
    "Grep": "search",
    "Edit": "edit",
    "Write": "edit",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Agent": "think",
}
ENDS: dict[str, v1.ToolCallStatus] = {"completed": "completed"}  # everything else has failed

agent = acp.Agent("claude-code", version="0.1.0", title="Claude Code")


class Session:
    """One session: what the command says becomes what an ACP client is told."""

    def __init__(self, cx: acprt.Connection, session_id: str) -> None:
        self.id = session_id
        self.cx = cx
        self.say = acp.SessionUpdates(cx, session_id)
        self.cli: claude.ClaudeClient
        self.streamed = False  # the block that comes whole was told in pieces
        self.plans: set[str] = set()  # calls that were told as a plan, and are no calls to the client

    async def prompt(self, blocks: list[v1.ContentBlock]) -> v1.PromptResponse:
        turn = self.cli.prompt([as_claude(block) for block in blocks])
        try:
            async for message in turn:
                self.show(message)
        except asyncio.CancelledError:  # session/cancel: the answer waits for the result of the interrupted turn
            await turn.cancel()
            raise
        except claude.AuthenticationFailed as error:
            raise acprt.RpcError.auth_required(str(error)) from error
        except claude.ClaudeError as error:
            raise acprt.RpcError.internal_error(str(error)) from error
        return v1.PromptResponse(stop_reason=turn.stop_reason or "end_turn")  # type: ignore[arg-type]  # a word of ACP's

    async def listen(self) -> None:
        """What belongs to no prompt."""
        async for message in self.cli.messages():
            self.show(message)

    async def may_run(self, request: claude.CanUseTool) -> claude.Allow | claude.Deny:
        """Ask the user of the client. A cancel by the command cancels this, and so the question."""
        call = updates.tool_call(
            request.title or request.tool_name,
            id=request.tool_use_id,
            kind=KINDS.get(request.tool_name, "other"),
            raw_input=request.input,
        )
        options = [v1.PermissionOption(option_id="once", name="Allow", kind="allow_once")]
        if request.permission_suggestions and not request.suppress_always_allow_rule:
            options.append(v1.PermissionOption(option_id="always", name="Always allow", kind="allow_always"))
        options.append(v1.PermissionOption(option_id="no", name="Reject", kind="reject_once"))
        question = updates.permission_request(self.id, call, options)
        match (await self.cx.send_request(question).block_task()).outcome:
            case v1.SelectedPermissionOutcome(option_id="once"):
                return claude.Allow()
            case v1.SelectedPermissionOutcome(option_id="always"):
                return claude.Allow(updated_permissions=request.permission_suggestions)
            case v1.SelectedPermissionOutcome():
                return claude.Deny(message="The user refused this call.")
        return claude.Deny(message="The user cancelled.", interrupt=True)

    def show(self, message: claude.Message) -> None:
        match message:
            case claude.StreamEvent(parent_tool_use_id=None) if message.text:
                self.streamed = True
                self.say.message(message.text)
            case claude.StreamEvent(parent_tool_use_id=None) if message.thinking:
                self.streamed = True
                self.say.thought(message.thinking)
            case claude.AssistantMessage(error=None):
                for block in message.content:
                    self.show_block(block, inner=message.parent_tool_use_id is not None)
            case claude.UserMessage(content=list(blocks), is_replay=False):
                for block in blocks:
                    if isinstance(block, claude.ToolResultBlock):
                        self.show_result(block, message.tool_use_result)
            case claude.StatusMessage(permission_mode=str(mode)):
                self.say.send(v1.CurrentModeUpdate(current_mode_id=mode))
            case claude.CommandsChangedMessage(commands=commands):
                self.say.commands(*map(as_acp_command, commands))
            case claude.TaskProgressMessage(tool_use_id=str(call), description=title):
                self.say.send(updates.tool_call_update(call, title=title))
            case claude.TaskNotificationMessage():
                self.show_end(message)

    def show_block(self, block: claude.Block, *, inner: bool) -> None:
        match block:
            case claude.TextBlock(text=text) if not self.streamed and not inner:
                self.say.message(text)
            case claude.ThinkingBlock(thinking=thinking) if not self.streamed and not inner:
                self.say.thought(thinking)
            case claude.ToolUseBlock(id=id, name="TodoWrite", input={"todos": list(todos)}):
                self.plans.add(id)
                self.say.plan(*(as_plan_entry(todo) for todo in todos))
            case claude.ToolUseBlock(id=id, name=name, input=input):
                kind = KINDS.get(name, "other")
                self.say.send(updates.tool_call(name, id=id, kind=kind, status="in_progress", raw_input=input))
        if not inner:
            self.streamed = False

    def show_result(self, block: claude.ToolResultBlock, details: Any) -> None:
        if block.tool_use_id in self.plans:
            self.plans.remove(block.tool_use_id)
            return
        if isinstance(details, dict) and "backgroundTaskId" in details:
            return  # the work goes on in the background: the call ends with its task
        text = block.content if isinstance(block.content, str) else claude.text_of(as_blocks(block.content))
        status: v1.ToolCallStatus = "failed" if block.is_error else "completed"
        self.say.send(updates.tool_call_update(block.tool_use_id, status=status, content=[text], raw_output=details))

    def show_end(self, end: claude.TaskNotificationMessage) -> None:
        task = self.cli.tasks.tasks.get(end.task_id)
        call = end.tool_use_id or (task.tool_use_id if task is not None else None)
        if call is None or task is None or task.notification != end:  # of nobody's call, or of an earlier run
            return
        text = self.cli.tasks.display(end)
        content: list[updates.CallContent] = [] if text is None else [text]
        if end.handback == claude.TaskHandback.WITHHELD:
            content = ["Nothing was handed back."]
        content += [v1.ResourceLink(uri=link.uri, name=link.name) for link in end.resource_links]
        self.say.send(updates.tool_call_update(call, status=ENDS.get(end.status, "failed"), content=content))


class Sessions:
    """The sessions of one client, and what has to be closed for each."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[Session, AsyncExitStack]] = {}

    async def new(self, cx: acprt.Connection, cwd: str) -> Session:
        session = Session(cx, str(uuid.uuid4()))
        async with AsyncExitStack() as closing:
            process = claude.ClaudeProcess(*COMMAND, cwd=cwd, session_id=session.id)
            session.cli = await closing.enter_async_context(claude.connect(process, can_use_tool=session.may_run))
            await closing.enter_async_context(beside(session.listen()))
            self.open[session.id] = session, closing.pop_all()
        return session

    def get(self, session_id: str) -> Session:
        if session_id not in self.open:
            raise acp.session_not_found(session_id)
        return self.open[session_id][0]

    async def close(self, session_id: str) -> None:
        self.get(session_id)
        await self.open.pop(session_id)[1].aclose()


def sessions_of(cx: acprt.Connection) -> Sessions:
    sessions: Sessions = cx.attachments.setdefault(Sessions, Sessions())
    return sessions


@agent.method
async def new_session(request: v1.NewSessionRequest, cx: acprt.Connection) -> v1.NewSessionResponse:
    try:
        session = await sessions_of(cx).new(cx, request.cwd)
    except claude.ClaudeError as error:
        raise acprt.RpcError.internal_error(str(error)) from error
    commands = [as_acp_command(command) for command in session.cli.info.commands]
    cx.after_response(lambda: session.say.commands(*commands))  # the client knows the session by then
    modes = [v1.SessionMode(id=mode, name=name) for mode, name in MODES.items()]
    return v1.NewSessionResponse(
        session_id=session.id, modes=v1.SessionModeState(current_mode_id="default", available_modes=modes)
    )


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    return await sessions_of(cx).get(request.session_id).prompt(request.prompt)


@agent.method
async def set_mode(request: v1.SetSessionModeRequest, cx: acprt.Connection) -> v1.SetSessionModeResponse:
    await sessions_of(cx).get(request.session_id).cli.set_permission_mode(request.mode_id)
    return v1.SetSessionModeResponse()


@agent.method
async def close_session(request: v1.CloseSessionRequest, cx: acprt.Connection) -> v1.CloseSessionResponse:
    await sessions_of(cx).close(request.session_id)
    return v1.CloseSessionResponse()


@agent.on_close
async def goodbye(cx: acprt.Connection) -> None:
    sessions = sessions_of(cx)
    await asyncio.gather(*(sessions.close(session_id) for session_id in list(sessions.open)))


def as_claude(block: v1.ContentBlock) -> dict[str, Any]:
    match block:
        case v1.TextContent(text=text):
            return {"type": "text", "text": text}
        case v1.ImageContent(data=data, mime_type=mime_type):
            return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}
        case v1.ResourceLink(uri=uri, name=name):
            return {"type": "text", "text": f"[@{name}]({uri})"}
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return {"type": "text", "text": f'<context ref="{uri}">\n{text}\n</context>'}
    return {"type": "text", "text": "(a part of the prompt that this agent cannot read)"}


def as_blocks(content: Any) -> list[claude.Block]:
    texts = [block.get("text", "") for block in content or () if isinstance(block, dict)]
    return [claude.TextBlock(text=text) for text in texts]


def as_plan_entry(todo: dict[str, Any]) -> v1.PlanEntry:
    return v1.PlanEntry(content=todo.get("content", ""), priority="medium", status=todo.get("status", "pending"))


def as_acp_command(command: claude.SlashCommand) -> v1.AvailableCommand:
    return v1.AvailableCommand(name=command.name, description=command.description)


@asynccontextmanager
async def beside(work: Any) -> AsyncIterator[None]:
    """Run `work` while the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


if __name__ == "__main__":
    acprt.run(agent)
