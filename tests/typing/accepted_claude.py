"""What a user of `acprt.claude` may write as it stands: `mypy --strict` must have nothing to say."""

from __future__ import annotations

from typing import Any, assert_type

import acprt
from acprt import claude


async def ask(request: claude.CanUseTool) -> claude.Allow | claude.Deny:
    if request.tool_name == "Bash":
        return claude.Allow(updated_input=request.input, updated_permissions=request.permission_suggestions)
    return claude.Deny(message="no", interrupt=True)


async def hook(event: dict[str, Any], tool_use_id: str | None) -> claude.HookOutput:
    return claude.HookOutput(continue_=tool_use_id is not None)


def shown(message: claude.Message) -> str:
    match message:
        case claude.AssistantMessage(content=[claude.TextBlock(text=text), *_]):
            return text
        case claude.StreamEvent() | claude.AssistantMessage():
            return message.text
        case claude.TaskNotificationMessage(handback_report=claude.HandbackReport(warning=str(warning))):
            return warning
        case claude.ResultMessage(result=str(result)):
            return result
        case claude.UnknownMessage(raw=raw):
            return str(raw)
    return message.type


async def main() -> None:
    process = claude.ClaudeProcess("claude", cwd=".", allowed_tools=["Read"], limits=acprt.Limits())
    hooks = {"PreToolUse": [claude.Hook(hook, matcher="Bash")]}
    servers = {"files": acprt.Endpoint("files")}
    async with claude.connect(process, can_use_tool=ask, hooks=hooks, mcp_servers=servers) as cli:
        turn = cli.prompt("hello")
        async for message in turn:
            shown(message)
        assert_type(turn.result, claude.ResultMessage | None)
        assert_type(await cli.prompt([claude.TextBlock(text="x")]).text(), str)
        assert_type(await cli.interrupt(), claude.InterruptReceipt)
        assert_type(await cli.send(claude.GetTaskOutput(task_id="t")), claude.TaskOutput)
        assert_type(await cli.set_permission_mode("plan"), str)
        assert_type(cli.tasks.activity(), list[claude.Task])
        task = cli.tasks.tasks["t"]
        if task.notification is not None:
            assert_type(cli.tasks.display(task.notification), str | None)
        async for between in cli.messages():
            shown(between)


def test() -> None:
    message = claude.decode(b"{}")
    assert_type(message, claude.Message)
    assert_type(claude.encode(message), bytes)
