"""Outgoing backpressure: sends never wait, `drain()` does, and a peer that does not read ends the connection."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from acprt.transports.base import Transport
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


@asynccontextmanager
async def unread(kind: str) -> AsyncIterator[Transport]:
    """A transport to a real peer that never reads: a child's stdin, or a TCP connection."""
    if kind == "child":
        yield acprt.AgentProcess(sys.executable, "-c", "import signal; signal.pause()")
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = acprt.streams(*await asyncio.open_connection(*server.getsockname()))
        peer, _ = server.accept()
        with peer:
            yield transport


@pytest.fixture
def short_goodbye(monkeypatch):
    """A stream that its peer does not read is given up earlier than after the second it has."""
    monkeypatch.setattr("acprt.transports.streams._CLOSE_SECONDS", 0.05)


@pytest.mark.parametrize("kind", ["child", "tcp"])
@pytest.mark.usefixtures("short_goodbye")
class TestPeerThatNeverReads:
    """The same over real pipes and sockets, which take some of it."""

    def test_draining_waits(self, run, kind):
        """M-05: also for a producer that waits nowhere else; memory stays below twice the mark."""

        async def main():
            limits = Limits(outbox_high_bytes=MIB, exit_grace_seconds=0.1, term_grace_seconds=0.1, drain_seconds=0.1)
            async with unread(kind) as transport:
                cx = await acprt.Endpoint("a", limits=limits).open(transport)
                stuck, sent = asyncio.get_running_loop().create_future(), 0

                async def produce() -> None:
                    nonlocal sent
                    while sent < 100 * MIB:
                        cx.send_notification("tell", ["x" * 100_000])
                        sent += 100_000
                        if cx.status().outbox.bytes > MIB and not stuck.done():
                            stuck.set_result(None)
                        await cx.drain()

                producing = asyncio.create_task(produce())
                await asyncio.wait_for(stuck, 10)
                for _ in range(100):
                    await asyncio.sleep(0)
                assert not producing.done()
                assert sent < 30 * MIB, "the rest waits for the peer"
                producing.cancel()
                await asyncio.wait([producing])
                await cx.aclose()

        run(main())

    def test_producer_that_never_yields_meets_the_ceiling(self, run, kind):
        """M-05: the transport tells from inside `write` that it holds bytes, so the ceiling is the ceiling."""

        async def main():
            limits = Limits(outbox_max_bytes=MIB, exit_grace_seconds=0.1, term_grace_seconds=0.1, drain_seconds=0.1)
            async with unread(kind) as transport:
                cx = await acprt.Endpoint("a", limits=limits).open(transport)
                with pytest.raises(acprt.RpcError) as caught:
                    for _ in range(1000):
                        cx.send_notification("tell", ["x" * 100_000])
                assert "outbox_max_bytes" in str(caught.value)
                await cx.aclose()

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
