"""Foreground mode: an `async with` block beside a connection, and `open()`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from acprt.runtime.responder import current_request
from acprt.transports.base import Sink
from tests.rawpeer import raw_server_for
from tests.runtime.scripted import ScriptedTransport, notification, request, result, scripted, until_idle


class TestBlock:
    def test_block_runs_beside_the_connection_and_may_return(self, run):
        """LC-08: leaving it ends the connection."""

        async def main():
            async def work() -> Any:
                async with raw_server_for(acprt.Endpoint("near")) as (cx, peer):
                    sent = cx.send_request("m")
                    peer.respond(sent.id, "value")
                    return await sent.block_task(), cx, peer

            value, cx, peer = await work()
            assert value == "value"
            assert cx.status().state == "ended"
            assert peer.at_eof.is_set()

        run(main())

    def test_error_of_the_block_comes_out_as_it_is(self, run):
        """LC-11: the very same exception, no group, no wrapping."""
        error = KeyError("mine")

        async def main():
            transport = ScriptedTransport()
            with pytest.raises(KeyError) as caught:
                async with acprt.Endpoint("near").connect(transport):
                    raise error
            assert caught.value is error
            assert transport.closed

        run(main())

    def test_last_message_of_the_block_leaves(self, run):
        """LC-09, PY-62: queued output is written before the connection closes."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                for n in range(50):
                    cx.send_notification("n", [n])
            assert transport.written == [notification("n", [n]) for n in range(50)]

        run(main())

    def test_clean_eof_leaves_the_block_running(self, run):
        """LC-12, EO-09: with close callbacks that succeed; the block decides."""
        endpoint = acprt.Endpoint("near")
        closed = asyncio.Event()

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            closed.set()

        async def main():
            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()
                await until_idle()
                cx.send_notification("still here")
            assert closed.is_set()
            assert transport.written == [notification("still here")]

        run(main())

    def test_block_that_ends_before_the_eof_runs_no_close_callback(self, run):
        """EO-11, EO-17."""
        endpoint = acprt.Endpoint("near")

        called: list[acprt.Connection] = []

        @endpoint.on_close
        async def bye(cx: acprt.Connection) -> None:
            called.append(cx)

        async def main():
            async with endpoint.connect(ScriptedTransport()):
                pass

        run(main())
        assert called == []

    def test_transport_that_cannot_be_opened_raises_from_connect(self, run):
        """AG-11: what the transport says, and nothing is left behind."""

        class Closed(ScriptedTransport):
            def open(self, sink: Sink, limits: Limits) -> None:
                raise OSError("no such pipe")

        async def main():
            before = asyncio.all_tasks()
            with pytest.raises(OSError, match="no such pipe"):
                async with acprt.Endpoint("near").connect(Closed()):
                    raise AssertionError("the block must not run")
            with pytest.raises(OSError, match="no such pipe"):
                await acprt.Endpoint("near").open(Closed())
            with pytest.raises(OSError, match="no such pipe"):
                await acprt.Endpoint("near").serve(Closed())
            assert asyncio.all_tasks() == before

        run(main())

    def test_write_that_fails_while_leaving_is_logged_and_the_block_stands(self, run, caplog):
        """TF-06, PY-62: the work of the block was done; `serve()` raises in this case (test_serve_drain.py)."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                cx.send_notification("last words")
                transport.drain_error = BrokenPipeError("gone")

        with caplog.at_level(logging.DEBUG, "acprt.dispatch"):
            run(main())
        assert "gone" in caplog.text


class TestOpen:
    def test_connection_outlives_the_task_that_opened_it(self, run):
        """Open here, close there."""

        async def main():
            transport = ScriptedTransport()

            async def open_it() -> acprt.Connection:
                return await acprt.Endpoint("near").open(transport)

            cx = await asyncio.create_task(open_it())
            sent = cx.send_request("m")
            await until_idle()
            transport.deliver(result(sent.id, 1))
            assert await sent.block_task() == 1
            await asyncio.create_task(cx.aclose())
            assert transport.closed

        run(main())

    def test_closing_in_any_order(self, run):
        """Reference wishes: not only in reverse."""

        async def main():
            transports = [ScriptedTransport() for _ in range(3)]
            opened = [await acprt.Endpoint(str(n)).open(each) for n, each in enumerate(transports)]
            for n in (1, 0, 2):
                await opened[n].aclose()
            assert all(each.closed for each in transports)

        run(main())

    def test_peers_may_be_kept_on_the_connection(self, run):
        """DEC-31: `cx.peer` is assignable, `cx.name` is the endpoint's."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                assert (cx.name, cx.peer) == ("near", None)
                cx.peer = {"version": 1}
                assert cx.peer == {"version": 1}
                transport.deliver(request(1, "m"))
                await until_idle()

        run(main())


class TestOpenedInsideAHandler:
    """A connection opened while a request of another one's peer is served."""

    def test_it_does_not_serve_that_request(self, run):
        """DEC-13: neither its ordered handlers nor its requests belong to the request in whose handler it began."""

        async def main():
            served = acprt.Endpoint("served")
            outer: list[Any] = []
            seen: list[Any] = []
            inner = acprt.Endpoint("inner")

            @inner.on_receive_notification("n")
            async def n(_params: Any) -> None:
                seen.append(current_request.get())

            @inner.method("m")
            async def m(_params: Any) -> None:
                request_served = current_request.get()
                assert request_served is not None
                seen.append(request_served.method)

            @served.method("open")
            async def open_another(_params: Any) -> None:
                outer.append(current_request.get())
                async with scripted(inner) as (cx, transport):
                    transport.deliver(notification("n"), request(1, "m"))
                    await until_idle()
                    sent = cx.send_request("ask")
                    outer.append(sent._call.owner)
                    sent.detach()

            async with scripted(served) as (_cx, transport):
                transport.deliver(request(1, "open"))
                await until_idle()
                await asyncio.wait_for(_answered(transport), 5)
            assert outer[0].method == "open"
            assert outer[1] is None
            assert seen == [None, "m"]

        run(main())


async def _answered(transport: ScriptedTransport) -> None:
    while not transport.written:
        await asyncio.sleep(0)
