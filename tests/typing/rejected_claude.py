"""What a user of `acprt.claude` may get wrong: each marked line must be rejected with that error, and no other line."""

from __future__ import annotations

from acprt import claude

claude.decode(7)  # type: ignore[arg-type]  # text or bytes
claude.encode({"type": "user"})  # type: ignore[arg-type]  # a message
claude.Deny()  # type: ignore[call-arg]  # the model is told why
claude.Allow(updatedInput={})  # type: ignore[call-arg]  # the wire's name
claude.ClaudeProcess("claude", resume=True)  # type: ignore[arg-type]  # the id of a session
claude.ElicitationAnswer(action="maybe")  # type: ignore[arg-type]  # none of the actions
claude.TaskNotificationMessage(task_id="t")  # type: ignore[call-arg]  # whose, and how it ended


async def yes(request: claude.CanUseTool) -> bool:
    return request.tool_name == "Read"


async def turns(cli: claude.ClaudeClient) -> None:
    claude.connect(claude.ClaudeProcess("claude"), can_use_tool=yes)  # type: ignore[arg-type]  # Allow or Deny
    await cli.prompt("text")  # type: ignore[misc]  # it says what to wait for: text() or finished()
    await cli.send("interrupt")  # type: ignore[arg-type]  # that is `control`
    (await cli.interrupt()).queued  # type: ignore[attr-defined]  # noqa: B018  # still_queued
