"""An agent answers `initialize` by itself, refuses what comes too early, and knows its client afterwards."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2
from tests.acp.talking import HELLO_V1, HELLO_V2, answer_of, prompt_params, ready_client_of
from tests.rawpeer import raw_client_of


def loading_agent() -> acp.Agent:
    agent = acp.Agent("loader", version="3", title="The loader")

    @agent.method
    async def load(request: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
        return v1.LoadSessionResponse()

    return agent


class TestInitialize:
    def test_it_is_answered_with_name_version_and_what_the_handlers_imply(self, run) -> None:
        result = run(answer_of(loading_agent(), HELLO_V1))
        assert result["protocolVersion"] == 1
        assert result["agentInfo"] == {"name": "loader", "title": "The loader", "version": "3"}
        assert result["agentCapabilities"]["loadSession"] is True
        assert result["agentCapabilities"].get("sessionCapabilities", {}) == {}

    @pytest.mark.parametrize("asked", [2, 99, 0, "1", None])
    def test_unknown_version_is_answered_with_its_own(self, run, asked) -> None:
        assert run(answer_of(loading_agent(), {"protocolVersion": asked}))["protocolVersion"] == 1

    @pytest.mark.parametrize(
        "params",
        [
            {},
            None,
            [],
            {"protocolVersion": 1, "clientInfo": None, "clientCapabilities": None},
            {"protocolVersion": [1], "info": 7, "capabilities": {"auth": []}},
            {"protocolVersion": 2, "info": {"name": "c", "version": "1", "n": 2**70}},
        ],
    )
    def test_sparse_or_odd_client_is_answered(self, run, params) -> None:
        assert run(answer_of(loading_agent(), params))["protocolVersion"] == 1

    def test_given_capabilities_stand_beside_inferred_ones(self, run) -> None:
        images = v1.AgentCapabilities(prompt_capabilities=v1.PromptCapabilities(image=True), meta={"x": 1})
        agent = acp.Agent("seeing", capabilities=images)

        @agent.method
        async def sessions(request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
            return v1.ListSessionsResponse(sessions=[])

        capabilities = run(answer_of(agent, HELLO_V1))["agentCapabilities"]
        assert capabilities["promptCapabilities"] == {"image": True}
        assert capabilities["sessionCapabilities"] == {"list": {}}
        assert capabilities["_meta"] == {"x": 1}

    def test_ways_to_authenticate_are_told(self, run) -> None:
        agent = acp.Agent("locked", auth_methods=[v1.AuthMethodAgent(id="key", name="A key")])
        assert run(answer_of(agent, HELLO_V1))["authMethods"] == [{"id": "key", "name": "A key"}]

    def test_handler_answers_in_its_place(self, run) -> None:
        agent = acp.Agent("own")

        @agent.method
        async def initialize(request: v1.InitializeRequest) -> v1.InitializeResponse:
            assert request.client_info is not None
            return v1.InitializeResponse(protocol_version=1, meta={"hello": request.client_info.name})

        async def main() -> None:
            async with ready_client_of(agent) as client:
                assert await client.settled() == []  # and it counts as the handshake

        assert run(answer_of(agent, HELLO_V1))["_meta"] == {"hello": "raw"}
        run(main())

    def test_handler_of_version_1_reads_a_client_of_version_2(self, run) -> None:
        agent, seen = acp.Agent("own"), []

        @agent.method
        async def initialize(request: v1.InitializeRequest) -> v1.InitializeResponse:
            seen.append(request)
            return v1.InitializeResponse(protocol_version=1)

        run(answer_of(agent, HELLO_V2 | {"capabilities": {"elicitation": {"url": {}}}}))
        (request,) = seen
        assert request.client_info == v1.Implementation(name="raw", version="1")
        assert request.client_capabilities.elicitation == v1.ElicitationCapabilities(
            url=v1.ElicitationUrlCapabilities()
        )

    def test_what_cannot_be_told_fails_before_anyone_asks(self) -> None:
        odds: list[Any] = [
            object(),
            "key",
            v1.TextContent(text="key"),
            v2.AuthMethodAgent(method_id="key", name="A key"),
        ]
        for odd in odds:
            with pytest.raises(TypeError, match=re.escape("auth_methods= takes v1.AuthMethodAgent")):
                acp.Agent("odd", auth_methods=[odd])
        with pytest.raises(TypeError, match=re.escape("capabilities= takes a v1.AgentCapabilities, not")):
            acp.Agent("odd", capabilities=v1.ClientCapabilities())  # type: ignore[arg-type]  # for who checks no types
        with pytest.raises(TypeError, match=re.escape("capabilities= takes a v2.AgentCapabilities, not")):
            acp.Agent.v2("odd", capabilities=v1.AgentCapabilities())  # type: ignore[arg-type]  # as above


class TestBeforeInitialize:
    def test_other_requests_are_refused(self, run) -> None:
        async def main() -> None:
            agent, begun = acp.Agent("strict"), []

            @agent.method
            async def new(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
                begun.append(request)
                return v1.NewSessionResponse(session_id="s")

            async with raw_client_of(agent) as client:
                client.request(1, "session/new", {"cwd": "/", "mcpServers": []})
                client.request(2, "_example.com/x")
                for id in (1, 2):
                    answer = await client.receive()
                    assert (answer["id"], answer["error"]["code"]) == (id, -32600)
                assert begun == []

        run(main())

    def test_what_is_written_behind_it_is_served(self, run) -> None:
        """A client of version 1 that does not wait for the answer."""

        async def main() -> None:
            agent = acp.Agent("quick")

            @agent.method
            async def new(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
                return v1.NewSessionResponse(session_id="s")

            async with raw_client_of(agent) as client:
                client.send(
                    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO_V1},
                    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
                )
                answers = [await client.receive(), await client.receive()]
                assert {answer["id"] for answer in answers if "result" in answer} == {1, 2}

        run(main())

    def test_refused_initialize_leaves_the_door_closed(self, run) -> None:
        agent = acp.Agent("moody")
        moods = [acprt.RpcError(1001, "not today"), None]

        @agent.method
        async def initialize(request: v1.InitializeRequest) -> v1.InitializeResponse:
            mood = moods.pop(0)
            if mood is not None:
                raise mood
            return v1.InitializeResponse(protocol_version=1)

        async def main() -> None:
            async with raw_client_of(agent) as client:
                client.request(1, "initialize", HELLO_V1)
                assert (await client.receive())["error"]["code"] == 1001
                client.request(2, "session/prompt", prompt_params())
                assert (await client.receive())["error"]["code"] == -32600
                client.request(3, "initialize", HELLO_V1)
                assert "result" in await client.receive()
                assert await client.settled() == []

        run(main())

    def test_cancelled_initialize_leaves_the_door_closed(self, run) -> None:
        """Also when it is cancelled in the same read."""

        async def main() -> None:
            async with raw_client_of(acp.Agent("x")) as client:
                cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
                hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO_V1}
                client.send(hello, cancel)
                assert (await client.receive())["error"]["code"] == -32800
                client.request(2, "session/prompt", prompt_params())
                assert (await client.receive())["error"]["code"] == -32600

        run(main())

    def test_it_may_be_repeated(self, run) -> None:
        """Agents of version 1 allow it at any time; `cx.peer` is what the last one before other requests said."""

        async def main() -> None:
            async with ready_client_of(acp.Agent("x")) as client:
                for id in (1, 2):
                    client.request(id, "initialize", HELLO_V1)
                    assert "result" in await client.receive()
                    await client.settled()

        run(main())


class TestPeer:
    def test_agent_knows_its_client(self, run) -> None:
        agent, peers = acp.Agent("curious"), []

        @agent.method("_example.com/who")
        async def who(_params: Any, cx: acprt.Connection) -> None:
            peers.append(cx.peer)

        hello = HELLO_V1 | {"clientCapabilities": {"terminal": True, "_meta": {"a": 1}, "vendor": 2}}

        async def main() -> None:
            async with ready_client_of(agent, hello) as client:
                client.request(1, "_example.com/who")
                await client.receive()

        run(main())
        (peer,) = peers
        assert isinstance(peer, acp.Peer)
        assert (peer.version, peer.auth_methods) == (1, [])
        assert peer.info == v1.Implementation(name="raw", version="1")
        assert peer.capabilities.terminal is True
        assert peer.wire_capabilities == {"terminal": True, "_meta": {"a": 1}, "vendor": 2}
        assert isinstance(peer.request, v1.InitializeRequest)
        assert isinstance(peer.response, v1.InitializeResponse)
        assert msgspec.to_builtins(peer.response)["agentInfo"]["name"] == "curious"


def test_agent_sends_no_initialize(run) -> None:
    """Clients send, agents answer."""
    agent, errors = acp.Agent("confused"), []

    @agent.method("_example.com/go")
    async def go(_params: Any, cx: acprt.Connection) -> None:
        try:
            await cx.send_request("initialize", HELLO_V1).block_task()
        except acprt.RpcError as error:
            errors.append(error.code)

    async def main() -> None:
        async with ready_client_of(agent) as client:
            client.request(1, "_example.com/go")
            assert (await client.receive())["id"] == 1

    run(main())
    assert errors == [-32600]


def test_after_response_runs_when_the_answer_is_on_its_way(run) -> None:
    """Commands after `session/new`."""
    agent = acp.Agent("commanding")

    @agent.method
    async def new(request: v1.NewSessionRequest, cx: acprt.Connection) -> v1.NewSessionResponse:
        say = acp.SessionUpdates(cx, "s")
        cx.after_response(lambda: say.commands(v1.AvailableCommand(name="go", description="Go")))
        return v1.NewSessionResponse(session_id="s")

    async def main() -> None:
        async with ready_client_of(agent) as client:
            client.request(1, "session/new", {"cwd": "/", "mcpServers": []})
            assert (await client.receive())["id"] == 1
            assert (await client.receive())["params"]["update"]["sessionUpdate"] == "available_commands_update"

    run(main())


class TestHandlersThatCannotBeMeant:
    """A handler that nothing would ever call, or only with messages of another version, is refused by name."""

    async def refusal(self, role: acprt.Endpoint) -> str:
        near, _far = acprt.memory_pair()
        with pytest.raises(TypeError) as caught:
            await role.serve(near)
        return str(caught.value)

    def test_message_of_another_version_is_refused(self, run) -> None:
        agent, client = acp.Agent("stable"), acp.Client.v2("draft")

        @agent.method
        async def prompt(request: v2.PromptRequest) -> v2.PromptResponse:
            raise NotImplementedError

        @client.on_receive_notification
        async def update(note: v1.SessionNotification) -> None: ...

        for role, told in (
            (agent, "takes v2.PromptRequest, but this agent is of version 1: take that of acp.v1"),
            (
                client,
                "takes v1.SessionNotification, but this client is of version 2: take that of acp.v2, or use acp.C",
            ),
        ):
            assert told in run(self.refusal(role))

    def test_message_of_the_own_side_is_refused(self, run) -> None:
        agent, client = acp.Agent("asked"), acp.Client("prompted")

        @agent.method
        async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            return acp.allow_first(request)

        @client.on_receive_notification
        async def cancel(note: v1.CancelNotification) -> None: ...

        assert "takes session/request_permission, which no client sends" in run(self.refusal(agent))
        assert "takes session/cancel, which no agent sends" in run(self.refusal(client))
