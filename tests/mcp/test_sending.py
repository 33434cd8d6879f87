"""Our own requests: what cancels them, what is written then, and what becomes of an answer that comes too late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import (
    ERAS,
    LEGACY,
    MODERN,
    Client,
    cancel,
    client_endpoint,
    client_of,
    request_of,
    server_for,
    server_of,
    until,
)
from tests.rawpeer import RawPeer, turns

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


@both_eras
class TestCancel:
    def test_cancel_is_said_once_and_nobody_waits_for_an_answer(self, run, era):
        """The reason only if one is given; no metadata is stamped on it."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                for reason in (None, "user pressed esc"):
                    sent = cx.send_request("tools/call", {"name": "x"})
                    request = await request_of(peer)
                    sent.cancel(reason=reason)
                    sent.cancel(reason="again")
                    with pytest.raises(acprt.RpcError) as caught:
                        await sent.block_task()
                    assert caught.value == acprt.RpcError.request_cancelled()
                    members = {} if reason is None else {"reason": reason}
                    assert await peer.receive() == cancel(request["id"], **members)
                await turns()
                assert peer.unread() == []

        run(main())

    def test_late_answers_are_dropped_and_counted(self, run, era, caplog):
        """A result or an error; a second one matches nothing any more."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                with cx.send_request("a", {}), cx.send_request("b", {}):
                    first, second = await request_of(peer), await request_of(peer)
                peer.respond(first["id"], {})
                peer.respond_error(second["id"], 0, "Request cancelled")
                await until(lambda: cx.status().counters.late_responses == 2)
                assert not caplog.records
                peer.respond(first["id"], {})
                await until(lambda: cx.status().counters.unmatched_responses == 1)

        run(main())

    def test_cancelling_the_task_that_waits_cancels_the_request(self, run, era):
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                task = asyncio.create_task(cx.send_request("a", {}).block_task())
                request = await request_of(peer)
                task.cancel()
                assert await peer.receive() == cancel(request["id"])
                with pytest.raises(asyncio.CancelledError):
                    await task

        run(main())

    def test_request_still_queued_is_taken_back_with_its_cancel(self, run, era):
        """Neither was written, so the peer has nothing to cancel; what else is queued leaves."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                peer.transport.pause_reading()
                cx.send_request("fill", {"text": "x" * 2_000_000}).detach()
                await turns()
                sent = cx.send_request("a", {})
                cx.send_notification("b", {})
                sent.cancel()
                with pytest.raises(acprt.RpcError):
                    await sent.block_task(timeout=5)
                peer.transport.resume_reading()
                assert [(await peer.receive())["method"] for _ in range(2)] == ["fill", "b"]
                await turns()
                assert peer.unread() == []

        run(main())

    def test_reason_that_cannot_be_written_does_not_save_the_request(self, run, era):
        """Half of a surrogate pair is replaced."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                sent = cx.send_request("a", {})
                await request_of(peer)
                sent.cancel(reason="cut \ud83d")
                assert await peer.receive() == cancel(1, reason="cut ?")

        run(main())


class TestWhoSendsRequests:
    def test_modern_server_sends_none(self, run):
        """Refused here, before it is written."""
        server = server_of(MODERN)

        @server.method("ask")
        async def ask(params: Any, cx: acprt.Connection) -> Any:
            with pytest.raises(acprt.RpcError, match="sends no requests"):
                await cx.send_request("sampling/createMessage", {}).block_task()
            return {}

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), MODERN)
            client.send(client.call(1, "ask"))
            assert "result" in await client.peer.receive()
            assert await client.settled() == []
            client.peer.close_write()
            await serving
            await client.peer.aclose()

        run(main())

    def test_modern_client_answers_none(self, run, caplog):
        """It writes no answers, not even refusals; a legacy one does."""
        for era in ERAS:
            client = client_endpoint(era)

            @client.method("sampling/createMessage")
            async def sample(params: Any) -> Any:
                return {}

            async def main(client=client, era=era):
                async with server_for(client) as (_cx, peer):
                    peer.request(0, "sampling/createMessage", {})
                    if era is LEGACY:
                        assert await peer.receive() == {"jsonrpc": "2.0", "id": 0, "result": {}}
                    else:
                        await until(lambda: "sampling/createMessage" in caplog.text)
                        await turns()
                        assert peer.unread() == []

            run(main())

    @pytest.mark.parametrize("spawned", [True, False], ids=["child", "stranger"])
    @pytest.mark.parametrize(
        "line",
        [
            '{"jsonrpc":"2.0","id":9,"method":"x","params":5}',
            '{"jsonrpc":"2.0","id":null,"method":"x"}',
            '{"jsonrpc":"2.0","id":1.5,"method":"x"}',
            '[{"jsonrpc":"2.0","id":9,"method":"x"}]',
            "{nonsense",
        ],
    )
    def test_modern_client_says_nothing_to_what_it_cannot_read(self, run, line, spawned):
        client = client_endpoint(MODERN)

        async def main():
            near, far = acprt.memory_pair(left_is_parent=spawned)
            peer = RawPeer(far)
            async with client.connect(near) as cx:
                peer.send(line)
                sent = cx.send_request("any")
                peer.respond((await peer.receive())["id"], {})
                await sent.block_task()
                assert peer.unread() == []

        run(main())


class TestCascade:
    def test_cancel_reaches_what_the_handler_asked_of_the_client(self, run):
        """Each nested request gets a cancel of its own, and its late answer is dropped."""
        server = server_of(LEGACY)
        ended: list[str] = []

        @server.method("ask")
        async def ask(params: Any, cx: acprt.Connection) -> Any:
            nested = [cx.send_request("sampling/createMessage", {"n": n}) for n in range(2)]
            nested[0].detach()
            try:
                return await nested[1].block_task()
            finally:
                ended.append("ask")

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), LEGACY)
            client.send(client.call(2, "ask"))
            ids = [(await client.peer.receive())["id"] for _ in range(2)]
            client.send(client.cancelled(2, reason="user"))
            cancelled = [await client.peer.receive() for _ in range(2)]
            assert sorted(line["params"]["requestId"] for line in cancelled) == ids
            assert {line["method"] for line in cancelled} == {"notifications/cancelled"}
            for id in ids:
                client.peer.respond(id, {"late": True})
            assert await client.settled() == []
            assert ended == ["ask"]
            client.peer.close_write()
            await serving
            await client.peer.aclose()

        run(main())

    def test_cancelled_handler_can_ask_nothing_more(self, run):
        """It would wait for an answer in the service of nobody; its clean-up goes on."""
        server = server_of(LEGACY)
        told: list[Any] = []

        @server.method("ask")
        async def ask(params: Any, cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                with pytest.raises(acprt.RpcError) as refused:
                    await cx.send_request("roots/list").block_task()
                told.append(refused.value.code)

        async def main():
            async with client_of(server, LEGACY) as client:
                client.send(client.call(1, "ask"))
                await client.settled()
                client.send(client.cancelled(1))
                assert await client.settled() == []
                assert told == [-32800]

        run(main())

    def test_cancel_right_behind_the_answer_to_the_opening_is_heeded(self, run):
        """It is read before the answer's turn has come: the era is not told yet, and can only be the legacy one."""
        client = client_endpoint(None)

        @client.method("ping")
        async def ping(params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                peer.respond_error((await peer.receive())["id"], -32601, "Method not found")
                handshake = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "server", "version": "0"}}
                peer.send(
                    {"jsonrpc": "2.0", "id": (await peer.receive())["id"], "result": handshake},
                    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
                    cancel(1),
                )
                await opening
                await turns()
                assert cx.status().in_flight == []

        run(main())

    def test_client_ends_its_own_handler_for_the_servers_cancel(self, run):
        """The other direction: a server cancels what it asked of the client."""
        client = client_endpoint(LEGACY)
        ended = asyncio.Event()

        @client.method("sampling/createMessage")
        async def sample(params: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def main():
            async with server_for(client) as (_cx, peer):
                peer.request(0, "sampling/createMessage", {})
                peer.notify("notifications/cancelled", {"requestId": "0"})
                peer.notify("notifications/cancelled", {"requestId": 0, "reason": "x"})
                assert await peer.settled() == []

        run(main())


class TestStreams:
    def test_where_a_stream_is_the_cancel_none_is_written(self, run):
        """The transport is told once; and what it tells of the peer's stream is a cancel like any other."""
        closed: list[int] = []
        client = client_endpoint(MODERN, close_stream=closed.append)

        async def main():
            async with server_for(client) as (cx, peer):
                sent = cx.send_request("a", {})
                await request_of(peer)
                sent.cancel()
                sent.cancel()
                with pytest.raises(acprt.RpcError):
                    await sent.block_task()
                await turns()
                assert (closed, peer.unread()) == ([sent.id], [])

        run(main())

    def test_closed_stream_of_the_peer_is_its_cancel(self, run):
        server = server_of(MODERN)
        ended = asyncio.Event()
        connections: list[acprt.Connection] = []

        @server.method("slow")
        async def slow(params: Any, cx: acprt.Connection) -> None:
            connections.append(cx)
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), MODERN)
            client.send(client.call(1, "slow"))
            await until(lambda: connections)
            mcp.stream_closed(connections[0], 1)
            mcp.stream_closed(connections[0], 1)
            await ended.wait()
            assert await client.settled() == []
            client.peer.close_write()
            await serving
            await client.peer.aclose()

        run(main())
