"""Runs examples/claude_as_acp.py as an ACP client would, with the fake in the place of the command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.arrivals import Arrivals

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "claude_as_acp.py"
FAKE = [sys.executable, "-m", "acprt.testing.fake_claude"]


@asynccontextmanager
async def session_of_example(
    answer: Any = acp.allow_first, **env: str
) -> AsyncIterator[tuple[Any, Any, Arrivals[Any]]]:
    """A session with the example, its connection, and every update that its client hears."""
    client = acp.Client("test", version="0")
    heard: Arrivals[Any] = Arrivals()

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        heard.append(request)
        outcome = answer(request)
        response: v1.RequestPermissionResponse = await outcome if asyncio.iscoroutine(outcome) else outcome
        return response

    @client.on_receive_notification
    async def update(note: v1.SessionNotification) -> acprt.Handled:
        heard.append(note.update)
        return acprt.Handled.no(note)  # the session wants it, too

    command = [sys.executable, "-W", "error", str(EXAMPLE), *FAKE]
    process = acprt.AgentProcess(*command, env={"PYTHONPATH": str(ROOT)} | env)
    async with client.connect(process) as cx:
        await acp.initialize(cx)
        async with acp.session(cx, cwd=str(ROOT)) as session:
            yield session, cx, heard


async def play(session: Any, prompt: str) -> list[Any]:
    """The updates of a whole turn."""
    return [update async for update in session.prompt(prompt)]


def tool_updates(updates: list[Any], id: str) -> list[Any]:
    return [u for u in updates if isinstance(u, v1.ToolCall | v1.ToolCallUpdate) and u.tool_call_id == id]


def completion_of(id: str) -> Callable[[Any], bool]:
    """Whether an update is the one that completes a tool call."""
    return lambda update: any(u.status == "completed" for u in tool_updates([update], id))


def said(updates: list[Any], kind: type[Any]) -> str:
    """The text of chunks of one kind."""
    return "".join(update.content.text for update in updates if isinstance(update, kind))


def shown(update: Any) -> list[Any]:
    """The content of a tool call, as text where it is text."""
    return [item.content.text if isinstance(item.content, v1.TextContent) else item.content for item in update.content]


class TestClaudeAsAcp:
    def test_text_and_thoughts_are_streamed_once(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                updates = await play(session, "hello")
                text, thought = said(updates, v1.AgentMessageChunk), said(updates, v1.AgentThoughtChunk)
                assert (text, thought) == ("Hello, I am a fake. ", "A greeting. ")
                assert session.stop_reason == "end_turn"

        run(main(), timeout=40)

    def test_allowed_tool_call_is_asked_shown_and_completed(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, heard):
                updates = tool_updates(await play(session, "tool ls"), "toolu_1")
                assert [u.status for u in updates] == ["in_progress", "completed"]
                assert (updates[0].kind, updates[0].raw_input["command"]) == ("execute", "ls")
                assert shown(updates[1]) == ["ran ls"]
                (asked,) = [each for each in heard if isinstance(each, v1.RequestPermissionRequest)]
                assert [option.kind for option in asked.options] == ["allow_once", "allow_always", "reject_once"]
                assert asked.tool_call.tool_call_id == "toolu_1"

        run(main(), timeout=40)

    def test_refused_tool_call_fails_and_the_turn_goes_on(self, run) -> None:
        async def main() -> None:
            async with session_of_example(acp.reject) as (session, _cx, _heard):
                updates = tool_updates(await play(session, "tool ls"), "toolu_1")
                assert updates[-1].status == "failed"
                assert session.stop_reason == "end_turn"

        run(main(), timeout=40)

    def test_todo_list_is_a_plan(self, run) -> None:
        """And no tool call: the client must not hear of the end of one that it was never told of."""

        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                updates = await play(session, "todo")
                (plan,) = [u for u in updates if isinstance(u, v1.Plan)]
                assert not [u for u in updates if isinstance(u, v1.ToolCall | v1.ToolCallUpdate)]
                assert [(e.content, e.status) for e in plan.entries] == [
                    ("Read", "completed"),
                    ("Write", "in_progress"),
                ]

        run(main(), timeout=40)

    def test_cancel_interrupts_the_command(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                async with session.prompt("wait") as turn:
                    await anext(turn)
                    turn.cancel()
                    async for _update in turn:
                        pass
                assert turn.stop_reason == "cancelled"
                assert await session.prompt("say on").text() == "on "

        run(main(), timeout=40)

    def test_cancel_withdraws_an_open_question(self, run) -> None:
        async def main() -> None:
            asked = asyncio.Event()

            async def never(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                asked.set()
                await asyncio.Event().wait()
                raise AssertionError("it waits for ever")

            async with session_of_example(never) as (session, _cx, _heard), session.prompt("tool ls") as turn:
                reading = asyncio.create_task(_rest(turn))
                await asked.wait()
                turn.cancel()
                await reading
                assert turn.stop_reason == "cancelled"

        async def _rest(turn: Any) -> None:
            async for _update in turn:
                pass

        run(main(), timeout=40)

    @pytest.mark.parametrize(
        ("prompt", "stop_reason"), [("max-turns", "max_turn_requests"), ("refusal", "refusal"), ("say x", "end_turn")]
    )
    def test_stop_reasons(self, run, prompt: str, stop_reason: str) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                await play(session, prompt)
                assert session.stop_reason == stop_reason

        run(main(), timeout=40)

    @pytest.mark.parametrize(
        ("prompt", "code"), [("auth", acprt.ErrorCode.AUTH_REQUIRED), ("api-error", acprt.ErrorCode.INTERNAL_ERROR)]
    )
    def test_failures_are_errors(self, run, prompt: str, code: int) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                with pytest.raises(acprt.RpcError) as caught:
                    await play(session, prompt)
                assert caught.value.code == code

        run(main(), timeout=40)

    def test_background_shell_ends_on_the_call_that_started_it(self, run) -> None:
        """Between prompts, and what it wakes is said, too."""

        async def main() -> None:
            async with session_of_example() as (session, _cx, heard):
                updates = await play(session, "shell 0.2")
                assert tool_updates(updates, "toolu_b")[-1].status == "in_progress"
                await heard.first(lambda u: "Noted:" in said([u], v1.AgentMessageChunk))
                end = tool_updates(heard, "toolu_b")[-1]
                assert (end.status, shown(end)) == ("completed", ['Background command "bg" completed (exit code 0)'])

        run(main(), timeout=40)

    def test_resumed_agent_ends_on_each_call_and_a_late_end_changes_nothing(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, heard):
                for prompt, call in (("agent 0", "toolu_call_a"), ("resume 0", "toolu_call_b")):
                    await play(session, prompt)
                    await heard.first(completion_of(call))
                await play(session, "late")
                assert [u.status for u in tool_updates(heard, "toolu_call_b")][-1] == "completed"
                assert not [u for u in heard if isinstance(u, v1.ToolCallUpdate) and u.status == "failed"]

        run(main(), timeout=40)

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("send", "The report."),
            ("flagged", "Careful!\n\nThe report."),
            ("withheld", "Nothing was handed back."),
            ("bare", "notes for the model"),
        ],
    )
    def test_handed_back_report_is_shown_in_the_place_of_the_summary(self, run, kind: str, text: str) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                end = tool_updates(await play(session, f"handback {kind}"), "toolu_h0")[-1]
                assert (end.status, shown(end)) == ("completed", [text])

        run(main(), timeout=40)

    def test_links_of_a_task_are_links(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                end = tool_updates(await play(session, "links"), "toolu_m")[-1]
                assert shown(end) == ["1 file", v1.ResourceLink(uri="file:///a", name="a")]

        run(main(), timeout=40)

    def test_commands_and_modes_are_offered_and_a_mode_is_set(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, cx, heard):
                commands = await heard.first(lambda u: isinstance(u, v1.AvailableCommandsUpdate))
                assert [command.name for command in commands.available_commands] == ["compact"]
                await cx.send_request(v1.SetSessionModeRequest(session_id=session.id, mode_id="plan")).block_task()
                assert await heard.first(lambda u: u == v1.CurrentModeUpdate(current_mode_id="plan"))

        run(main(), timeout=40)

    def test_command_that_ends_in_mid_turn_is_an_error_with_its_last_words(self, run) -> None:
        async def main() -> None:
            async with session_of_example() as (session, _cx, _heard):
                with pytest.raises(acprt.RpcError, match="fatal: it broke"):
                    await play(session, "crash")

        run(main(), timeout=40)
