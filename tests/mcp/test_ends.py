"""EOF with work in flight: nothing is said to a peer that has gone, and the process ends within the drain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.mcp.scripted import ERAS, LEGACY, Client, Tools, client_endpoint, server_for, server_of, until
from tests.rawpeer import RawPeer

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


@both_eras
class TestServer:
    def test_call_that_finishes_within_the_drain_is_answered(self, run, era):
        """A client that writes its requests, closes and reads is served."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), era)
            client.send(client.call(1, "slow"))
            await until(lambda: tools.seen)
            client.peer.close_write()
            await asyncio.sleep(0)
            tools.go.set()
            await asyncio.wait_for(serving, 5)
            assert [line["id"] for line in client.peer.unread()] == [1]
            await client.peer.aclose()

        run(main())

    def test_call_that_does_not_is_cancelled_without_a_word(self, run, era):
        """Its handler sees CancelledError; nothing is written for it."""
        server = server_of(era)
        server.limits = acprt.Limits(drain_seconds=0.02)

        async def main():
            tools = Tools(server)
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), era)
            client.send(client.call(1, "slow"), client.call(2, "stubborn"))
            await until(lambda: tools.seen)
            client.peer.close_write()
            await asyncio.wait_for(serving, 5)
            await client.peer.at_eof.wait()
            assert tools.ended == [("cancelled", None), "swallowed"] or tools.ended == [
                "swallowed",
                ("cancelled", None),
            ]
            assert [line.get("id") for line in client.peer.unread() if "id" in line] in ([], [2])
            await client.peer.aclose()

        run(main())


class TestNested:
    def test_handler_that_waits_for_the_client_ends_with_its_input(self, run):
        """Its question cannot be answered any more: no process hangs for it."""
        server = server_of(LEGACY)
        server.limits = acprt.Limits(drain_seconds=3600.0)
        failed: list[acprt.RpcError] = []

        @server.method("ask")
        async def ask(params: Any, cx: acprt.Connection) -> Any:
            try:
                return await cx.send_request("sampling/createMessage", {}).block_task()
            except acprt.RpcError as error:
                failed.append(error)
                raise

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            client = Client(RawPeer(near), LEGACY)
            client.send(client.call(1, "ask"))
            assert (await client.peer.receive())["method"] == "sampling/createMessage"
            client.peer.close_write()
            await asyncio.wait_for(serving, 5)
            assert [acprt.is_incoming_transport_closed(error) for error in failed] == [True]
            await client.peer.aclose()

        run(main())


@both_eras
class TestClient:
    def test_calls_fail_with_the_connection(self, run, era):
        """With a reason that says so; nothing is cancelled on a pipe that is closed."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                calls = [cx.send_request("tools/call", {}) for _ in range(3)]
                for _ in calls:
                    await peer.receive()
                peer.close_write()
                for call in calls:
                    with pytest.raises(acprt.RpcError) as caught:
                        await call.block_task()
                    assert acprt.is_incoming_transport_closed(caught.value)
                assert peer.unread() == []

        run(main())


class TestContrast:
    """The same handlers under the plain dialect, whose cancelled requests are always answered."""

    def test_cancelled_request_is_answered_there(self, run):
        """-32800, or the result if there is one all the same."""
        server = acprt.Endpoint("plain")

        async def main():
            tools = Tools(server)
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(server.serve(far))
            peer = RawPeer(near)
            peer.request(1, "slow", {})
            peer.request(2, "quick", {"name": "x"})
            assert (await peer.receive())["id"] == 2
            peer.cancel(1)
            assert (await peer.receive())["error"]["code"] == -32800
            assert tools.ended == [("cancelled", None)]
            peer.close_write()
            await serving
            await peer.aclose()

        run(main())
