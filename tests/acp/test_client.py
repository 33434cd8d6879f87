"""A client opens the conversation: what it says of itself, which version is agreed on, and what it may do before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2
from tests.acp.talking import HELLO_V1, HELLO_V2
from tests.rawpeer import RawPeer, raw_server_for

ANSWER_V1 = {"protocolVersion": 1, "agentInfo": {"name": "raw", "version": "1"}, "agentCapabilities": {}}
ANSWER_V2 = {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}, "capabilities": {}}


@asynccontextmanager
async def initializing(
    client: acprt.Endpoint, **options: Any
) -> AsyncIterator[tuple[acprt.Connection, RawPeer, asyncio.Task[Any]]]:
    """A client that waits for the answer of a raw agent."""
    async with raw_server_for(client) as (cx, agent):
        yield cx, agent, cx.spawn(_outcome(acp.initialize(cx, **options)))


async def _outcome(work: Any) -> Any:
    """A value or an error, so that a failure does not end the connection that the task belongs to."""
    try:
        return await work
    except (acprt.RpcError, TimeoutError) as error:
        return error


class TestVersion1:
    def test_it_says_who_it_is_and_what_its_handlers_can_do(self, run) -> None:
        client = acp.Client("reader", version="2", title="The reader")

        @client.method
        async def read(request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
            return v1.ReadTextFileResponse(content="")

        async def main() -> None:
            async with initializing(client) as (cx, agent, outcome):
                request = await agent.receive()
                assert request["method"] == "initialize"
                assert request["params"] == {
                    "protocolVersion": 1,
                    "clientInfo": {"name": "reader", "title": "The reader", "version": "2"},
                    "clientCapabilities": {"fs": {"readTextFile": True}},
                }
                agent.respond(request["id"], ANSWER_V1)
                assert await outcome is cx.peer

        run(main())

    def test_what_the_agent_is_ends_up_in_peer(self, run) -> None:
        answer = ANSWER_V1 | {
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"list": {}}, "vendor": [1]},
            "authMethods": [{"id": "key", "name": "A key"}],
        }

        async def main() -> None:
            async with initializing(acp.Client("c")) as (_cx, agent, outcome):
                agent.respond((await agent.receive())["id"], answer)
                peer = await outcome
                assert (peer.version, peer.info) == (1, v1.Implementation(name="raw", version="1"))
                assert peer.capabilities.load_session is True
                assert peer.capabilities.session_capabilities.list is not None
                assert peer.wire_capabilities["vendor"] == [1]
                assert [method.id for method in peer.auth_methods] == ["key"]
                assert isinstance(peer.response, v1.InitializeResponse)
                assert isinstance(peer.request, v1.InitializeRequest)

        run(main())

    @pytest.mark.parametrize("answer", [{"protocolVersion": 1}, {"protocolVersion": 1, "authMethods": None}])
    def test_sparse_agent_is_understood(self, run, answer) -> None:
        async def main() -> None:
            async with initializing(acp.Client("c")) as (_cx, agent, outcome):
                agent.respond((await agent.receive())["id"], answer)
                peer = await outcome
                assert (peer.version, peer.info, peer.auth_methods, peer.wire_capabilities) == (1, None, [], {})

        run(main())

    @pytest.mark.parametrize("version", [2, 0, "1", None, True, [1], {}])
    def test_other_version_is_not_gone_on_with(self, run, version) -> None:
        async def main() -> None:
            async with initializing(acp.Client("c")) as (cx, agent, outcome):
                agent.respond((await agent.receive())["id"], {"protocolVersion": version})
                error = await outcome
                assert error.code == -32600
                assert error.data["reason"] == "version_mismatch"
                assert f"the peer speaks {version!r}" in error.data["error"]
                assert cx.peer is None

        run(main())

    def test_error_of_the_agent_is_raised_and_it_may_be_tried_again(self, run) -> None:
        async def main() -> None:
            async with initializing(acp.Client("c")) as (cx, agent, outcome):
                agent.respond_error((await agent.receive())["id"], 1001, "no codex")
                assert await outcome == acprt.RpcError(1001, "no codex")
                again = cx.spawn(_outcome(acp.initialize(cx)))
                agent.respond((await agent.receive())["id"], ANSWER_V1)
                assert (await again).version == 1

        run(main())

    def test_silent_agent_times_out_and_may_be_asked_again(self, run) -> None:
        """An answer to what was given up changes nothing."""

        async def main() -> None:
            async with initializing(acp.Client("c"), timeout=0.05) as (cx, agent, outcome):
                late = await agent.receive()
                assert isinstance(await outcome, TimeoutError)
                assert (await agent.receive())["method"] == "$/cancel_request"
                again = cx.spawn(_outcome(acp.initialize(cx)))
                request = await agent.receive()
                agent.respond(late["id"], ANSWER_V1)
                await agent.settled()
                assert cx.peer is None
                agent.respond(request["id"], ANSWER_V1)
                assert (await again).version == 1

        run(main())

    def test_peer_is_known_before_the_next_message_is_looked_at(self, run) -> None:
        """An update right behind the answer meets a connection that is ready."""
        client, known = acp.Client("c"), []

        @client.on_receive_notification
        async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
            known.append(cx.peer)

        async def main() -> None:
            async with initializing(client) as (cx, agent, outcome):
                chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
                request = await agent.receive()
                agent.send(
                    {"jsonrpc": "2.0", "id": request["id"], "result": ANSWER_V1},
                    {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": chunk}},
                )
                await outcome
                await agent.settled()
                assert known == [cx.peer]

        run(main())

    def test_other_requests_may_be_sent_before(self, run) -> None:
        """The agent refuses them, if it does."""

        async def main() -> None:
            async with raw_server_for(acp.Client("c")) as (cx, agent):
                sent = cx.send_request("session/new", {})
                assert (await agent.receive())["method"] == "session/new"
                sent.detach()

        run(main())

    def test_agent_that_asks_for_initialize_is_refused(self, run) -> None:
        async def main() -> None:
            async with initializing(acp.Client("c")) as (_cx, agent, outcome):
                request = await agent.receive()
                agent.request(1, "initialize", HELLO_V1)
                assert (await agent.receive())["error"]["code"] == -32600
                agent.respond(request["id"], ANSWER_V1)
                assert (await outcome).version == 1
                agent.request(2, "session/none")
                assert (await agent.receive())["error"]["code"] == -32601
                agent.request(3, "initialize", HELLO_V1)
                assert (await agent.receive())["error"]["code"] == -32600

        run(main())


class TestVersion2:
    def test_it_says_who_it_is_in_the_words_of_both_versions(self, run) -> None:
        """An agent that answers with version 1 has read what it needs."""
        client = acp.Client.v2("modern", version="2")

        @client.method
        async def elicit(request: v2.CreateElicitationRequest) -> v2.CreateElicitationResponse:
            raise AssertionError("not asked here")

        async def main() -> None:
            async with initializing(client) as (_cx, agent, outcome):
                request = await agent.receive()
                info = {"name": "modern", "version": "2"}
                assert request["params"] == {
                    "protocolVersion": 2,
                    "info": info,
                    "capabilities": {"elicitation": {"form": {}}},
                    "clientInfo": info,
                    "clientCapabilities": {},
                }
                agent.respond(request["id"], ANSWER_V2)
                peer = await outcome
                assert (peer.version, peer.info) == (2, v2.Implementation(name="raw", version="1"))

        run(main())

    def test_without_fallback_it_says_nothing_of_version_1(self, run) -> None:
        async def main() -> None:
            async with initializing(acp.Client.v2("c", version="1"), fallback=False) as (_cx, agent, outcome):
                request = await agent.receive()
                assert request["params"].keys() == {"protocolVersion", "info", "capabilities"}
                agent.respond(request["id"], ANSWER_V1)
                error = await outcome
                assert (error.code, error.data["reason"]) == (-32600, "version_mismatch")

        run(main())

    def test_it_goes_on_with_version_1_when_that_is_the_answer(self, run) -> None:
        """One round trip; sessions of version 1 work from there."""

        async def main() -> None:
            async with initializing(acp.Client.v2("c")) as (cx, agent, outcome):
                agent.respond((await agent.receive())["id"], ANSWER_V1)
                peer = await outcome
                assert peer.version == 1
                assert isinstance(peer.response, v1.InitializeResponse)

                async def turn() -> str:
                    async with acp.session(cx, cwd="/") as session:
                        return await session.prompt("hi").text()

                said = cx.spawn(turn())
                agent.respond((await agent.receive())["id"], {"sessionId": "s"})
                prompt = await agent.receive()
                chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}
                agent.notify("session/update", {"sessionId": "s", "update": chunk})
                agent.respond(prompt["id"], {"stopReason": "end_turn"})
                assert await said == "hello"

        run(main())

    @pytest.mark.parametrize("code", [-32600, -32602, -32022])
    def test_it_asks_again_for_version_1_when_2_is_refused(self, run, code) -> None:
        async def main() -> None:
            async with initializing(acp.Client.v2("c", version="1")) as (_cx, agent, outcome):
                agent.respond_error((await agent.receive())["id"], code, "only 1 here")
                request = await agent.receive()
                assert request["params"] == {
                    "protocolVersion": 1,
                    "clientInfo": {"name": "c", "version": "1"},
                    "clientCapabilities": {},
                }
                agent.respond(request["id"], ANSWER_V1)
                assert (await outcome).version == 1

        run(main())

    def test_agent_that_repeats_the_number_and_speaks_version_1_is_asked_again(self, run) -> None:
        """Real agents answer any version with itself."""

        async def main() -> None:
            async with initializing(acp.Client.v2("c")) as (_cx, agent, outcome):
                agent.respond((await agent.receive())["id"], ANSWER_V1 | {"protocolVersion": 2})
                request = await agent.receive()
                assert request["params"]["protocolVersion"] == 1
                agent.respond(request["id"], ANSWER_V1)
                assert (await outcome).version == 1

        run(main())

    @pytest.mark.parametrize("code", [1001, -32603, -32000])
    def test_other_errors_are_no_reason_to_ask_again(self, run, code) -> None:
        async def main() -> None:
            async with initializing(acp.Client.v2("c")) as (_cx, agent, outcome):
                agent.respond_error((await agent.receive())["id"], code, "broken")
                assert (await outcome).code == code
                assert agent.unread() == []

        run(main())

    def test_version_above_the_one_asked_for_is_an_error(self, run) -> None:
        async def main() -> None:
            async with initializing(acp.Client.v2("c"), fallback=False) as (_cx, agent, outcome):
                agent.respond((await agent.receive())["id"], ANSWER_V2 | {"protocolVersion": 3})
                assert (await outcome).data["reason"] == "version_mismatch"

        run(main())

    def test_nothing_else_is_sent_before(self, run) -> None:
        """It fails here, and the wire stays quiet."""

        async def main() -> None:
            async with initializing(acp.Client.v2("c")) as (cx, agent, outcome):
                with pytest.raises(acprt.RpcError, match="must complete before `session/new`"):
                    await cx.send_request(v2.NewSessionRequest(cwd="/")).block_task()
                request = await agent.receive()
                assert request["method"] == "initialize"
                agent.respond(request["id"], ANSWER_V2)
                await outcome
                sent = cx.send_request(v2.NewSessionRequest(cwd="/"))
                assert (await agent.receive())["method"] == "session/new"
                sent.detach()

        run(main())

    def test_handshake_by_hand_counts(self, run) -> None:
        """A typed request of one's own is guarded alike."""

        async def main() -> None:
            async with raw_server_for(acp.Client.v2("c")) as (cx, agent):
                hello = v2.InitializeRequest(protocol_version=2, info=v2.Implementation(name="c", version="1"))
                sent = cx.send_request(hello)
                with pytest.raises(acprt.RpcError, match="another initialize is in progress"):
                    await cx.send_request(hello).block_task()
                agent.respond((await agent.receive())["id"], ANSWER_V2)
                assert (await sent.block_task()).info.name == "raw"
                assert cx.peer.version == 2

        run(main())

    def test_second_handshake_leaves_the_one_under_way_alone(self, run) -> None:
        """It is refused in both versions that it tries, and the first goes on with what it asked for."""

        async def main() -> None:
            async with initializing(acp.Client.v2("c")) as (cx, agent, outcome):
                request = await agent.receive()
                with pytest.raises(acprt.RpcError, match="another initialize is in progress"):
                    await acp.initialize(cx)
                with pytest.raises(acprt.RpcError):
                    await cx.send_request("initialize", {"protocolVersion": 2, "info": object()}).block_task()
                agent.respond(request["id"], ANSWER_V2)
                assert (await outcome).version == 2
                assert cx.peer.request.info.name == "c"
                assert agent.unread() == []

        run(main())

    def test_handshake_that_cannot_be_written_says_why(self, run) -> None:
        async def main() -> None:
            async with raw_server_for(acp.Client.v2("c")) as (cx, agent):
                with pytest.raises(acprt.RpcError, match="serialization"):
                    await cx.send_request("initialize", {"protocolVersion": 2, "info": object()}).block_task()
                outcome = cx.spawn(acp.initialize(cx))
                agent.respond((await agent.receive())["id"], ANSWER_V2)
                assert (await outcome).version == 2

        run(main())

    def test_agent_that_speaks_first_is_refused(self, run) -> None:
        async def main() -> None:
            async with raw_server_for(acp.Client.v2("c")) as (_cx, agent):
                agent.request(1, "session/request_permission", {})
                assert (await agent.receive())["error"]["code"] == -32600

        run(main())

    def test_both_sides_of_this_library_agree(self, run) -> None:
        async def main() -> None:
            async with acp.Client.v2("c").connect(acp.Agent.v2("a")) as cx:
                assert (await acp.initialize(cx)).version == 2
            async with acp.Client.v2("c").connect(acp.Agent("a")) as cx:
                assert (await acp.initialize(cx)).version == 1
            async with acp.Client("c").connect(acp.Agent.v2("a")) as cx:
                with pytest.raises(acprt.RpcError) as refused:
                    await acp.initialize(cx)
                assert refused.value.code == -32022

        run(main())


class TestStrictCapabilities:
    def test_agent_is_asked_only_for_what_it_offered(self, run) -> None:
        answer = ANSWER_V1 | {"agentCapabilities": {"sessionCapabilities": {"list": {}}}}

        async def main() -> None:
            async with initializing(acp.Client("c", strict_capabilities=True)) as (cx, agent, outcome):
                agent.respond((await agent.receive())["id"], answer)
                await outcome
                with pytest.raises(acprt.RpcError) as refused:
                    await cx.send_request(v1.LoadSessionRequest(session_id="s", cwd="/", mcp_servers=[])).block_task()
                assert refused.value.code == -32601
                assert refused.value.data["method"] == "session/load"
                with pytest.raises(acprt.RpcError):
                    await acp.authenticate(cx, "key")
                sent = cx.send_request(v1.ListSessionsRequest())
                assert (await agent.receive())["method"] == "session/list"
                sent.detach()

        run(main())


class TestUnstable:
    def test_unstable_request_needs_the_opt_in(self, run) -> None:
        async def main() -> None:
            fork = v1.ForkSessionRequest(session_id="s", cwd="/")
            for unstable in (False, True):
                async with initializing(acp.Client("c", unstable=unstable)) as (cx, agent, outcome):
                    agent.respond((await agent.receive())["id"], ANSWER_V1)
                    await outcome
                    sent = cx.send_request(fork)
                    if unstable:
                        assert (await agent.receive())["method"] == "session/fork"
                        sent.detach()
                    else:
                        with pytest.raises(acprt.RpcError) as refused:
                            await sent.block_task()
                        assert "unstable=True" in refused.value.data["reason"]

        run(main())


class TestAuthenticate:
    @pytest.mark.parametrize(("make", "method"), [(acp.Client, "authenticate"), (acp.Client.v2, "auth/login")])
    def test_method_is_of_the_version(self, run, make, method) -> None:
        answer = ANSWER_V1 if method == "authenticate" else ANSWER_V2

        async def main() -> None:
            async with initializing(make("c")) as (cx, agent, outcome):
                agent.respond((await agent.receive())["id"], answer)
                await outcome
                signing_in = cx.spawn(acp.authenticate(cx, "key"))
                request = await agent.receive()
                assert (request["method"], request["params"]) == (method, {"methodId": "key"})
                agent.respond(request["id"], {})
                await signing_in

        run(main())


def test_initialize_belongs_to_clients(run) -> None:
    async def main() -> None:
        async with acprt.Endpoint("plain").connect(acp.Agent("a")) as cx:
            with pytest.raises(TypeError, match=r"connection of acp\.Client"):
                await acp.initialize(cx)

    run(main())


def test_hello_of_version_2_is_what_an_agent_of_this_library_reads(run) -> None:
    """The two raw shapes of these tests are those that both sides write."""

    async def main() -> None:
        async with acp.Client.v2("c").connect(acp.Agent.v2("a")) as cx:
            answer = await cx.send_request("initialize", HELLO_V2).block_task()
            assert answer.keys() >= {"protocolVersion", "info"}

    run(main())
