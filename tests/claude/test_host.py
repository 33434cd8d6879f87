"""What the command asks of its host: permissions, hooks, MCP servers, elicitations, dialogs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt import claude, mcp
from tests.claude.talking import fake_client, raw_client, read, texts
from tests.rawpeer import turns


def results(messages: list[claude.Message]) -> list[Any]:
    """The tool results of a turn."""
    users = [m for m in messages if isinstance(m, claude.UserMessage) and isinstance(m.content, list)]
    return [block for m in users for block in m.content if isinstance(block, claude.ToolResultBlock)]


class TestPermissions:
    def test_allowed_call_runs_and_a_refused_one_does_not(self, run) -> None:
        async def main() -> None:
            asked: list[claude.CanUseTool] = []

            async def ask(request: claude.CanUseTool) -> claude.Allow | claude.Deny:
                asked.append(request)
                return claude.Allow() if request.tool_use_id == "toolu_1" else claude.Deny(message="not this one")

            async with fake_client(can_use_tool=ask) as (cli, fake):
                turn = cli.prompt("two-tools")
                first, second = results(await read(turn))
                assert (first.content, first.is_error) == ("ran first", None)
                assert (second.content, second.is_error) == ("not this one", True)
                assert turn.result is not None
                assert [denial.tool_use_id for denial in turn.result.permission_denials] == ["toolu_2"]
                assert (asked[0].tool_name, asked[0].blocked_path) == ("Bash", "/src/f")
                answer = next(f["response"] for f in fake.received if f["type"] == "control_response")
                assert answer["response"]["updatedInput"] == {"command": "first", "description": "make a file"}

        run(main())

    def test_input_may_be_changed_and_rules_added(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                return claude.Allow(
                    updated_input=request.input | {"command": "ls"}, updated_permissions=request.permission_suggestions
                )

            async with fake_client(can_use_tool=ask) as (cli, fake):
                assert results(await read(cli.prompt("tool rm -rf /")))[0].content == "ran ls"
                answer = next(f["response"] for f in fake.received if f["type"] == "control_response")
                assert answer["response"]["updatedPermissions"][0]["type"] == "addRules"
                assert answer["response"]["behavior"] == "allow"

        run(main())

    def test_question_to_the_user_is_answered_in_the_input(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                assert request.requires_user_interaction
                return claude.Allow(updated_input=request.input | {"answers": {"Which?": "a"}})

            async with fake_client(can_use_tool=ask) as (cli, _fake):
                assert results(await read(cli.prompt("question")))[0].content == "answers: {'Which?': 'a'}"

        run(main())

    def test_refusal_may_end_the_turn(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Deny:
                return claude.Deny(message="stop it all", interrupt=True)

            async with fake_client(can_use_tool=ask) as (cli, _fake):
                turn = cli.prompt("two-tools")
                await read(turn)
                assert turn.outcome == "cancelled"
                assert turn.result is not None
                assert turn.result.terminal_reason == "aborted_tools"

        run(main())

    @pytest.mark.parametrize("answer", [None, True, {"behavior": "allow"}, "allow"])
    def test_answer_of_the_wrong_type_is_an_error_and_the_session_lives(
        self, run, answer: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> Any:
                return answer

            async with fake_client(can_use_tool=ask) as (cli, _fake):
                (refused,) = results(await read(cli.prompt("tool")))
                assert refused.is_error
                assert f"can_use_tool returned {type(answer).__name__}" in refused.content
                assert f"can_use_tool returned {type(answer).__name__}" in caplog.text
                assert await cli.prompt("say on").text() == "on"

        run(main())

    def test_callback_that_fails_is_an_error_and_the_session_lives(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                raise LookupError("a secret of this process")

            async with fake_client(can_use_tool=ask) as (cli, _fake):
                (refused,) = results(await read(cli.prompt("tool")))
                assert refused.is_error
                assert "secret" not in refused.content
                assert await cli.prompt("say on").text() == "on"

        run(main())

    def test_callback_that_is_no_coroutine_function_is_told_apart(self, run, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            ask: Any = lambda request: claude.Allow()  # noqa: E731
            async with fake_client(can_use_tool=ask) as (cli, _fake):
                (refused,) = results(await read(cli.prompt("tool")))
                assert refused.is_error
                assert "async def" in caplog.text
            with pytest.raises(TypeError, match="can_use_tool is an async function"):
                async with fake_client(can_use_tool=True):
                    pass

        run(main())

    def test_interrupt_cancels_the_open_ask(self, run) -> None:
        """Cancel, receipt, marker, result; the answer that comes all the same is never written."""

        async def main() -> None:
            asked, cancelled = asyncio.Event(), asyncio.Event()

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                asked.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.set()
                    return claude.Allow()  # too late: nobody waits
                raise AssertionError("it waits for ever")

            async with fake_client(can_use_tool=ask) as (cli, fake):
                turn = cli.prompt("tool")
                reading = asyncio.create_task(read(turn))
                await asked.wait()
                await cli.interrupt()
                await cancelled.wait()
                messages = await reading
                assert turn.outcome == "cancelled"
                assert isinstance(messages[-2], claude.UserMessage)
                assert claude.text_of(messages[-2].content) == "[Request interrupted by user for tool use]"
                assert await cli.prompt("say on").text() == "on"
                assert fake.unmatched == []

        run(main())

    def test_ask_waits_as_long_as_a_human_needs(self, run) -> None:
        """No limit of the connection is a limit of the ask."""

        async def main() -> None:
            gate = asyncio.Event()

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                await gate.wait()
                return claude.Allow()

            limits = acprt.Limits(drain_seconds=0.01, cancel_grace_seconds=0.01, slow_handler_seconds=0.01)
            async with fake_client(can_use_tool=ask, limits=limits, timeout=5) as (cli, _fake):
                reading = asyncio.create_task(read(cli.prompt("tool")))
                asyncio.get_running_loop().call_later(0.1, gate.set)
                assert results(await reading)[0].content == "ran touch f"

        run(main())

    def test_without_a_callback_the_command_refuses_and_says_so(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                messages = await read(cli.prompt("tool"))
                assert [m.tool_name for m in messages if isinstance(m, claude.PermissionDeniedMessage)] == ["Bash"]
                assert results(messages)[0].is_error

        run(main())

    def test_asks_after_the_first_result_are_still_answered(self, run) -> None:
        """stdin stays open: nobody is told "Stream closed"."""

        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                return claude.Allow()

            async with raw_client(can_use_tool=ask) as (cli, peer):
                reading = asyncio.create_task(read(cli.prompt("go")))
                peer.result(await peer.prompt())
                await reading
                peer.ask("late", "can_use_tool", tool_name="Bash", input={})
                assert (await peer.receive())["response"]["response"]["behavior"] == "allow"

        run(main())


class TestHooks:
    async def _hooked(self, *hooks: claude.Hook) -> list[str]:
        async with fake_client(hooks={"PreToolUse": hooks}) as (cli, _fake):
            said = texts(await read(cli.prompt("hook")))
            assert await cli.prompt("say on").text() == "on"
            return said

    def test_hooks_are_called_with_their_event(self, run) -> None:
        seen: list[Any] = []

        async def hook(input: dict[str, Any], tool_use_id: str | None) -> claude.HookOutput:
            seen.append((input["hook_event_name"], tool_use_id))
            return claude.HookOutput(continue_=False, async_=True, system_message="m")

        said = run(self._hooked(claude.Hook(hook), claude.Hook(hook, matcher="Bash")))
        assert seen == [("PreToolUse", "toolu_1")] * 2
        assert said == ["hook: {'continue': False, 'systemMessage': 'm', 'async': True}"] * 2

    @pytest.mark.parametrize(
        ("output", "told"),
        [
            (None, "{}"),
            (
                {"continue_": True, "async_": False, "decision": "block"},
                "{'continue': True, 'async': False, 'decision'",
            ),
            (7, "error: Internal error: a hook returned int"),
        ],
    )
    def test_output_is_a_struct_a_mapping_or_nothing(self, run, output: Any, told: str) -> None:
        """Names that Python keeps for itself are those of the wire on the wire."""

        async def hook(input: dict[str, Any], tool_use_id: str | None) -> Any:
            return output

        (said,) = run(self._hooked(claude.Hook(hook)))
        assert told in said

    @pytest.mark.parametrize(
        "hooks",
        [print, [print], claude.Hook(callback=print)],  # type: ignore[arg-type]  # that they are refused is the point
    )
    def test_what_is_no_list_of_hooks_is_refused(self, run, hooks: Any) -> None:
        async def main() -> None:
            with pytest.raises(TypeError, match=r"hooks\['Stop'\] is a list of claude\.Hook"):
                async with fake_client(hooks={"Stop": hooks}):
                    pass

        run(main())

    def test_hook_that_takes_too_long_is_cancelled(self, run) -> None:
        cancelled: list[bool] = []

        async def hook(input: dict[str, Any], tool_use_id: str | None) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(True)

        assert run(self._hooked(claude.Hook(hook, timeout=0.05))) == ["hook: timeout"]
        assert cancelled == [True]


class TestMcpServers:
    @staticmethod
    def _server() -> acprt.Endpoint:
        server = acprt.Endpoint("files")

        @server.method("initialize")
        async def initialize(params: Any) -> Any:
            return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "files"}}

        @server.method("tools/list")
        async def tools(params: Any) -> Any:
            return {"tools": [{"name": "find"}]}

        @server.method("fails")
        async def fails(params: Any) -> Any:
            raise acprt.RpcError.invalid_params("no")

        return server

    def test_server_is_greeted_before_initialize_is_answered(self, run) -> None:
        """And serves what the model calls."""

        async def main() -> None:
            async with fake_client(mcp_servers={"files": self._server()}) as (cli, fake):
                (said,) = texts(await read(cli.prompt("mcp files")))
                assert "'tools': [{'name': 'find'}]" in said
                assert fake.initialize["sdkMcpServers"] == ["files"]
                (acknowledged,) = [f for f in fake.received if _mcp(f).get("id") == 0 and "result" in _mcp(f)][1:2]
                assert _mcp(acknowledged)["jsonrpc"] == "2.0"

        run(main())

    def test_error_of_a_server_is_its_answer(self, run) -> None:
        async def main() -> None:
            async with raw_client(mcp_servers={"files": self._server()}) as (_cli, peer):
                peer.ask(
                    "1", "mcp_message", server_name="files", message={"jsonrpc": "2.0", "id": 4, "method": "fails"}
                )
                answer = (await peer.receive())["response"]["response"]["mcp_response"]
                assert (answer["id"], answer["error"]["code"]) == (4, -32602)

        run(main())

    def test_unknown_server_and_broken_message_are_errors(self, run) -> None:
        async def main() -> None:
            async with raw_client(mcp_servers={"files": self._server()}) as (_cli, peer):
                peer.ask("1", "mcp_message", server_name="none", message={"jsonrpc": "2.0", "id": 4, "method": "x"})
                peer.ask("2", "mcp_message", server_name="files", message={"no": "message"})
                answers = [(await peer.receive())["response"] for _ in range(2)]
                assert [answer["subtype"] for answer in answers] == ["error", "error"]

        run(main())

    def test_server_that_has_ended_fails_what_is_asked_of_it(self, run) -> None:
        async def main() -> None:
            server = acprt.Endpoint("gone")

            @server.on_receive_notification("end")
            async def end(params: Any, cx: acprt.Connection) -> None:
                await cx.aclose()

            async with raw_client(mcp_servers={"gone": server}) as (_cli, peer):
                peer.ask("1", "mcp_message", server_name="gone", message={"jsonrpc": "2.0", "method": "end"})
                assert (await peer.receive())["response"]["subtype"] == "success"
                await turns()
                peer.ask("2", "mcp_message", server_name="gone", message={"jsonrpc": "2.0", "id": 1, "method": "x"})
                answer = (await peer.receive())["response"]
                assert (answer["subtype"], answer["request_id"]) == ("error", "2")
                assert "gone" in answer["error"]

        run(main())

    def test_server_may_speak_first(self, run) -> None:
        async def main() -> None:
            server = self._server()

            @server.on_receive_notification("notifications/initialized")
            async def ready(params: Any, cx: acprt.Connection) -> None:
                cx.send_notification("notifications/tools/list_changed")

            async with raw_client(mcp_servers={"files": server}) as (_cli, peer):
                message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                peer.ask("1", "mcp_message", server_name="files", message=message)
                frames = [await peer.receive(), await peer.receive()]
                asked = next(frame for frame in frames if frame["type"] == "control_request")
                assert asked["request"] == {
                    "subtype": "mcp_message",
                    "server_name": "files",
                    "message": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
                }
                peer.accept(asked["request_id"])

        run(main())

    def test_cancel_reaches_the_server(self, run) -> None:
        async def main() -> None:
            entered, heard = asyncio.Event(), asyncio.Event()
            server = acprt.Endpoint("slow")

            @server.method("tools/call")
            async def call(params: Any) -> Any:
                entered.set()
                await asyncio.Event().wait()

            @server.on_receive_notification("notifications/cancelled")
            async def cancelled(params: Any) -> None:
                assert params == {"requestId": 4}
                heard.set()

            async with raw_client(mcp_servers={"slow": server}) as (_cli, peer):
                peer.ask(
                    "1", "mcp_message", server_name="slow", message={"jsonrpc": "2.0", "id": 4, "method": "tools/call"}
                )
                await entered.wait()
                peer.cancel_ask("1")
                await heard.wait()
                assert await peer.silent()

        run(main())

    def test_request_that_its_mcp_client_cancels_is_waited_for_no_longer(self, run) -> None:
        """An MCP server says nothing more of it; the id is free, and a cancel of the opening changes nothing."""

        async def main() -> None:
            entered, ended, go = asyncio.Event(), asyncio.Event(), asyncio.Event()
            server = acprt.Endpoint("slow", dialect=mcp.negotiated("server"))

            @server.method("initialize")
            async def initialize(params: Any) -> Any:
                entered.set()
                await go.wait()
                return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "slow"}}

            @server.method("tools/call")
            async def call(params: Any) -> Any:
                entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()

            @server.method("tools/list")
            async def tools(params: Any) -> Any:
                return {"tools": []}

            async with raw_client(mcp_servers={"slow": server}) as (cli, peer):

                def ask(ask_id: str, **message: Any) -> None:
                    peer.ask(ask_id, "mcp_message", server_name="slow", message={"jsonrpc": "2.0"} | message)

                async def cancel(id: str, request: Any) -> list[dict[str, Any]]:
                    ask(id, method="notifications/cancelled", params={"requestId": request, "reason": "user"})
                    frames = [(await peer.receive())["response"]]
                    while frames[-1]["request_id"] != id:
                        frames.append((await peer.receive())["response"])
                    return frames

                ask("1", id=0, method="initialize", params={"protocolVersion": "2025-11-25"})
                await entered.wait()
                assert [frame["request_id"] for frame in await cancel("2", 0)] == ["2"]
                go.set()
                assert _mcp(await peer.receive())["id"] == 0
                entered.clear()

                ask("3", id=4, method="tools/call")
                await entered.wait()
                frames = await cancel("4", 4)
                if len(frames) == 1:
                    frames.append((await peer.receive())["response"])
                assert {"subtype": "error", "request_id": "3", "error": "Request cancelled"} in frames
                await ended.wait()
                assert not cli.connection.status().in_flight

                ask("5", id=4, method="tools/list")
                assert _mcp(await peer.receive()) == {"jsonrpc": "2.0", "id": 4, "result": {"tools": []}}
                for odd in (None, [4], True, 4.5):
                    assert len(await cancel("6", odd)) == 1

        run(main())

    def test_answer_that_is_too_long_is_an_error_for_who_waits(self, run) -> None:
        async def main() -> None:
            server = acprt.Endpoint("large")

            @server.method("resources/read")
            async def read_resource(params: Any) -> Any:
                return {"text": "x" * 200_000}

            limits = acprt.Limits(line_bytes=100_000)
            async with raw_client(mcp_servers={"large": server}, limits=limits) as (_cli, peer):
                message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
                peer.ask("1", "mcp_message", server_name="large", message=message)
                response = (await peer.receive())["response"]
                assert response["subtype"] == "error"
                assert "line_bytes" in response["error"]

        run(main())


def _mcp(frame: dict[str, Any]) -> dict[str, Any]:
    response = frame.get("response", {}).get("response", {})
    message: dict[str, Any] = response.get("mcp_response", {}) if isinstance(response, dict) else {}
    return message


class TestOtherAsks:
    def test_elicitation(self, run) -> None:
        async def main() -> None:
            async def elicit(request: claude.Elicitation) -> claude.ElicitationAnswer:
                assert (request.mcp_server_name, request.message) == ("forms", "Your name?")
                return claude.ElicitationAnswer(action="accept", content={"name": "Ada"})

            async with fake_client(on_elicitation=elicit) as (cli, _fake):
                (said,) = texts(await read(cli.prompt("elicit")))
                assert said == "elicited: {'action': 'accept', 'content': {'name': 'Ada'}}"

        run(main())

    def test_declared_dialog_is_shown_and_another_one_is_left_unanswered(self, run) -> None:
        async def main() -> None:
            async def refusal(request: claude.RequestUserDialog) -> claude.UserDialogAnswer:
                return claude.UserDialogAnswer(behavior="completed", result=request.dialog_kind)

            async with fake_client(dialogs={"refusal": refusal}) as (cli, fake):
                assert fake.initialize["supportedDialogKinds"] == ["refusal"]
                said = texts(await read(cli.prompt("dialog refusal")))
                assert said == ["dialog: {'behavior': 'completed', 'result': 'refusal'}"]
                assert texts(await read(cli.prompt("dialog other"))) == ["dialog: silence"]

        run(main())

    def test_unknown_ask_is_refused(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                assert texts(await read(cli.prompt("odd"))) == ["odd: unsupported control request: read_mind"]

        run(main())
