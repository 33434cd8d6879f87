"""Subscriptions of the modern era: opened, acknowledged first, tagged, and ended in three ways, by either side."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import (
    LEGACY,
    MODERN,
    SUBSCRIPTION,
    Client,
    client_endpoint,
    client_of,
    server_for,
    server_of,
    until,
)
from tests.rawpeer import RawPeer, turns

TOOLS = {"notifications": {"toolsListChanged": True}}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS_CHANGED = "notifications/tools/list_changed"


def graceful(id: Any) -> dict[str, Any]:
    return {"resultType": "complete", "_meta": {SUBSCRIPTION: id}}


def listening_server(offered: mcp.SubscriptionFilter = mcp.EVERYTHING) -> tuple[acprt.Endpoint, list[acprt.Connection]]:
    """A server with subscriptions, and `touch`, which tells them that the tools have changed."""
    server = server_of(MODERN)
    mcp.offer_subscriptions(server, offered)
    connections: list[acprt.Connection] = []

    @server.method("touch")
    async def touch(params: Any, cx: acprt.Connection) -> dict[str, Any]:
        connections[:] = [cx]
        return {"told": mcp.publish(cx, mcp.ToolListChangedNotification())}

    return server, connections


async def connection_of(client: Client, connections: list[acprt.Connection]) -> acprt.Connection:
    client.send(client.call("touch", "touch"))
    await until(lambda: connections)
    while (await client.peer.receive()).get("id") != "touch":
        pass
    return connections[0]


class TestServing:
    def test_acknowledgement_comes_first_and_everything_is_tagged(self, run):
        """With the id as the client spelled it; what was not asked for is not told."""
        server, connections = listening_server()

        async def main():
            async with client_of(server, MODERN) as client:
                listen = client.call("sub-1", "subscriptions/listen", TOOLS)
                client.send(listen, client.call(2, "touch"))
                assert await client.peer.receive() == {
                    "jsonrpc": "2.0",
                    "method": ACKNOWLEDGED,
                    "params": {"notifications": {"toolsListChanged": True}, "_meta": {SUBSCRIPTION: "sub-1"}},
                }
                assert await client.peer.receive() == {
                    "jsonrpc": "2.0",
                    "method": TOOLS_CHANGED,
                    "params": {"_meta": {SUBSCRIPTION: "sub-1"}},
                }
                assert (await client.peer.receive())["result"]["told"] == 1
                cx = connections[0]
                assert mcp.publish(cx, mcp.PromptListChangedNotification()) == 0
                client.send(client.cancelled("sub-1"))

        run(main())

    def test_only_what_is_wanted_and_offered_is_accepted(self, run):
        """The acknowledgement names it; resources by their uris."""
        offered = mcp.SubscriptionFilter(
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=["a:1", "a:2"]
        )
        server, connections = listening_server(offered)
        wanted = {
            "toolsListChanged": False,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": ["a:2", "a:3"],
        }

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call(1, "subscriptions/listen", {"notifications": wanted}))
                accepted = (await client.peer.receive())["params"]["notifications"]
                assert accepted == {"resourcesListChanged": True, "resourceSubscriptions": ["a:2"]}
                cx = await connection_of(client, connections)
                assert mcp.publish(cx, mcp.ToolListChangedNotification()) == 0
                assert mcp.publish(cx, mcp.ResourceListChangedNotification()) == 1
                assert mcp.publish(cx, mcp.ResourceUpdatedNotification(uri="a:3")) == 0
                assert mcp.publish(cx, mcp.ResourceUpdatedNotification(uri="a:2")) == 1
                await client.peer.receive()
                assert (await client.peer.receive())["params"] == {"uri": "a:2", "_meta": {SUBSCRIPTION: 1}}

        run(main())

    def test_cancel_is_silent_and_final(self, run):
        """No result, and no notification, not even one that was queued when the cancel came."""
        server, connections = listening_server()

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call("sub-1", "subscriptions/listen", TOOLS))
                await client.peer.receive()
                cx = await connection_of(client, connections)
                client.peer.transport.pause_reading()
                cx.send_notification("fill", {"text": "x" * 2_000_000})
                await turns()
                assert mcp.publish(cx, mcp.ToolListChangedNotification()) == 1
                client.send(client.cancelled("sub-1", reason="user"))
                await until(lambda: not cx.status().in_flight)
                assert mcp.publish(cx, mcp.ToolListChangedNotification()) == 0
                client.peer.transport.resume_reading()
                assert [line["method"] for line in await client.settled()] == ["fill"]

        run(main())

    def test_server_ends_one_with_its_result(self, run):
        """And nothing of it after that; others live on. An id that names none is False."""
        server, connections = listening_server()

        async def main():
            async with client_of(server, MODERN) as client:
                for id in ("a", 1):
                    client.send(client.call(id, "subscriptions/listen", TOOLS))
                    await client.peer.receive()
                cx = await connection_of(client, connections)
                assert await mcp.end_subscription(cx, "1") is False
                assert await mcp.end_subscription(cx, 1) is True
                assert await mcp.end_subscription(cx, 1) is False
                assert await client.peer.receive() == {"jsonrpc": "2.0", "id": 1, "result": graceful(1)}
                assert mcp.publish(cx, mcp.ToolListChangedNotification()) == 1
                assert (await client.peer.receive())["params"]["_meta"] == {SUBSCRIPTION: "a"}
                client.send(client.cancelled(1), client.cancelled("a"))
                assert await client.settled() == []

        run(main())

    def test_result_that_is_still_queued_is_withdrawn_by_a_cancel(self, run):
        """Teardown and cancel cross: both are final, neither is answered."""
        server, connections = listening_server()

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call("sub-1", "subscriptions/listen", TOOLS))
                await client.peer.receive()
                cx = await connection_of(client, connections)
                client.peer.transport.pause_reading()
                cx.send_notification("fill", {"text": "x" * 2_000_000})
                await turns()
                await mcp.end_subscription(cx, "sub-1")
                client.send(client.cancelled("sub-1"))
                await turns()
                client.peer.transport.resume_reading()
                assert [line.get("method") for line in await client.settled()] == ["fill"]

        run(main())

    def test_end_of_input_ends_them_gracefully_and_at_once(self, run):
        """While the pipe is writable; the drain does not wait for a subscription."""
        server, _connections = listening_server()
        server.limits = acprt.Limits(drain_seconds=3600.0)

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), MODERN)
            client.send(client.call("sub-1", "subscriptions/listen", TOOLS))
            await client.peer.receive()
            client.peer.close_write()
            await asyncio.wait_for(serving, 5)
            assert client.peer.unread() == [{"jsonrpc": "2.0", "id": "sub-1", "result": graceful("sub-1")}]
            await client.peer.aclose()

        run(main())

    def test_close_on_this_side_ends_them_gracefully_too(self, run):
        """Calls get nothing."""
        server, _connections = listening_server()
        started = asyncio.Event()

        @server.method("slow")
        async def slow(params: Any) -> None:
            started.set()
            await asyncio.Event().wait()

        async def main():
            near, far = acprt.memory_pair()
            cx = await server.open(far)
            client = Client(RawPeer(near), MODERN)
            client.send(client.call("sub-1", "subscriptions/listen", TOOLS), client.call(2, "slow"))
            await client.peer.receive()
            await started.wait()
            await cx.aclose()
            await client.peer.at_eof.wait()
            assert client.peer.unread() == [{"jsonrpc": "2.0", "id": "sub-1", "result": graceful("sub-1")}]
            await client.peer.aclose()

        run(main())

    def test_handler_of_ones_own_can_be_ended_too(self, run):
        """Its task is cancelled behind the result."""
        server = server_of(MODERN)
        connections: list[acprt.Connection] = []
        ended = asyncio.Event()

        @server.method
        async def listen(request: mcp.ListenRequest, cx: acprt.Connection) -> Any:
            connections.append(cx)
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call(5, "subscriptions/listen", TOOLS))
                await until(lambda: connections)
                assert await mcp.end_subscription(connections[0], 5)
                await ended.wait()
                assert await client.peer.receive() == {"jsonrpc": "2.0", "id": 5, "result": graceful(5)}
                assert await client.settled() == []

        run(main())


async def opened(cx: acprt.Connection, peer: RawPeer) -> tuple[acprt.SentRequest[mcp.SubscriptionClosed], int]:
    wanted = mcp.SubscriptionFilter(tools_list_changed=True)
    sent = cx.send_request(mcp.ListenRequest(notifications=wanted))
    request = await peer.receive()
    assert request["params"]["notifications"] == {"toolsListChanged": True}
    peer.notify(ACKNOWLEDGED, TOOLS | {"_meta": {SUBSCRIPTION: request["id"]}})
    return sent, request["id"]


class TestListening:
    def test_result_is_a_graceful_end_by_the_server(self, run):
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)
                peer.respond(id, graceful(id))
                closed = await sent.block_task()
                assert closed == mcp.SubscriptionClosed(closed_by="server", result=graceful(id))

        run(main())

    def test_cancel_by_the_server_is_an_end_in_its_place_and_gets_no_echo(self, run):
        """What came before it is handled first; nothing is written, not even when the handle is dropped."""
        client = client_endpoint(MODERN)
        steps: list[Any] = []

        @client.on_receive_notification
        async def changed(note: mcp.ToolListChangedNotification) -> None:
            await asyncio.sleep(0)
            steps.append("changed")

        async def main():
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)

                async def ended(result: acprt.Result[mcp.SubscriptionClosed]) -> None:
                    steps.append(result)

                sent.on_receiving_result(ended)
                tagged = {"_meta": {SUBSCRIPTION: id}}
                peer.send(
                    {"jsonrpc": "2.0", "method": TOOLS_CHANGED, "params": tagged},
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/cancelled",
                        "params": {"requestId": id, "reason": "shutdown"} | tagged,
                    },
                    {"jsonrpc": "2.0", "method": TOOLS_CHANGED, "params": tagged},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}},
                    {"jsonrpc": "2.0", "id": id, "result": graceful(id)},
                )
                closed = mcp.SubscriptionClosed(closed_by="server", reason="shutdown")
                await until(lambda: cx.status().counters.unmatched_responses)
                assert steps[0] == "changed"
                assert acprt.Ok(closed) in steps
                del sent
                await turns()
                assert peer.unread() == []

        run(main())

    def test_own_cancel_is_an_end_by_the_client(self, run):
        """Silent on the other side; crossing with the server's it changes nothing."""
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)
                sent.cancel(reason="done")
                assert await sent.block_task() == mcp.SubscriptionClosed(closed_by="client")
                assert (await peer.receive())["params"] == {"requestId": id, "reason": "done"}
                peer.notify("notifications/cancelled", {"requestId": id})
                peer.respond(id, graceful(id))
                await until(lambda: cx.status().counters.late_responses)
                assert peer.unread() == []

        run(main())

    def test_lost_connection_is_an_error_and_the_next_process_is_asked_anew(self, run):
        """The server keeps nothing: a new connection needs a new subscription."""
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                sent, _id = await opened(cx, peer)
                peer.close_write()
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                assert acprt.is_incoming_transport_closed(caught.value)
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)
                peer.respond(id, graceful(id))
                assert (await sent.block_task()).closed_by == "server"

        run(main())

    def test_refusal_is_an_error(self, run):
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)
                peer.respond_error(id, -32601, "Method not found")
                with pytest.raises(acprt.RpcError, match="Method not found"):
                    await sent.block_task()

        run(main())

    def test_server_cannot_cancel_anything_else(self, run):
        """A tool call of ours, something unknown, what is malformed: ignored."""
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                sent = cx.send_request("tools/call", {})
                id = (await peer.receive())["id"]
                listen, listened = await opened(cx, peer)
                for params in (
                    {"requestId": id},
                    {"requestId": 99},
                    {"requestId": str(listened)},
                    {"requestId": listened, "reason": None},
                    {"requestId": listened, "_meta": {SUBSCRIPTION: "other"}},
                ):
                    peer.notify("notifications/cancelled", params)
                peer.respond(id, {"done": True})
                assert await sent.block_task() == {"done": True}
                dialect = cx.dialect
                assert isinstance(dialect, mcp.McpDialect)
                assert dialect.dropped_cancels == 5
                peer.respond(listened, graceful(listened))
                assert (await listen.block_task()).closed_by == "server"

        run(main())

    def test_notifications_of_no_live_subscription_are_not_heard(self, run):
        """Of one that ended, of none, and under a tag that nobody gave; in the legacy era they need no tag."""
        heard: list[Any] = []

        async def main():
            for era, expected in ((MODERN, ["live"]), (LEGACY, ["untagged"])):
                client = client_endpoint(era)

                @client.on_receive_notification
                async def changed(note: mcp.ToolListChangedNotification) -> None:
                    heard.append("live" if note.meta else "untagged")

                async with server_for(client) as (cx, peer):
                    id: Any = None
                    if era is MODERN:
                        sent, id = await opened(cx, peer)
                        gone, dead = await opened(cx, peer)
                        gone.cancel()
                        gone.detach()
                        for meta in (
                            {"_meta": {SUBSCRIPTION: dead}},
                            {"_meta": {SUBSCRIPTION: str(id)}},
                            {},
                            {"_meta": 1},
                        ):
                            peer.notify(TOOLS_CHANGED, meta)
                        peer.notify(TOOLS_CHANGED, {"_meta": {SUBSCRIPTION: id}})
                        sent.detach()
                    else:
                        peer.notify(TOOLS_CHANGED)
                    await until(lambda: heard)
                    await turns()
                    assert heard == expected
                    heard.clear()

        run(main())

    @pytest.mark.parametrize("end", ["result", "cancel"])
    def test_nothing_behind_an_end_is_heard(self, run, end):
        """In the same chunk, too; what stands in front of it is."""
        client = client_endpoint(MODERN)
        heard: list[Any] = []

        @client.on_receive_notification
        async def changed(note: mcp.ToolListChangedNotification) -> None:
            heard.append(note)

        async def main():
            async with server_for(client) as (cx, peer):
                sent, id = await opened(cx, peer)
                note = {"jsonrpc": "2.0", "method": TOOLS_CHANGED, "params": {"_meta": {SUBSCRIPTION: id}}}
                ends = {
                    "result": {"jsonrpc": "2.0", "id": id, "result": {}},
                    "cancel": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}},
                }
                peer.send(note, ends[end], note)
                assert (await sent.block_task()).closed_by == "server"
                await turns()
                assert len(heard) == 1

        run(main())

    def test_both_ends_of_acprt(self, run):
        """Published by one, heard by the other, ended by the server."""
        server, _connections = listening_server()
        server_cx: list[acprt.Connection] = []
        heard = asyncio.Event()
        client = client_endpoint(MODERN)

        @server.on_receive_notification("ready")
        async def ready(params: Any, cx: acprt.Connection) -> None:
            server_cx.append(cx)

        @client.on_receive_notification
        async def changed(note: mcp.ToolListChangedNotification) -> None:
            heard.set()

        async def main():
            async with client.connect(server) as cx:
                wanted = mcp.SubscriptionFilter(tools_list_changed=True)
                listen = cx.send_request(mcp.ListenRequest(notifications=wanted))
                cx.send_notification("ready")
                await until(lambda: server_cx)
                assert mcp.publish(server_cx[0], mcp.ToolListChangedNotification()) == 1
                await heard.wait()
                assert await mcp.end_subscription(server_cx[0], listen.id)
                assert (await listen.block_task()).closed_by == "server"

        run(main())
