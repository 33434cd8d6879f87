"""What an agent tells while it works: builders that take plain text and paths, and a handle that sends."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from acprt import acp
from acprt.acp import updates, v1
from tests.acp.talking import prompt_params, ready_client_of
from tests.rawpeer import RawPeer


class TestBuilders:
    def test_text_stands_for_a_text_block(self) -> None:
        assert updates.agent_message("hi") == v1.AgentMessageChunk(content=v1.TextContent(text="hi"))
        assert updates.agent_thought("hm").content == v1.TextContent(text="hm")
        assert updates.user_message("so", message_id="m") == v1.UserMessageChunk(
            content=v1.TextContent(text="so"), message_id="m"
        )
        link = v1.ResourceLink(name="notes", uri="file:///notes")
        assert updates.agent_message(link).content is link

    def test_tool_call_takes_text_paths_and_lines(self) -> None:
        call = updates.tool_call(
            "Edit",
            id="c",
            kind="edit",
            content=["text", v1.ImageContent(data="", mime_type="image/png"), updates.diff("/a", "new")],
            locations=["/a", ("/b", 7), v1.ToolCallLocation(path="/c")],
            raw_input={"n": 1},
        )
        assert msgspec.to_builtins(call) == {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "Edit",
            "kind": "edit",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "text"}},
                {"type": "content", "content": {"type": "image", "data": "", "mimeType": "image/png"}},
                {"type": "diff", "path": "/a", "newText": "new"},
            ],
            "locations": [{"path": "/a"}, {"path": "/b", "line": 7}, {"path": "/c"}],
            "rawInput": {"n": 1},
        }

    def test_tool_calls_without_an_id_get_one_of_their_own(self) -> None:
        assert updates.tool_call("a").tool_call_id != updates.tool_call("a").tool_call_id

    def test_update_says_only_what_changed(self) -> None:
        call = updates.tool_call("Edit", id="c")
        assert msgspec.to_builtins(updates.tool_call_update(call, status="completed", raw_output=None)) == {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "completed",
            "rawOutput": None,
        }
        assert updates.tool_call_update("c", content=[]).content == []

    def test_plan_takes_text_for_a_pending_step(self) -> None:
        done = v1.PlanEntry(content="first", priority="high", status="completed")
        assert updates.plan(done, "second").entries == [
            done,
            v1.PlanEntry(content="second", priority="medium", status="pending"),
        ]

    def test_question_repeats_what_a_client_shows(self) -> None:
        """The call may not have been told of yet."""
        call = updates.tool_call("Write", id="c", kind="edit", locations=["/a"])
        request = updates.permission_request("s", call)
        assert (request.session_id, request.tool_call.title, request.tool_call.kind) == ("s", "Write", "edit")
        assert request.tool_call.locations == [v1.ToolCallLocation(path="/a")]
        assert [option.kind for option in request.options] == ["allow_once", "allow_always", "reject_once"]
        assert updates.permission_request("s", "c").tool_call == v1.ToolCallPatch(tool_call_id="c")
        only = v1.PermissionOption(option_id="o", name="Only", kind="allow_once")
        assert updates.permission_request("s", "c", [only]).options == [only]


def agent_that(work: Any) -> acp.Agent:
    """An agent whose prompts do `work(say)`."""
    agent = acp.Agent("worker")

    @agent.method
    async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
        await work(acp.SessionUpdates(cx, request.session_id))
        return v1.PromptResponse(stop_reason="end_turn")

    return agent


async def told(client: RawPeer) -> Any:
    """The next update of the session."""
    line = await client.receive()
    assert (line["method"], line["params"]["sessionId"]) == ("session/update", "s")
    return line["params"]["update"]


class TestSessionUpdates:
    def test_all_that_is_said_leaves_in_order_before_the_answer(self, run) -> None:
        async def work(say: acp.SessionUpdates) -> None:
            say.user_message("?")
            say.message("a")
            say.thought("b")
            say.plan("c")
            say.commands(v1.AvailableCommand(name="d", description=""))
            say.send(v1.CurrentModeUpdate(current_mode_id="e"))

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                kinds = [(await told(client))["sessionUpdate"] for _ in range(6)]
                assert kinds == [
                    "user_message_chunk",
                    "agent_message_chunk",
                    "agent_thought_chunk",
                    "plan",
                    "available_commands_update",
                    "current_mode_update",
                ]
                assert (await client.receive())["result"] == {"stopReason": "end_turn"}

        run(main())

    @pytest.mark.parametrize(("error", "status"), [(None, "completed"), (ValueError("x"), "failed")])
    def test_tool_call_tells_how_it_goes(self, run, error, status) -> None:
        async def work(say: acp.SessionUpdates) -> None:
            with say.tool_call("Read", id="c", kind="read") as call:
                assert call.id == "c"
                call.update(content=["text"])
                if error is not None:
                    raise error

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                assert (await told(client))["sessionUpdate"] == "tool_call"
                steps = [await told(client) for _ in range(3)]
                assert [step.get("status") for step in steps] == ["in_progress", None, status]
                assert {step["toolCallId"] for step in steps} == {"c"}
                await client.receive()

        run(main())

    def test_end_that_was_told_is_not_told_again(self, run) -> None:
        async def work(say: acp.SessionUpdates) -> None:
            with say.tool_call("Read", id="c") as call:
                call.update(status="failed", raw_output={"code": 1})

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                steps = [await told(client) for _ in range(3)]
                assert [step.get("status") for step in steps] == [None, "in_progress", "failed"]
                assert (await client.receive())["id"] == 1

        run(main())


class TestAsking:
    @pytest.mark.parametrize(
        ("outcome", "kind"),
        [
            ({"outcome": "selected", "optionId": "allow_always"}, "allow_always"),
            ({"outcome": "selected", "optionId": "reject_once"}, "reject_once"),
            ({"outcome": "cancelled"}, None),
        ],
    )
    def test_answer_is_the_option(self, run, outcome, kind) -> None:
        answers: list[Any] = []

        async def work(say: acp.SessionUpdates) -> None:
            answers.append(await say.ask(say.tool_call("Write", id="c")))

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                await told(client)
                question = await client.receive()
                assert question["method"] == "session/request_permission"
                assert question["params"]["toolCall"]["toolCallId"] == "c"
                client.respond(question["id"], {"outcome": outcome})
                await client.receive()

        run(main())
        assert [answer and answer.kind for answer in answers] == [kind]

    def test_option_that_was_never_offered_is_an_error(self, run) -> None:
        """Nothing is allowed by a client that makes up an id."""
        options = [v1.PermissionOption(option_id="o", name="Only", kind="allow_once")]
        errors: list[Any] = []

        async def work(say: acp.SessionUpdates) -> None:
            try:
                await say.ask(updates.tool_call("Write", id="c"), options)
            except acprt.RpcError as error:
                errors.append(error.data)

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                question = await client.receive()
                assert [option["optionId"] for option in question["params"]["options"]] == ["o"]
                client.respond(question["id"], {"outcome": {"outcome": "selected", "optionId": "x"}})
                await client.receive()

        run(main())
        assert errors == [{"reason": "unknown_option", "optionId": "x"}]

    def test_question_of_a_cancelled_turn_is_taken_back(self, run) -> None:
        ended = asyncio.Event()

        async def work(say: acp.SessionUpdates) -> None:
            try:
                await say.ask(updates.tool_call("Write", id="c"))
            finally:
                ended.set()

        async def main() -> None:
            async with ready_client_of(agent_that(work)) as client:
                client.request(1, "session/prompt", prompt_params())
                question = await client.receive()
                client.notify("session/cancel", {"sessionId": "s"})
                assert (await client.receive())["params"] == {"requestId": question["id"]}
                assert (await client.receive())["result"] == {"stopReason": "cancelled"}
                assert ended.is_set()

        run(main())
