"""Outgoing backpressure: sends never wait, `drain()` does, and a peer that does not read ends the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import brief, endpoint, ok
from tests.runtime.scripted import ScriptedTransport

MIB = 1024 * 1024


async def failure_of(sent: acprt.SentRequest[Any]) -> acprt.RpcError:
    with pytest.raises(acprt.RpcError) as caught:
        await sent.block_task(timeout=5)
    return caught.value


class TestDrain:
    """Where a producer waits."""

    def test_a_producer_that_drains_keeps_memory_flat(self, run):
        """M-05: against a peer that reads slowly; nothing is lost."""

        async def main():
            async with raw_server_for(endpoint(Limits(outbox_high_bytes=50_000))) as (cx, peer):
                highest = 0
                for number in range(300):
                    cx.send_notification("tell", [number, "x" * 10_000])
                    highest = max(highest, cx.status().outbox.bytes)
                    await cx.drain()
                numbers = [line["params"][0] for line in await peer.settled()]
            assert numbers == list(range(300))
            assert highest < 2 * MIB

        run(main())

    def test_draining_in_the_dispatch_loop_is_refused(self, run):
        """DEC-18: it would wait for itself."""

        async def main():
            served = acprt.Endpoint("served")

            @served.on_receive_request("drain")
            async def drain(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked, match="drain"):
                    await cx.drain()
                responder.respond("refused")

            async with raw_client_of(served) as peer:
                peer.request(1, "drain")
                assert brief(await peer.receive()) == ok(1, "refused")

        run(main())


class TestCeiling:
    """Past it the connection ends, by name."""

    def test_a_peer_that_does_not_read_ends_the_connection_by_name(self, run):
        """M-05: messages are never dropped silently."""

        async def main():
            transport = ScriptedTransport()
            with pytest.raises(acprt.RpcError) as caught:
                async with acprt.Endpoint("a", limits=Limits(outbox_max_bytes=MIB)).connect(transport) as cx:
                    transport.stall()
                    waiting = cx.send_request("ask")
                    for _ in range(200):
                        cx.send_notification("tell", ["x" * 10_000])
                    await asyncio.Event().wait()
            assert caught.value.data["reason"] == "outbox_full"
            assert caught.value.data["option"] == "Limits.outbox_max_bytes"
            assert (await failure_of(waiting)).data["reason"] == "connection_failed"

        run(main())
