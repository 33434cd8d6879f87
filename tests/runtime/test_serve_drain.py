"""Reactive mode after EOF: accepted work finishes in bounded time, and everything is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of
from tests.runtime.scripted import notification, request, result, served, until_idle


class TestDrain:
    """`serve` returns when the bytes have left the process, or says that they could not (LC-02, LC-05, LC-06)."""

    def test_returns_only_when_everything_is_written(self, run):
        """LC-02, PY-65: through a peer that takes its time."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            return "answer"

        async def main():
            serving, transport = await served(endpoint)
            transport.stall()
            transport.deliver(request(1, "ask"))
            transport.end()
            await until_idle()
            assert not serving.done()
            transport.flow()
            await asyncio.wait_for(serving, 5)
            assert transport.written == [result(1, "answer")]
            assert transport.closed

        run(main())

    def test_output_queued_before_eof_is_written(self, run):
        """LC-02: much more than a pipe or the transport takes at once, in order."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_notification("go")
        async def go(_params: Any, cx: acprt.Connection) -> None:
            for n in range(3000):
                cx.send_notification("n", {"n": n, "filler": "x" * 1000})

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.notify("go")
                peer.close_write()
                for n in range(3000):
                    assert (await peer.receive())["params"]["n"] == n
                await asyncio.wait_for(peer.at_eof.wait(), 5)

        run(main())

    def test_half_closed_peer_that_does_not_read_is_given_up(self, run, caplog):
        """LC-05 with a bound (PY-43): `drain_seconds`, then it says so and returns."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(drain_seconds=0.05))

        async def main():
            serving, transport = await served(endpoint)
            transport.stall()
            transport.deliver(request(1, "nobody"))
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.closed

        run(main())
        assert "queued output was not written" in caplog.text

    @pytest.mark.parametrize("eof_first", [True, False])
    def test_vanished_reader_is_raised(self, run, eof_first):
        """LC-06, DEC-26, TF-02: there was something left to say and nobody to hear it."""
        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            await release.wait()
            return "answer"

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(endpoint.serve(far))
            peer = RawPeer(near)
            peer.request(1, "ask")
            await peer.settled()
            if eof_first:
                peer.close_write()
                await until_idle()
            await peer.aclose()
            release.set()
            with pytest.raises(BrokenPipeError):
                await asyncio.wait_for(serving, 5)

        run(main())

    def test_vanished_reader_that_is_owed_nothing_is_a_clean_end(self, run):
        """LC-06: nothing to write, nothing to complain of."""

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(acprt.Endpoint("x").serve(far))
            peer = RawPeer(near)
            await peer.settled()
            await peer.aclose()
            await asyncio.wait_for(serving, 5)

        run(main())

    @pytest.mark.parametrize("error", [BrokenPipeError("gone"), OSError("disk full")])
    def test_failure_of_the_last_write_is_raised(self, run, error):
        """LC-06, TF-02, TF-06: found only while the rest was leaving."""

        async def main():
            serving, transport = await served(acprt.Endpoint("x"))
            transport.drain_error = error
            transport.end()
            with pytest.raises(type(error), match=str(error)):
                await asyncio.wait_for(serving, 5)

        run(main())

    def test_error_reported_while_the_rest_is_leaving_is_raised(self, run):
        """TF-03, TF-06: it beats an end that was clean so far."""

        async def main():
            serving, transport = await served(acprt.Endpoint("x"))
            transport.stall()
            transport.end()
            await until_idle()
            transport.lose(OSError("lost on the last metre"))
            transport.flow()
            with pytest.raises(OSError, match="last metre"):
                await asyncio.wait_for(serving, 5)

        run(main())

    def test_full_duplex_peer_cannot_deadlock_the_drain(self, run):
        """TF-05: it writes more than anybody reads before it reads what we owe it."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(inbox_frames=10, drain_seconds=0.2))

        @endpoint.on_receive_notification("stall")
        async def stall(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            near, far = acprt.memory_pair()
            cx = await endpoint.open(far)
            peer = RawPeer(near)
            for n in range(30):
                peer.notify("stall", [n])
                await until_idle()
            written = asyncio.create_task(near.drain())
            await until_idle()
            assert not written.done()
            cx.send_notification("last")
            closing = asyncio.create_task(cx.aclose())
            await asyncio.wait_for(written, 5)
            await asyncio.wait_for(closing, 5)
            assert await peer.receive() == notification("last")

        run(main())

    def test_output_is_flushed_through_streams_too(self, run):
        """LC-02, TF-08: one path for every transport; the bytes have left when `serve` returns."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("big")
        async def big(params: Any) -> str:
            return "x" * params["size"]

        async def main():
            finished = asyncio.Event()

            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await endpoint.serve(acprt.streams(reader, writer))
                finished.set()

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            try:
                reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
                size = 4 * 1024 * 1024
                writer.write(b'{"jsonrpc":"2.0","id":1,"method":"big","params":{"size":%d}}\n' % size)
                writer.write_eof()
                data = await asyncio.wait_for(reader.read(-1), 10)
                assert len(data) == size + len(b'{"jsonrpc":"2.0","id":1,"result":""}\n')
                await asyncio.wait_for(finished.wait(), 5)
                writer.close()
                await writer.wait_closed()
            finally:
                server.close()
                await server.wait_closed()

        run(main())

    def test_closing_our_side_leaves_the_other_open(self, run):
        """TF-04: a half-close is an EOF for the peer only; what it still sends is delivered."""
        endpoint = acprt.Endpoint("x")
        heard: list[Any] = []

        @endpoint.on_receive_notification("n")
        async def note(params: Any) -> None:
            heard.append(params)

        async def main():
            near, far = acprt.memory_pair()
            cx = await endpoint.open(far)
            peer = RawPeer(near)
            far.close_write()
            await asyncio.wait_for(peer.at_eof.wait(), 5)
            peer.notify("n", [1])
            await until_idle()
            assert heard == [[1]]
            peer.close_write()
            await asyncio.wait_for(cx.incoming_closed(), 5)
            await cx.aclose()
            await peer.aclose()

        run(main())
