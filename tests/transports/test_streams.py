"""`streams()` over real sockets: lines in bulk, honest flow control, a close that no peer can hold up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from acprt.limits import DEFAULT_LIMITS, Limits
from acprt.transports.streams import StreamsTransport, streams
from acprt.wire.lines import OversizedLine

MIB = 1024 * 1024


class Sink:
    """Remembers what it was told, in order."""

    def __init__(self) -> None:
        self.lines: list[bytes | OversizedLine] = []
        self.batches = 0
        self.calls: list[str] = []
        self.error: Exception | None = None
        self.some = asyncio.Event()
        self.paused = asyncio.Event()
        self.resumed = asyncio.Event()
        self.ended = asyncio.Event()

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        assert lines
        assert not self.ended.is_set()
        self.lines += lines
        self.batches += 1
        self.some.set()

    def eof_received(self) -> None:
        self.calls.append("eof")
        self.ended.set()

    def connection_lost(self, error: Exception) -> None:
        self.calls.append("lost")
        self.error = error
        self.ended.set()

    def pause_writing(self) -> None:
        self.calls.append("pause")
        self.paused.set()

    def resume_writing(self) -> None:
        self.calls.append("resume")
        self.resumed.set()


@asynccontextmanager
async def connected(
    limits: Limits = DEFAULT_LIMITS, send_buffer: int | None = None, **options: Any
) -> AsyncIterator[tuple[StreamsTransport, Sink, socket.socket]]:
    """An open transport, its sink, and the peer's socket (non-blocking, for the loop's `sock_*` calls)."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    if send_buffer is not None:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    transport = streams(*await asyncio.open_connection(sock=ours), **options)
    sink = Sink()
    transport.open(sink, limits)
    try:
        yield transport, sink, theirs
    finally:
        await transport.aclose()
        theirs.close()


async def read_all(peer: socket.socket) -> bytes:
    chunks = []
    while chunk := await asyncio.get_running_loop().sock_recv(peer, MIB):
        chunks.append(chunk)
    return b"".join(chunks)


async def send(peer: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(peer, data)


async def ticks(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_lines_both_ways_over_tcp(run) -> None:
    """The ordinary case: a server end and a client end, each on `streams()`."""

    async def main() -> None:
        served: asyncio.Future[tuple[StreamsTransport, Sink]] = asyncio.get_running_loop().create_future()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            transport, sink = streams(reader, writer), Sink()
            transport.open(sink, DEFAULT_LIMITS)
            served.set_result((transport, sink))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        client = streams(*await asyncio.open_connection(*server.sockets[0].getsockname()))
        sink = Sink()
        client.open(sink, DEFAULT_LIMITS)
        client.write(b"ping\n")
        transport, server_sink = await served
        await server_sink.some.wait()
        transport.write(b"pong\n")
        await sink.some.wait()
        client.close_write()
        await server_sink.ended.wait()
        assert (server_sink.lines, sink.lines) == ([b"ping"], [b"pong"])
        await transport.aclose()
        await sink.ended.wait()
        assert (server_sink.calls, sink.calls) == (["eof"], ["eof"])
        await client.aclose()
        server.close()

    run(main())


def test_a_line_past_the_stream_limit_is_an_ordinary_line(run) -> None:
    """The 64 KiB of `readline` are not ours; only `Limits.line_bytes` counts, and costs one line."""

    async def main() -> None:
        async with connected(Limits(line_bytes=MIB)) as (_, sink, peer):
            await send(peer, b"a" * MIB + b"\r\n" + b"b" * (MIB + 1) + b"\nafter\n")
            peer.shutdown(socket.SHUT_WR)
            await sink.ended.wait()
            good, too_long, after = sink.lines
            assert good == b"a" * MIB
            assert isinstance(too_long, OversizedLine)
            assert too_long.size == MIB + 1
            assert after == b"after"

    run(main())


def test_unterminated_tail_is_a_line_and_then_comes_the_end(run) -> None:
    """FR-03, and writing still works after the peer's end: half-close."""

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            await send(peer, b"one\ntw")
            await send(peer, b"o")
            peer.shutdown(socket.SHUT_WR)
            await sink.ended.wait()
            assert sink.lines == [b"one", b"two"]
            assert sink.calls == ["eof"]
            transport.write(b"answer\n")
            await transport.drain()
            assert await asyncio.get_running_loop().sock_recv(peer, 100) == b"answer\n"

    run(main())


def test_nothing_but_a_pause_is_called_from_inside_open_or_write(run, monkeypatch) -> None:
    """The Sink contract of transports/base.py: a writer that never yields is told to wait, too."""
    monkeypatch.setattr("acprt.transports.streams._CLOSE_SECONDS", 0.05)  # nobody reads what was written

    async def main() -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"early\n")
        theirs.shutdown(socket.SHUT_WR)
        transport, sink = streams(*await asyncio.open_connection(sock=ours)), Sink()
        await ticks()
        transport.open(sink, DEFAULT_LIMITS)
        transport.write(b"x" * 8 * MIB)
        assert (sink.lines, sink.calls) == ([], ["pause"])
        await sink.ended.wait()
        await transport.aclose()
        theirs.close()

    run(main())


def test_pause_and_resume_of_writing_follow_the_peer(run) -> None:
    """Pause once while bytes are left, resume once when all have left the process, and `drain` means the same."""

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            transport.write(b"small\n")
            await ticks()
            assert sink.calls == []
            data = b"x" * (4 * MIB)
            transport.write(data)
            await sink.paused.wait()
            transport.write(b"more")
            drained = asyncio.create_task(transport.drain())
            await ticks()
            assert sink.calls == ["pause"]
            assert not drained.done()
            transport.close_write()
            assert await read_all(peer) == b"small\n" + data + b"more"
            await drained
            await sink.resumed.wait()
            assert sink.calls == ["pause", "resume"]

    run(main())


def test_drain_waits_for_the_last_byte(run) -> None:
    """A stream's own `drain` is content below its low-water mark; here it means that all has left the process."""

    async def main() -> None:
        async with connected(send_buffer=4096) as (transport, sink, peer):
            transport.write(b"x" * 40_000)
            drained = asyncio.create_task(transport.drain())
            await sink.paused.wait()
            await ticks()
            assert not drained.done()
            received = 0
            while received < 40_000:
                received += len(await asyncio.get_running_loop().sock_recv(peer, MIB))
            await drained

    run(main())


def test_paused_reading_delivers_nothing_and_pushes_back(run) -> None:
    """The peer stops, then nothing is lost."""

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            await send(peer, b"first\n")
            await sink.some.wait()
            transport.pause_reading()
            sending = asyncio.create_task(send(peer, b"x" * 8 * MIB + b"\n"))
            await ticks(200)
            assert sink.lines == [b"first"]
            assert not sending.done()
            transport.resume_reading()
            await sending
            peer.shutdown(socket.SHUT_WR)
            await sink.ended.wait()
            assert [len(line) for line in sink.lines] == [5, 8 * MIB]

    run(main())


def test_end_is_not_told_while_reading_is_paused(run) -> None:
    """The end comes after the last line also for a receiver that is full."""

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            transport.pause_reading()
            await send(peer, b"last\n")
            peer.close()
            await ticks()
            assert (sink.lines, sink.calls) == ([], [])
            transport.resume_reading()
            await sink.ended.wait()
            assert (sink.lines, sink.calls) == ([b"last"], ["eof"])

    run(main())


def test_reset_is_a_lost_connection_not_an_end(run) -> None:
    """TF-01: told once, with its reason; writing afterwards is dropped, draining raises."""

    async def main() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        transport = streams(*await asyncio.open_connection(*server.getsockname()))
        peer, _ = server.accept()
        sink = Sink()
        transport.open(sink, DEFAULT_LIMITS)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        await sink.ended.wait()
        assert isinstance(sink.error, ConnectionError)
        transport.write(b"dropped\n")
        with pytest.raises(OSError):  # noqa: PT011 (which one is the loop's choice)
            await transport.drain()
        await transport.aclose()
        assert sink.calls == ["lost"]
        server.close()

    run(main())


def test_error_of_the_receiver_is_a_lost_connection(run) -> None:
    """TF-01: a reader that died unseen would leave a connection that is open and hears nothing."""

    class Broken(Sink):
        def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
            raise ValueError("cannot take it")

    async def main() -> None:
        ours, theirs = socket.socketpair()
        transport, sink = streams(*await asyncio.open_connection(sock=ours)), Broken()
        transport.open(sink, DEFAULT_LIMITS)
        theirs.sendall(b"line\n")
        await sink.ended.wait()
        assert (sink.calls, str(sink.error)) == (["lost"], "cannot take it")
        await transport.aclose()
        theirs.close()

    run(main())


def test_peer_that_vanishes_behind_unwritten_bytes(run) -> None:
    """TF-02: whoever finds out first, it is one `connection_lost`."""

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            transport.write(b"x" * 4 * MIB)
            await sink.paused.wait()
            peer.close()
            await sink.ended.wait()
            assert sink.calls == ["pause", "lost"]

    run(main())


def test_close_is_bounded_when_the_peer_does_not_read(run, monkeypatch) -> None:
    """Teardown never waits for a peer that does not read, and ends each wait on the way."""
    monkeypatch.setattr("acprt.transports.streams._CLOSE_SECONDS", 0.05)

    async def main() -> None:
        async with connected() as (transport, sink, peer):
            transport.write(b"x" * 4 * MIB)
            await sink.paused.wait()
            drained = asyncio.create_task(transport.drain())
            await asyncio.gather(transport.aclose(), transport.aclose())
            with pytest.raises(OSError):  # noqa: PT011 (which one is the loop's choice)
                await drained
            assert len(await read_all(peer)) < 4 * MIB
            assert sink.calls == ["pause"]

    run(main())


def test_cancelled_close_is_finished_all_the_same(run) -> None:
    """A timeout around the close must not leave the socket open."""

    async def main() -> None:
        async with connected() as (transport, _, peer):
            closing = asyncio.create_task(transport.aclose())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert await read_all(peer) == b""

    run(main())


def test_written_bytes_leave_before_a_close(run) -> None:
    """A peer that reads gets everything, without a `drain` by the caller."""

    async def main() -> None:
        async with connected() as (transport, _, peer):
            transport.write(b"x" * MIB)
            reading = asyncio.create_task(read_all(peer))
            await transport.aclose()
            assert await reading == b"x" * MIB

    run(main())


def test_close_before_open_and_writes_after_half_close(run) -> None:
    """Any order is legal: nothing raises, late bytes are dropped."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        transport = streams(*await asyncio.open_connection(sock=ours))
        await transport.aclose()
        assert await read_all(theirs) == b""
        theirs.close()
        async with connected() as (transport, _, peer):
            transport.close_write()
            transport.close_write()
            transport.write(b"late")
            assert await read_all(peer) == b""

    run(main())


@pytest.mark.parametrize("is_child", [True, False])
def test_who_started_whom_is_what_the_caller_says(run, is_child) -> None:
    """DEC-23: `streams()` serves unless told otherwise; it knows no process either way."""

    async def main() -> None:
        async with connected(peer_is_child=is_child) as (transport, _, _peer):
            assert transport.peer_is_child is is_child
            assert transport.facts() == {}
            assert transport.child_status() is None
        async with connected() as (transport, _, _peer):
            assert transport.peer_is_child is False

    run(main())
