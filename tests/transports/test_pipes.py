"""Bytes through a descriptor: all of them, in order, with honest flow control and ends that are told once."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from contextlib import suppress

import pytest

from acprt.transports.descriptors import READ_BYTES
from tests.transports.pipe_ends import (
    MIB,
    Read,
    Written,
    descriptors,
    join_threads,
    own_pipe,
    ticks,
)

# --- what a writer promises ------------------------------------------------------------------------------------------


def test_large_write_arrives_whole_and_in_order(run) -> None:
    """What does not fit is kept, later writes queue behind it, and close comes after all of it."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        big = os.urandom(MIB) * 16
        out.writer.write(big)
        assert 0 < out.writer.buffered < len(big)
        out.writer.write(b"second")
        out.writer.write(b"third")
        out.writer.close()
        back = Read(read_end)
        await out.writer.drain()
        assert out.writer.buffered == 0
        await back.ended.wait()
        assert back.data == big + b"secondthird"
        assert back.ends == [None]
        assert out.calls == ["pause", "resume"]

    run(main())


def test_write_is_done_at_once_when_nothing_is_kept(run) -> None:
    """No tick of the loop lies between a small write and its system call."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"now")
        assert os.read(read_end, 100) == b"now"
        await out.writer.drain()
        await ticks()
        assert out.calls == []
        out.writer.close()
        os.close(read_end)

    run(main())


def test_only_the_pause_is_told_from_inside_a_call(run) -> None:
    """A writer that never yields is told to stop; nothing else enters the caller's state: transports/base.py."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"x" * MIB)
        assert out.calls == ["pause"]
        back = Read(read_end)
        assert back.chunks == []
        await out.paused.wait()
        back.reader.close()
        await out.failed.wait()
        out.writer.close()

        read_end, write_end = own_pipe()
        os.close(read_end)
        out = Written(write_end)
        out.writer.write(b"x")
        assert out.errors == []
        await out.failed.wait()

    run(main())


def test_vanished_reader_is_one_error_and_no_exception(run) -> None:
    """TF-02: writing never raises for I/O; the error is told once and what follows is dropped."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        os.close(read_end)
        out = Written(write_end)
        for _ in range(3):
            out.writer.write(b"x")
        await out.failed.wait()
        await ticks()
        assert [type(error) for error in out.errors] == [BrokenPipeError]
        out.writer.write(b"dropped")
        assert out.writer.buffered == 0
        for _ in range(2):
            with pytest.raises(BrokenPipeError):
                await out.writer.drain()
        out.writer.close()
        out.writer.abort()

    run(main())


def test_abort_before_the_error_was_told_keeps_it_untold(run) -> None:
    """After a local teardown nothing is reported any more, not even what happened just before it."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        os.close(read_end)
        out = Written(write_end)
        out.writer.write(b"x")
        out.writer.abort()
        await ticks()
        assert out.errors == []

    run(main())


def test_reader_vanishing_behind_kept_bytes_fails_drain(run) -> None:
    """TF-02: also when the loop finds out, and for everybody who waits."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"x" * MIB)
        waits = [asyncio.create_task(out.writer.drain()) for _ in range(2)]
        await out.paused.wait()
        os.close(read_end)
        await asyncio.wait(waits)
        assert all(isinstance(wait.exception(), BrokenPipeError) for wait in waits)
        await out.failed.wait()
        assert out.writer.buffered == 0

    run(main())


def test_abort_drops_what_is_kept_and_ends_the_waits(run) -> None:
    """A teardown never waits for a peer that does not read."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"x" * MIB)
        wait = asyncio.create_task(out.writer.drain())
        await out.paused.wait()
        out.writer.abort()
        with pytest.raises(BrokenPipeError):
            await wait
        back = Read(read_end)
        await back.ended.wait()
        assert 0 < len(back.data) < MIB
        assert out.errors == []

    run(main())


def test_a_cancelled_drain_leaves_the_writer_alone(run) -> None:
    """One waiter going away is not the others' business."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"x" * MIB)
        gone, stays = asyncio.create_task(out.writer.drain()), asyncio.create_task(out.writer.drain())
        await out.paused.wait()
        gone.cancel()
        back = Read(read_end)
        await stays
        assert gone.cancelled()
        out.writer.close()
        await back.ended.wait()
        assert len(back.data) == MIB

    run(main())


def test_many_small_writes_behind_a_full_pipe_need_few_system_calls(run, monkeypatch) -> None:
    """10,000 kept lines must not become 10,000 system calls once the peer reads again."""
    calls = 0
    write = os.write

    def counting_write(fd: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        return write(fd, data)

    monkeypatch.setattr(os, "write", counting_write)

    async def main() -> None:
        nonlocal calls
        read_end, write_end = own_pipe()
        out = Written(write_end)
        out.writer.write(b"x" * 100_000)
        lines = [b"line %d\n" % number for number in range(10_000)]
        for line in lines:
            out.writer.write(line)
        calls = 0
        out.writer.close()
        back = Read(read_end)
        await back.ended.wait()
        assert back.data == b"x" * 100_000 + b"".join(lines)
        assert calls < 100

    run(main())


# --- what a reader promises ------------------------------------------------------------------------------------------


def test_no_more_chunks_come_after_pause_even_in_the_same_turn(run) -> None:
    """A receiver that is full can stop in the middle of a burst; nothing is lost."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        with suppress(OSError):  # a larger pipe gives several full reads in one turn; not everybody may have one
            fcntl.fcntl(write_end, 1031, MIB)
        out = Written(write_end)
        out.writer.write(b"x" * MIB)
        out.writer.close()
        back: Read = Read(read_end, on_data=lambda _: back.reader.pause())
        for number in range(1, 5):
            await back.some.wait()
            await ticks()
            assert len(back.chunks) == number
            back.some.clear()
            back.reader.resume()
        back._also = None
        back.reader.resume()
        await back.ended.wait()
        assert len(back.data) == MIB

    run(main())


def test_pause_and_resume_without_a_readiness_in_between_changes_nothing(run) -> None:
    """The lazy end of the watch must not lose it."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        back = Read(read_end)
        back.reader.pause()
        back.reader.resume()
        os.write(write_end, b"a")
        await back.some.wait()
        back.reader.pause()
        os.write(write_end, b"b")
        await ticks()
        assert back.data == b"a"
        os.close(write_end)
        await ticks()
        assert back.ends == []
        back.reader.resume()
        await back.ended.wait()
        assert back.data == b"ab"
        back.reader.resume()

    run(main())


def test_closing_from_inside_a_callback_is_the_last_word(run) -> None:
    """After close nothing is called any more, whatever is still in the pipe."""

    async def main() -> None:
        read_end, write_end = own_pipe()
        back: Read = Read(read_end, on_data=lambda _: back.reader.close())
        os.write(write_end, b"x" * READ_BYTES)
        await back.some.wait()
        with pytest.raises(BrokenPipeError):
            os.write(write_end, b"y")
        back.reader.close()
        await ticks()
        assert len(back.chunks) == 1
        assert back.ends == []
        os.close(write_end)

    run(main())


def test_read_error_is_not_an_end_of_file(run, tmp_path) -> None:
    """TF-01: the error arrives as an error, once."""

    async def main() -> None:
        back = Read(os.open(tmp_path, os.O_RDONLY))
        await back.ended.wait()
        assert [type(error) for error in back.ends] == [IsADirectoryError]
        assert back.chunks == []

    run(main())


def test_descriptors_are_balanced(run) -> None:
    """Whatever way an end goes, its descriptors go with it."""

    async def main() -> None:
        join_threads("acprt-fd-")  # those of earlier tests, which close theirs
        before = descriptors()
        for make in (own_pipe, os.pipe, lambda: tuple(end.detach() for end in socket.socketpair())):
            for how in ("eof", "close", "abort", "error"):
                read_end, write_end = make()
                back, out = Read(read_end), Written(write_end)
                if how == "error":
                    back.reader.close()
                    join_threads(f"acprt-fd-{read_end}")  # only then nobody reads
                    out.writer.write(b"x")
                    await out.failed.wait()
                elif how == "close":
                    back.reader.close()
                    out.writer.close()
                elif how == "abort":
                    out.writer.write(b"x" * MIB)
                    out.writer.abort()
                    await back.ended.wait()
                else:
                    out.writer.close()
                    await back.ended.wait()
                join_threads("acprt-fd-")
        assert descriptors() == before

    run(main())
