"""Several versions at one end: the handshake chooses whose handlers serve the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2
from tests.acp.talking import HELLO_V1, HELLO_V2, prompt_params, ready_client_of
from tests.rawpeer import raw_client_of, raw_server_for


def stable_agent() -> acp.Agent:
    agent = acp.Agent("stable", version="1")

    @agent.method
    async def new(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id="one")

    @agent.method("_example.com/waits")
    async def waits(_params: Any) -> None:
        await asyncio.Event().wait()

    return agent


def draft_agent() -> acp.Agent:
    agent = acp.Agent.v2("draft", version="2")

    @agent.method
    async def new(request: v2.NewSessionRequest) -> v2.NewSessionResponse:
        return v2.NewSessionResponse(session_id="two")

    return agent


NEW_SESSION = {"cwd": "/", "mcpServers": []}


class TestAgentRouter:
    @pytest.mark.parametrize(
        ("hello", "spoken", "session"),
        [
            (HELLO_V1, 1, "one"),
            (HELLO_V2, 2, "two"),
            (HELLO_V2 | {"protocolVersion": 3}, 2, "two"),
            ({"protocolVersion": "1"}, 1, "one"),
            ({}, 1, "one"),
        ],
    )
    def test_client_is_served_by_the_version_it_asks_for(self, run, hello, spoken, session) -> None:
        async def main() -> None:
            router = acp.Agent.router(v1=stable_agent(), v2=draft_agent())
            async with raw_client_of(router) as client:
                client.request(1, "initialize", hello)
                assert (await client.receive())["result"]["protocolVersion"] == spoken
                client.request(2, "session/new", NEW_SESSION)
                assert (await client.receive())["result"]["sessionId"] == session

        run(main())

    def test_agents_keep_what_is_theirs(self, run) -> None:
        """Connections do not share what they agreed on, and one agent may be served alone beside."""

        async def main() -> None:
            stable = stable_agent()
            router = acp.Agent.router(v1=stable, v2=draft_agent())
            async with (
                ready_client_of(router, HELLO_V2) as new,
                ready_client_of(router, HELLO_V1) as old,
                ready_client_of(stable, HELLO_V2) as alone,
            ):
                for client, session in ((new, "two"), (old, "one"), (alone, "one")):
                    client.request(2, "session/new", NEW_SESSION)
                    assert (await client.receive())["result"]["sessionId"] == session

        run(main())

    def test_only_version_1_configured_answers_1(self, run) -> None:
        async def main() -> None:
            async with raw_client_of(acp.Agent.router(v1=stable_agent())) as client:
                client.request(1, "initialize", HELLO_V2)
                result = (await client.receive())["result"]
                assert (result["protocolVersion"], result["agentInfo"]["name"]) == (1, "stable")

        run(main())

    def test_only_version_2_configured_refuses_1(self, run) -> None:
        async def main() -> None:
            async with raw_client_of(acp.Agent.router(v2=draft_agent())) as client:
                client.request(1, "initialize", HELLO_V1)
                assert (await client.receive())["error"]["data"] == {"requested": 1, "supported": [2]}

        run(main())

    def test_nothing_passes_before(self, run) -> None:
        """Nobody serves the connection yet."""

        async def main() -> None:
            async with raw_client_of(acp.Agent.router(v1=stable_agent(), v2=draft_agent())) as client:
                client.request(1, "session/new", NEW_SESSION)
                client.respond(7, "an answer to nothing")
                client.notify("session/cancel", {"sessionId": "s"})
                assert (await client.receive())["error"]["code"] == -32600
                client.request(2, "initialize", HELLO_V1)
                assert "result" in await client.receive()

        run(main())

    def test_client_of_version_1_may_write_without_waiting(self, run) -> None:
        """Its requests meet the handlers of version 1, not those that served before."""

        async def main() -> None:
            async with raw_client_of(acp.Agent.router(v1=stable_agent(), v2=draft_agent())) as client:
                client.send(
                    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO_V1},
                    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": NEW_SESSION},
                )
                results = {line["id"]: line.get("result") for line in (await client.receive(), await client.receive())}
                assert results[1]["protocolVersion"] == 1
                assert results[2] == {"sessionId": "one"}

        run(main())

    @pytest.mark.parametrize("in_batch", [False, True])
    def test_version_stands_once_another_request_has_passed(self, run, in_batch: bool) -> None:
        """Also where both are read at once: what was asked in version 1 never meets the handlers of version 2."""

        async def main() -> None:
            async with ready_client_of(acp.Agent.router(v1=stable_agent(), v2=draft_agent())) as client:
                lines: list[Any] = [
                    {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": NEW_SESSION},
                    {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": HELLO_V2},
                    {"jsonrpc": "2.0", "id": 3, "method": "session/new", "params": NEW_SESSION},
                ]
                client.send(*([lines] if in_batch else lines))
                answers = await client.receive() if in_batch else [await client.receive() for _ in lines]
                results = {line["id"]: line.get("result") for line in answers}
                assert results[2]["protocolVersion"] == 1
                assert results[1] == results[3] == {"sessionId": "one"}

        run(main())

    def test_failed_handshake_leaves_the_choice_open(self, run) -> None:
        draft = draft_agent()

        @draft.method
        async def initialize(request: v2.InitializeRequest) -> v2.InitializeResponse:
            raise acprt.RpcError(1001, "not today")

        async def main() -> None:
            async with raw_client_of(acp.Agent.router(v1=stable_agent(), v2=draft)) as client:
                client.request(1, "initialize", HELLO_V2)
                assert (await client.receive())["error"]["code"] == 1001
                client.request(2, "initialize", HELLO_V1)
                assert (await client.receive())["result"]["protocolVersion"] == 1
                client.request(3, "session/new", NEW_SESSION)
                assert (await client.receive())["result"]["sessionId"] == "one"

        run(main())

    def test_each_version_has_its_own_habits(self, run) -> None:
        """Arrays, and what a cancelled prompt is answered."""

        async def main() -> None:
            stable, draft, begun = stable_agent(), draft_agent(), asyncio.Queue[int]()

            async def prompt(params: Any) -> None:
                begun.put_nowait(1)
                await asyncio.Event().wait()

            stable.method("session/prompt")(prompt)
            draft.method("session/prompt")(prompt)
            router = acp.Agent.router(v1=stable, v2=draft)
            for hello, batch_is_taken, outcome in (
                (HELLO_V1, True, {"result": {"stopReason": "cancelled"}}),
                (HELLO_V2, False, {"error": {"code": -32800, "message": "Request cancelled"}}),
            ):
                async with ready_client_of(router, hello) as client:
                    client.send([{"jsonrpc": "2.0", "id": 1, "method": "_none"}])
                    assert isinstance(await client.receive(), list) is batch_is_taken
                    client.request(2, "session/prompt", prompt_params())
                    await begun.get()
                    client.notify("session/cancel", {"sessionId": "s"})
                    assert await client.receive() == {"jsonrpc": "2.0", "id": 2} | outcome

        run(main())

    def test_close_callbacks_and_spawned_work_are_those_of_the_chosen_agent(self, run) -> None:
        async def main() -> None:
            stable, draft = stable_agent(), draft_agent()
            steps: list[str] = []

            def observe(agent: acp.Agent) -> None:
                @agent.with_spawned
                async def work(cx: acprt.Connection) -> None:
                    steps.append(f"{agent.name} works for {cx.peer.info.name}")

                @agent.on_close
                async def bye(cx: acprt.Connection) -> None:
                    steps.append(f"{agent.name} says goodbye")

            observe(stable)
            observe(draft)
            async with ready_client_of(acp.Agent.router(v1=stable, v2=draft), HELLO_V2) as client:
                await client.settled()
            assert steps == ["draft works for raw", "draft says goodbye"]

        run(main())

    def test_mistakes_are_named(self) -> None:
        with pytest.raises(TypeError, match="at least one agent"):
            acp.Agent.router()
        with pytest.raises(
            TypeError, match=r"v1= takes an acp\.Agent of version 1, not acp\.Agent 'draft' of version 2"
        ):
            acp.Agent.router(v1=draft_agent())

    def test_handler_that_cannot_be_decoded_fails_when_it_is_opened(self, run) -> None:
        """DEC-5, for the version that may never be asked for, too."""
        draft = draft_agent()

        @draft.method
        async def fork(request: v2.ForkSessionRequest) -> v2.ForkSessionResponse:
            return v2.ForkSessionResponse(session_id="f")

        async def main() -> None:
            near, _far = acprt.memory_pair()
            with pytest.raises(TypeError, match="unstable"):
                await acp.Agent.router(v1=stable_agent(), v2=draft).serve(near)

        run(main())


class TestClientConnector:
    def clients(self) -> tuple[acp.Client, acp.Client]:
        old, new = acp.Client("old", version="1"), acp.Client.v2("new", version="2")

        @old.method
        async def ask_old(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            return acp.allow_first(request)

        @old.method
        async def read(request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
            return v1.ReadTextFileResponse(content="")

        @new.method
        async def ask_new(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
            return acp.reject(request)

        return old, new

    @pytest.mark.parametrize("version", [1, 2])
    def test_connection_is_served_by_the_client_of_the_negotiated_version(self, run, version) -> None:
        """One round trip, whichever it is."""
        old, new = self.clients()
        answers: Any = {
            1: {"protocolVersion": 1},
            2: {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}},
        }
        options = [
            {"optionId": "a", "name": "Yes", "kind": "allow_once"},
            {"optionId": "r", "name": "No", "kind": "reject_once"},
        ]
        question = {"sessionId": "s", "title": "May I?", "toolCall": {"toolCallId": "c"}, "options": options}

        async def main() -> None:
            async with raw_server_for(acp.Client.connector(v1=old, v2=new)) as (cx, agent):
                outcome = cx.spawn(acp.initialize(cx))
                request = await agent.receive()
                assert request["params"] == {
                    "protocolVersion": 2,
                    "info": {"name": "new", "version": "2"},
                    "capabilities": {},
                    "clientInfo": {"name": "old", "version": "1"},
                    "clientCapabilities": {"fs": {"readTextFile": True}},
                }
                agent.respond(request["id"], answers[version])
                assert (await outcome).version == version
                agent.request(1, "session/request_permission", question)
                chosen = (await agent.receive())["result"]["outcome"]["optionId"]
                assert chosen == {1: "a", 2: "r"}[version]

        run(main())

    def test_refused_version_2_is_followed_by_version_1(self, run) -> None:
        old, new = self.clients()

        async def main() -> None:
            async with raw_server_for(acp.Client.connector(v1=old, v2=new)) as (cx, agent):
                outcome = cx.spawn(acp.initialize(cx))
                agent.respond_error((await agent.receive())["id"], -32022, "Unsupported protocol version")
                request = await agent.receive()
                assert request["params"]["clientCapabilities"] == {"fs": {"readTextFile": True}}
                agent.respond(request["id"], {"protocolVersion": 1})
                assert (await outcome).version == 1

        run(main())

    def test_it_meets_every_kind_of_agent(self, run) -> None:
        async def main() -> None:
            old, new = self.clients()
            router = acp.Agent.router(v1=stable_agent(), v2=draft_agent())
            for connector, agent, version in (
                (acp.Client.connector(v1=old, v2=new), stable_agent(), 1),
                (acp.Client.connector(v1=old, v2=new), draft_agent(), 2),
                (acp.Client.connector(v1=old, v2=new), router, 2),
                (acp.Client.connector(v1=old), router, 1),
            ):
                async with connector.connect(agent) as cx:
                    assert (await acp.initialize(cx)).version == version

        run(main())

    def test_mistakes_are_named(self) -> None:
        old, _new = self.clients()
        with pytest.raises(TypeError, match="at least one client"):
            acp.Client.connector()
        with pytest.raises(TypeError, match=r"v2= takes an acp\.Client of version 2"):
            acp.Client.connector(v2=old)


class TestRegistering:
    """Each version has its handlers; what stands at the end that speaks both would never be called."""

    @pytest.mark.parametrize(
        "register",
        [
            lambda both: both.method("_example.com/x")(on_params),
            lambda both: both.on_close(on_connection),
            lambda both: both.with_spawned(on_connection),
        ],
        ids=["handler", "close callback", "spawned work"],
    )
    @pytest.mark.parametrize(
        ("both", "role"),
        [
            (lambda: acp.Agent.router(v1=stable_agent()), r"acp\.Agent"),
            (lambda: acp.Client.connector(v1=acp.Client("c")), r"acp\.Client"),
        ],
        ids=["router", "connector"],
    )
    def test_what_nothing_would_reach_is_refused_by_name(self, run, both, role, register) -> None:
        endpoint = both()
        register(endpoint)

        async def main() -> None:
            ours, _theirs = acprt.memory_pair()
            with pytest.raises(TypeError, match=role + " of each version"):
                await endpoint.open(ours)

        run(main())


async def on_params(_params: Any) -> None: ...


async def on_connection(_cx: acprt.Connection) -> None: ...
