"""Agents of version 2, unstable methods, and what a client may be sent."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2
from tests.acp.talking import HELLO_V1, HELLO_V2, answer_of, ready_client_of
from tests.rawpeer import raw_client_of


class TestVersion2:
    def agent(self) -> acp.Agent:
        agent = acp.Agent.v2("draft", version="2")

        @agent.method
        async def new(request: v2.NewSessionRequest) -> v2.NewSessionResponse:
            return v2.NewSessionResponse(session_id="s")

        @agent.method
        async def prompt(request: v2.PromptRequest) -> v2.PromptResponse:
            return v2.PromptResponse(message_id="m")

        return agent

    def test_it_is_answered_in_the_words_of_version_2(self, run) -> None:
        result = run(answer_of(self.agent(), HELLO_V2))
        assert result["protocolVersion"] == 2
        assert result["info"] == {"name": "draft", "version": "2"}
        assert result["capabilities"] == {"session": {}}

    def test_future_version_is_answered_with_2(self, run) -> None:
        assert run(answer_of(self.agent(), {"protocolVersion": 3, "info": 7}))["protocolVersion"] == 2

    def test_version_1_is_refused_with_what_is_supported(self, run) -> None:
        error = run(answer_of(self.agent(), HELLO_V1))
        assert (error["code"], error["data"]) == (-32022, {"requested": 1, "supported": [2]})

    @pytest.mark.parametrize("params", [{}, {"protocolVersion": "2"}, {"protocolVersion": 2}, None])
    def test_malformed_one_is_refused(self, run, params) -> None:
        """No version, or no `info`; the next one may be better."""

        async def main() -> None:
            async with raw_client_of(self.agent()) as client:
                client.request(1, "initialize", params)
                assert (await client.receive())["error"]["code"] == -32602
                client.request(2, "initialize", HELLO_V2)
                assert "result" in await client.receive()

        run(main())

    def test_nothing_passes_while_it_is_under_way(self, run) -> None:
        agent, goes_on = self.agent(), asyncio.Event()

        @agent.method
        async def initialize(request: v2.InitializeRequest) -> v2.InitializeResponse:
            await goes_on.wait()
            return v2.InitializeResponse(protocol_version=2, info=v2.Implementation(name="x", version="1"))

        async def main() -> None:
            async with raw_client_of(agent) as client:
                client.request(1, "initialize", HELLO_V2)
                client.request(2, "session/new", {"cwd": "/"})
                client.request(3, "initialize", HELLO_V2)
                for id in (2, 3):
                    answer = await client.receive()
                    assert (answer["id"], answer["error"]["code"]) == (id, -32600)
                goes_on.set()
                assert "result" in await client.receive()
                client.request(4, "session/new", {"cwd": "/"})
                assert (await client.receive())["result"]["sessionId"] == "s"

        run(main())

    def test_it_must_not_be_repeated_after_other_requests(self, run) -> None:
        async def main() -> None:
            async with ready_client_of(self.agent(), HELLO_V2) as client:
                client.request(1, "initialize", HELLO_V2)
                assert "result" in await client.receive()
                client.request(2, "session/new", {"cwd": "/"})
                client.request(3, "initialize", HELLO_V2)
                answers = [await client.receive(), await client.receive()]
                codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers}
                assert codes == {2: None, 3: -32600}
                client.request(4, "session/new", {"cwd": "/"})
                assert "result" in await client.receive()
                client.request(5, "initialize", HELLO_V2)
                assert (await client.receive())["error"]["code"] == -32600

        run(main())

    def test_notifications_before_it_are_dropped(self, run) -> None:
        agent, heard = self.agent(), []

        @agent.on_receive_notification("_example.com/early")
        async def early(params: Any) -> None:
            heard.append(params)

        async def main() -> None:
            async with raw_client_of(agent) as client:
                client.notify("_example.com/early", {"n": 1})
                client.request(1, "initialize", HELLO_V2)
                await client.receive()
                client.notify("_example.com/early", {"n": 2})
                await client.settled()
            assert heard == [{"n": 2}]

        run(main())

    def test_malformed_answer_of_a_handler_is_no_handshake(self, run, caplog) -> None:
        agent = self.agent()

        @agent.method("initialize")
        async def initialize(_params: Any) -> Any:
            return {"protocolVersion": 2}

        async def main() -> None:
            async with raw_client_of(agent) as client:
                with caplog.at_level(logging.WARNING, "acprt.acp"):
                    client.request(1, "initialize", HELLO_V2)
                    assert "result" in await client.receive()
                assert "initialize was answered with what is no answer to it" in caplog.text
                client.request(2, "session/new", {"cwd": "/"})
                assert (await client.receive())["error"]["code"] == -32600

        run(main())

    def test_promise_that_is_not_kept_is_logged(self, run, caplog) -> None:
        """`session` stands for five methods."""
        with caplog.at_level(logging.WARNING, "acprt.acp"):
            run(answer_of(self.agent(), HELLO_V2))
        assert "draft offers sessions, which promises session/close, session/list, session/resume too" in caplog.text


class TestUnstable:
    def forking(self, **options: Any) -> acp.Agent:
        agent = acp.Agent("forking", **options)

        @agent.method
        async def fork(request: v1.ForkSessionRequest) -> v1.ForkSessionResponse:
            return v1.ForkSessionResponse(session_id="f")

        return agent

    def test_handler_of_an_unstable_method_needs_the_opt_in(self, run) -> None:
        async def main() -> None:
            near, _far = acprt.memory_pair()
            with pytest.raises(
                TypeError, match=r"'forking': .* takes session/fork, which is unstable .* make the agent with unstable="
            ):
                await self.forking().serve(near)

        run(main())

    def test_with_it_the_method_is_offered(self, run) -> None:
        result = run(answer_of(self.forking(unstable=True), HELLO_V1))
        assert result["agentCapabilities"]["sessionCapabilities"] == {"fork": {}}

    def test_unstable_request_is_not_sent_without_it(self, run) -> None:
        agent, errors = acp.Agent("asking"), []

        @agent.method("_example.com/go")
        async def go(_params: Any, cx: acprt.Connection) -> None:
            try:
                await cx.send_request("mcp/message", {}).block_task()
            except acprt.RpcError as error:
                errors.append(error)

        async def main() -> None:
            async with ready_client_of(agent) as client:
                client.request(1, "_example.com/go")
                assert (await client.receive())["id"] == 1

        run(main())
        assert errors[0].code == -32601
        assert "unstable=True" in errors[0].data["reason"]


class TestStrictCapabilities:
    @pytest.mark.parametrize(
        ("capabilities", "is_sent"), [({}, False), ({"fs": {"readTextFile": True}}, True), ({"fs": {}}, False)]
    )
    def test_client_is_asked_only_for_what_it_offered(self, run, capabilities, is_sent) -> None:
        agent, errors = acp.Agent("polite", strict_capabilities=True), []

        @agent.method("_example.com/go")
        async def go(_params: Any, cx: acprt.Connection) -> None:
            try:
                await cx.send_request(v1.ReadTextFileRequest(session_id="s", path="/x")).block_task()
            except acprt.RpcError as error:
                errors.append(error)

        async def main() -> None:
            async with ready_client_of(agent, HELLO_V1 | {"clientCapabilities": capabilities}) as client:
                client.request(1, "_example.com/go")
                line = await client.receive()
                if is_sent:
                    assert line["method"] == "fs/read_text_file"
                    client.respond(line["id"], {"content": ""})
                    line = await client.receive()
                assert line["id"] == 1

        run(main())
        assert [error.code for error in errors] == ([] if is_sent else [-32601])
        if errors:
            assert errors[0].data["reason"] == "the peer does not offer it: no fs.readTextFile in its capabilities"

    def test_agent_that_is_not_strict_may_ask_for_anything(self, run) -> None:
        """Clients forget to say what they can do."""
        agent = acp.Agent("bold")

        @agent.method("_example.com/go")
        async def go(_params: Any, cx: acprt.Connection) -> Any:
            return (await cx.send_request(v1.ReadTextFileRequest(session_id="s", path="/x")).block_task()).content

        async def main() -> None:
            async with ready_client_of(agent) as client:
                client.request(1, "_example.com/go")
                client.respond((await client.receive())["id"], {"content": "text"})
                assert (await client.receive())["result"] == "text"

        run(main())
