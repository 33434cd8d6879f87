"""The control protocol on the wire: envelopes both ways, ids, cancels, errors, and lines that are damaged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies

import acprt
from acprt import claude
from acprt.claude.dialect import ClaudeDialect
from acprt.wire.frames import MalformedFrame, NotificationFrame, RequestFrame, ResponseFrame
from acprt.wire.lines import LineSplitter
from tests.claude.recorded import FRAMES
from tests.claude.talking import raw_client, read
from tests.rawpeer import turns


class TestRequestsToTheCommand:
    def test_request_has_the_envelope_and_an_id_of_its_own(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                first = asyncio.create_task(cli.interrupt())
                second = asyncio.create_task(cli.set_permission_mode("plan"))
                asked = [await peer.receive(), await peer.receive()]
                assert [frame["type"] for frame in asked] == ["control_request"] * 2
                assert [frame["request"] for frame in asked] == [
                    {"subtype": "interrupt"},
                    {"subtype": "set_permission_mode", "mode": "plan"},
                ]
                ids = [frame["request_id"] for frame in asked]
                assert all(isinstance(id, str) for id in ids)
                assert len(set(ids)) == 2
                peer.accept(ids[1], {"mode": "acceptEdits"})  # in any order; the mode need not be the one asked for
                peer.accept(ids[0], {"still_queued": ["u"]})
                assert (await first).still_queued == ["u"]
                assert await second == "acceptEdits"

        run(main())

    def test_initialize_has_what_the_host_brings_and_its_answer_has_what_stands_beside(self, run) -> None:
        async def main() -> None:
            async def hook(input: dict[str, Any], tool_use_id: str | None) -> None: ...

            near, far = acprt.memory_pair(left_is_parent=True)
            from tests.claude.talking import RawCommand

            peer = RawCommand(far)

            async def command() -> None:
                frame = await peer.receive()
                assert frame["request"] == {
                    "subtype": "initialize",
                    "hooks": {"Stop": [{"hookCallbackIds": ["hook_0"], "matcher": "Bash", "timeout": 5.0}]},
                    "sdkMcpServers": ["files"],
                    "supportedDialogKinds": ["refusal"],
                    "agents": {"big": {"prompt": "x" * 300_000}},
                    "perTaskStopAffordance": True,
                }
                response = {"subtype": "success", "request_id": frame["request_id"], "response": {"output_style": "o"}}
                beside = {"pending_permission_requests": [{"request_id": "p"}], "pending_user_dialog_requests": []}
                peer.send({"type": "control_response", "response": response | beside})

            async def dialog(request: claude.RequestUserDialog) -> Any: ...

            answering = asyncio.create_task(command())
            async with claude.connect(
                near,
                hooks={"Stop": [claude.Hook(hook, matcher="Bash", timeout=5)]},
                mcp_servers={"files": acprt.Endpoint("files")},
                dialogs={"refusal": dialog},
                initialize=claude.Initialize(agents={"big": {"prompt": "x" * 300_000}}, per_task_stop_affordance=True),
            ) as cli:
                assert cli.info.output_style == "o"
                assert cli.info.pending_permission_requests == [{"request_id": "p"}]
                await answering

        run(main())

    @pytest.mark.parametrize(
        ("refusal", "code", "data"),
        [
            (("Unsupported", "unsupported_request"), -32601, {"error_code": "unsupported_request"}),
            (("Invalid mode", "invalid_mode"), -32603, {"error_code": "invalid_mode"}),
            (("No task", None), -32603, None),
        ],
    )
    def test_error_is_an_rpc_error_with_its_code(self, run, refusal: Any, code: int, data: Any) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.control("read_mind", {"of": "user"}))
                frame = await peer.receive()
                assert frame["request"] == {"subtype": "read_mind", "of": "user"}
                peer.refuse(frame["request_id"], *refusal)
                with pytest.raises(acprt.RpcError) as caught:
                    await asking
                assert (caught.value.code, caught.value.message, caught.value.data) == (code, refusal[0], data)

        run(main())

    @pytest.mark.parametrize("payload", [None, {}, {"unheard": 1}])
    def test_success_may_say_nothing(self, run, payload: Any) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.interrupt())
                peer.accept((await peer.receive())["request_id"], payload)
                assert await asking == claude.InterruptReceipt()

        run(main())

    def test_malformed_member_of_a_payload_costs_itself(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.interrupt())
                peer.accept((await peer.receive())["request_id"], {"still_queued": 7, "cancelled": ["a"]})
                assert await asking == claude.InterruptReceipt(cancelled=["a"])

        run(main())

    def test_answers_to_nothing_are_ignored(self, run) -> None:
        """Unknown ids, a second answer, no id, no body."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.interrupt())
                id = (await peer.receive())["request_id"]
                for odd in ("acprt-99", "req_1", 7, None, [1]):
                    peer.accept(odd, {"still_queued": ["wrong"]})
                peer.send(
                    {"type": "control_response"}, {"type": "control_response", "response": {"subtype": "success"}}
                )
                peer.accept(id, {"still_queued": ["right"]})
                peer.accept(id, {"still_queued": ["again"]})
                assert (await asking).still_queued == ["right"]
                assert await peer.silent()

        run(main())

    def test_requester_that_gives_up_sends_one_cancel_and_ignores_the_answer(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                with pytest.raises(TimeoutError):
                    await cli.interrupt(timeout=0.01)
                id = (await peer.receive())["request_id"]
                assert await peer.receive() == {"type": "control_cancel_request", "request_id": id}
                peer.accept(id, {})
                assert await peer.silent()
                assert cli.connection.status().counters.late_responses == 1

        run(main())

    def test_stop_of_an_unknown_task_proves_nothing(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                peer.say("system", "task_started", task_id="t", run_id="r")
                stopping = asyncio.create_task(cli.stop_task("t"))
                peer.accept((await peer.receive())["request_id"], {})
                await stopping
                assert not cli.tasks.tasks["t"].is_finished
                peer.say("system", "task_updated", task_id="t", run_id="r", patch={"status": "killed"})
                await turns()
                assert cli.tasks.tasks["t"].is_finished

        run(main())

    def test_control_traffic_passes_thousands_of_unread_messages(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer), cli.prompt("flood") as turn:
                uuid = await peer.prompt()
                peer.say("system", "init")
                for number in range(10_000):
                    peer.say("system", "status", status=str(number))
                asking = asyncio.create_task(cli.interrupt())
                peer.accept((await peer.receive())["request_id"], {"still_queued": []})
                await asking
                peer.result(uuid)
                messages = await read(turn)
                assert len(messages) == 10_002

        run(main())


class TestRequestsOfTheCommand:
    def test_unknown_request_is_refused_as_unsupported(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (_cli, peer):
                peer.ask("ask-1", "read_mind", of="user")
                assert await peer.receive() == {
                    "type": "control_response",
                    "response": {
                        "subtype": "error",
                        "request_id": "ask-1",
                        "error": "unsupported control request: read_mind",
                        "error_code": "unsupported_request",
                    },
                }

        run(main())

    def test_handlers_serve_requests_that_have_no_callback(self, run) -> None:
        async def main() -> None:
            handlers = acprt.Endpoint("more")

            @handlers.method("oauth_token_refresh")
            async def refresh(params: Any) -> Any:
                return {"token": None, "asked": params["reason"]}

            async with raw_client(handlers=handlers) as (_cli, peer):
                peer.ask("a", "oauth_token_refresh", reason="expired")
                answer = (await peer.receive())["response"]
                assert answer == {
                    "subtype": "success",
                    "request_id": "a",
                    "response": {"token": None, "asked": "expired"},
                }

        run(main())

    def test_open_asks_are_answered_in_any_order(self, run) -> None:
        async def main() -> None:
            gates = {"one": asyncio.Event(), "two": asyncio.Event()}

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                await gates[request.tool_name].wait()
                return claude.Allow()

            async with raw_client(can_use_tool=ask) as (_cli, peer):
                peer.ask("1", "can_use_tool", tool_name="one", input={"a": 1})
                peer.ask("2", "can_use_tool", tool_name="two", input={"b": 2})
                gates["two"].set()
                assert (await peer.receive())["response"]["request_id"] == "2"
                gates["one"].set()
                answer = (await peer.receive())["response"]
                assert answer["response"] == {"behavior": "allow", "updatedInput": {"a": 1}}

        run(main())

    def test_cancelled_ask_is_cancelled_and_never_answered(self, run) -> None:
        async def main() -> None:
            entered, left = asyncio.Event(), asyncio.Event()

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    left.set()
                return claude.Allow()

            async with raw_client(can_use_tool=ask) as (_cli, peer):
                peer.ask("1", "can_use_tool", tool_name="Bash", input={})
                await entered.wait()
                peer.cancel_ask("unknown")
                peer.cancel_ask("1")
                await left.wait()
                assert await peer.silent()

        run(main())

    def test_hundred_answers_at_once_are_hundred_whole_lines(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                await asyncio.sleep(0)
                return claude.Allow()

            async with raw_client(can_use_tool=ask) as (_cli, peer):
                for number in range(100):
                    peer.ask(str(number), "can_use_tool", tool_name="T", input={"text": "x\ny" * 5_000})
                answers = [await peer.receive() for _ in range(100)]
                assert {answer["response"]["request_id"] for answer in answers} == set(map(str, range(100)))
                assert all(answer["response"]["subtype"] == "success" for answer in answers)

        run(main())

    def test_same_id_twice_is_answered_twice(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Deny:
                return claude.Deny(message=request.tool_name)

            async with raw_client(can_use_tool=ask) as (_cli, peer):
                peer.ask("1", "can_use_tool", tool_name="a", input={})
                peer.ask("1", "can_use_tool", tool_name="b", input={})
                messages = [(await peer.receive())["response"]["response"]["message"] for _ in range(2)]
                assert sorted(messages) == ["a", "b"]

        run(main())

    def test_ask_without_what_it_needs_is_an_error_answer(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                raise AssertionError("never called")

            async with raw_client(can_use_tool=ask) as (_cli, peer):
                peer.ask("1", "can_use_tool", tool_name="a")
                assert (await peer.receive())["response"]["subtype"] == "error"

        run(main())

    def test_two_id_spaces(self, run) -> None:
        """An id of the command's that looks like one of ours is its own."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.interrupt())
                id = (await peer.receive())["request_id"]
                peer.ask(id, "read_mind")
                assert (await peer.receive())["response"]["error_code"] == "unsupported_request"
                peer.cancel_ask(id)
                peer.accept(id, {})
                await asking

        run(main())


class TestDamagedLines:
    def test_corrupt_answer_fails_its_request(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                asking = asyncio.create_task(cli.interrupt())
                id = (await peer.receive())["request_id"]
                peer.send(f'{{"type":"control_response","response":{{"request_id":"{id}","subtype":"succ')
                with pytest.raises(acprt.RpcError, match="malformed_response"):
                    await asking

        run(main())

    def test_line_over_the_limit_is_one_loss_and_the_next_is_delivered(self, run) -> None:
        """A message, an answer, an ask, a result: whoever waits for it is told."""

        async def main() -> None:
            limits = acprt.Limits(line_bytes=100_000)
            big = "x" * 200_000
            async with raw_client(limits=limits) as (cli, peer):
                turn = cli.prompt("go")
                reading = asyncio.create_task(read(turn))
                uuid = await peer.prompt()
                peer.say("assistant", message={"content": [{"type": "text", "text": big}]})
                peer.say("assistant", message={"content": [{"type": "text", "text": "after"}]})
                asking = asyncio.create_task(cli.interrupt())
                id = (await peer.receive())["request_id"]
                peer.accept(id, {"pad": big})
                with pytest.raises(acprt.RpcError, match="line_bytes"):
                    await asking
                peer.ask("ask-1", "can_use_tool", tool_name="T", input={"pad": big})
                assert (await peer.receive())["response"]["request_id"] == "ask-1"
                peer.result(uuid, result=big)
                with pytest.raises(claude.MessagesLost, match=r"Limits\.line_bytes"):
                    await reading

        run(main())

    def test_large_lines_below_the_limit_are_delivered(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                reading = asyncio.create_task(read(cli.prompt("go")))
                uuid = await peer.prompt()
                peer.say("system", "init")
                peer.say("tool_use_summary", summary="x" * (5 * 1024 * 1024))
                for _ in range(1_000):
                    peer.say("tool_use_summary", summary="y" * 20_480)
                peer.result(uuid)
                messages: Any = (await reading)[1:]
                assert [len(messages[0].summary), len(messages[1].summary), len(messages)] == [5 << 20, 20_480, 1_002]

        run(main(), timeout=60)


class TestLinesOut:
    @pytest.mark.parametrize(
        "content",
        ["a\nb\u2028c\x85d", [{"type": "text", "text": "\x00\x1f"}], [{"type": "x", "n": float("nan")}], "🙂" * 1000],
    )
    def test_every_prompt_is_one_line_of_json(self, run, content: Any) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer), cli.prompt(content) as turn:
                line = await peer.receive_raw()
                frame = json.loads(line, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
                assert frame["message"]["role"] == "user"
                assert frame["uuid"] == turn.uuid
                peer.result(turn.uuid)

        run(main())

    @pytest.mark.parametrize("content", ["\ud800", [{"type": "text", "text": object()}], [msgspec.Raw(b"{cut")]])
    def test_prompt_that_is_no_json_is_refused_here(self, run, content: Any) -> None:
        """The command would exit at such a line."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                with pytest.raises((acprt.RpcError, ValueError)):
                    await read(cli.prompt(content))
                assert await peer.silent()

        run(main())

    def test_answer_that_is_no_json_becomes_an_error(self, run) -> None:
        async def main() -> None:
            handlers = acprt.Endpoint("more")

            @handlers.method("odd")
            async def odd(params: Any) -> Any:
                return msgspec.Raw(b"{cut")

            async with raw_client(handlers=handlers) as (_cli, peer):
                peer.ask("1", "odd")
                answer = (await peer.receive())["response"]
                assert (answer["subtype"], answer["request_id"]) == ("error", "1")

        run(main())

    def test_trace_shows_what_passed(self, run) -> None:
        """The command's envelopes, not the runtime's."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                seen: list[acprt.TraceEvent] = []
                cli.connection.tap([seen.append])
                asking = asyncio.create_task(cli.interrupt())
                peer.accept((await peer.receive())["request_id"], {})
                await asking
                assert [json.loads(event.line)["type"] for event in seen] == ["control_request", "control_response"]

        run(main())


class TestDialect:
    @given(data=strategies.data())
    def test_no_line_makes_the_reader_raise(self, data: strategies.DataObject) -> None:
        """Nor ends in anything but a frame."""
        line = bytearray(data.draw(strategies.sampled_from(FRAMES))[1].encode())
        for _ in range(data.draw(strategies.integers(0, 6))):
            line[data.draw(strategies.integers(0, len(line) - 1))] = data.draw(strategies.integers(0, 255))
        frame = ClaudeDialect().parse(bytes(line))
        assert isinstance(frame, RequestFrame | ResponseFrame | NotificationFrame | MalformedFrame)

    @given(cut=strategies.integers(0, 400))
    def test_lines_survive_every_seam(self, cut: int) -> None:
        """Split anywhere, also within a character and beside spaces."""
        text = '{"type":"tool_use_summary","summary":"  ü \u2028 🙂  ' + "x " * 150 + '"}\n'
        data, splitter = text.encode(), LineSplitter(1 << 20)
        lines = splitter.feed(data[:cut]) + splitter.feed(data[cut:])
        assert lines == [data[:-1]]

    def test_quoted_control_frame_in_a_message_is_text(self) -> None:
        line = b'{"type":"tool_use_summary","summary":"say \\"type\\":\\"control_request\\"","x":"control_request"}'
        assert isinstance(ClaudeDialect().parse(line), NotificationFrame)

    @pytest.mark.parametrize("id", [b"null", b"{}", b"1.5"])
    def test_message_that_has_a_control_frame_inside_is_a_message(self, id: bytes) -> None:
        """Whatever its own members are."""
        inner = b'{"type":"control_response","response":{"request_id":"acprt-1","subtype":"success"}}'
        line = b'{"request_id":%b,"input":%b,"type":"assistant"}' % (id, inner)
        frame = ClaudeDialect().parse(line)
        assert isinstance(frame, NotificationFrame)
        assert frame.method == "message"
