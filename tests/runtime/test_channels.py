"""Frames between programs: taps that change nothing, transports of anybody's making, and an honest end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from acprt.transports.base import Sink
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import batch, brief, briefs, call, endpoint, note, ok
from tests.runtime.scripted import ScriptedTransport, until_idle


class TestTaps:
    """A trace sink sees every line in both directions and changes nothing."""

    def test_a_tap_sees_every_line_as_it_is(self, run):
        """CH-08: batches as one line, malformed lines too, each with its direction and size."""

        async def main():
            seen: list[acprt.TraceEvent] = []
            served = endpoint()
            served.trace(seen.append)
            lines = [call("1"), b"hello", batch(call("2"), note()), b'{"jsonrpc":"2.0","id":9,"result":1}']
            async with raw_client_of(served) as peer:
                peer.send(*lines)
                replies = await peer.settled()
            assert [event.line for event in seen if event.direction == "in"][:4] == lines
            assert [event.size for event in seen if event.direction == "in"][:4] == [len(line) for line in lines]
            assert len([event for event in seen if event.direction == "out"]) == len(replies) + 1
            assert len({event.connection for event in seen}) == 1

        run(main())

    def test_what_passes_is_the_same_with_and_without_a_tap(self, run):
        """CH-08."""

        async def exchange(tapped: bool) -> list[Any]:
            served = endpoint()
            if tapped:
                served.trace(lambda event: None)
            async with raw_client_of(served) as peer:
                peer.send(call("1"), b"{}", b"[1]", batch(call("2"), note()))
                return await peer.settled()

        assert run(exchange(True)) == run(exchange(False))


class RewritingTransport:
    """Any object with the methods of a transport is one: this one wraps another and rewrites lines both ways."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, sink: Sink, limits: Limits) -> None:
        self._sink = sink
        self._inner.open(self, limits)

    def write(self, data: bytes) -> None:
        self._inner.write(data.replace(b"inside", b"outside"))

    def lines_received(self, lines: list[Any]) -> None:
        self._sink.lines_received([line.replace(b"outside", b"inside") for line in lines])

    def eof_received(self) -> None:
        self._sink.eof_received()

    def connection_lost(self, error: Exception) -> None:
        self._sink.connection_lost(error)

    def pause_writing(self) -> None:
        self._sink.pause_writing()

    def resume_writing(self) -> None:
        self._sink.resume_writing()


class TestTransportsOfAnybody:
    """The contract is a handful of methods; nothing is erased and nothing registered."""

    def test_a_wrapper_may_rewrite_every_line(self, run):
        """CH-13, CH-12."""

        async def main():
            near, far = acprt.memory_pair()
            served = acprt.Endpoint("served")

            @served.on_receive_request("inside")
            async def inside(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(["inside", params])

            serving = asyncio.ensure_future(served.serve(RewritingTransport(far)))
            async with acprt.Endpoint("caller").connect(near) as cx:
                reply = await cx.send_request("outside", ["outside"]).block_task()
            await serving
            assert reply == ["outside", ["outside"]]

        run(main())

    def test_streams_are_given_in_the_order_of_asyncio(self, run):
        """CH-13: reader, then writer, as `open_connection` and `start_server` give them."""

        async def main():
            done = asyncio.Event()

            async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await endpoint().serve(acprt.streams(reader, writer))
                done.set()

            server = await asyncio.start_server(on_client, "127.0.0.1", 0)
            address = server.sockets[0].getsockname()[:2]
            async with acprt.Endpoint("caller").connect(acprt.streams(*await asyncio.open_connection(*address))) as cx:
                assert await cx.send_request("echo", [1]).block_task() == [1]
            await done.wait()
            server.close()
            await server.wait_closed()

        run(main())

    def test_a_connection_tells_its_name_and_its_state(self, run):
        """CH-12."""

        async def main():
            async with raw_server_for(acprt.Endpoint("my agent")) as (cx, _):
                assert repr(cx) == "<Connection my agent open>"
            assert repr(cx) == "<Connection my agent ended>"

        run(main())


class TestHonestEnds:
    """Success is reported when everything is written; an I/O failure only ever as an error."""

    def test_serving_is_not_done_while_something_is_unwritten(self, run):
        """CH-10, LC-02: the last answer has left before `serve` returns."""

        async def main():
            transport = ScriptedTransport()
            serving = asyncio.ensure_future(endpoint().serve(transport))
            await until_idle()
            transport.stall()
            transport.deliver(call("1"), call("2"))
            transport.end()
            await until_idle()
            assert not serving.done()
            transport.flow()
            await asyncio.wait_for(serving, 5)
            assert [brief(line) for line in transport.written] == [ok(1), ok(2)]
            assert transport.closed

        run(main())

    def test_a_read_error_is_raised_and_not_taken_for_an_end(self, run):
        """CH-11, TF-01: no line and no EOF stands for it."""

        async def main():
            closed: list[str] = []
            served = endpoint()

            @served.on_close
            async def on_close(cx: acprt.Connection) -> None:
                closed.append("clean")

            transport = ScriptedTransport()
            serving = asyncio.ensure_future(served.serve(transport))
            await until_idle()
            transport.lose(OSError("the disk is on fire"))
            with pytest.raises(OSError, match="on fire"):
                await asyncio.wait_for(serving, 5)
            assert closed == []

        run(main())

    def test_an_error_ends_serving_at_once_with_work_under_way(self, run):
        """CH-10: an error need not wait for what it makes pointless."""

        async def main():
            served = endpoint()
            stopped = asyncio.Event()

            @served.method("wait")
            async def wait(_params: Any) -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.set()

            transport = ScriptedTransport()
            serving = asyncio.ensure_future(served.serve(transport))
            await until_idle()
            transport.deliver(batch(call("1", "wait")))
            await until_idle()
            transport.lose(BrokenPipeError("gone"))
            with pytest.raises(BrokenPipeError):
                await asyncio.wait_for(serving, 5)
            assert stopped.is_set()

        run(main())

    def test_two_endpoints_joined_in_process_speak_frames(self, run):
        """CH-06: the same bytes as over a pipe, batches and bad lines included."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(batch(call("1"), b"7"), b"hello")
                assert [briefs(line) for line in await peer.settled()] == [[ok(1), (None, -32600)], (None, -32700)]

        run(main())
