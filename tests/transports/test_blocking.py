"""Threads behind descriptors that a loop may not have: they end when told to, eat nothing, and hold up nobody."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import threading
from typing import Any

import pytest

from acprt.transports.descriptors import READ_BYTES, duplicate
from tests.transports.pipe_ends import (
    MIB,
    ROOT,
    Read,
    Written,
    join_threads,
    threads,
    ticks,
)


def test_closing_a_blocked_thread_reader_ends_it_and_eats_nothing(run, monkeypatch) -> None:
    """ST-04: the read is interruptible, so that stdin belongs to the program again afterwards."""
    waiting = threading.Event()
    real_poll = select.poll

    class Poll:
        def __init__(self) -> None:
            self._poll = real_poll()
            self.register = self._poll.register

        def poll(self, *timeout: int) -> list[tuple[int, int]]:
            waiting.set()
            return self._poll.poll(*timeout)

    monkeypatch.setattr(select, "poll", Poll)

    async def main() -> None:
        read_end, write_end = os.pipe()
        back = Read(duplicate(read_end))
        assert len(threads()) == 1
        assert waiting.wait(10)
        back.reader.close()
        join_threads("acprt-fd-")
        os.write(write_end, b"not for us")
        assert os.read(read_end, 100) == b"not for us"
        os.close(read_end)
        os.close(write_end)

    run(main())


def test_paused_thread_reader_holds_one_chunk_at_most(run, tmp_path) -> None:
    """A huge file behind a stalled handler must not end up in memory."""

    async def main() -> None:
        (tmp_path / "in").write_bytes(b"x" * MIB)
        shared = os.open(tmp_path / "in", os.O_RDONLY)
        back: Read = Read(duplicate(shared), on_data=lambda _: back.reader.pause())
        await back.some.wait()
        await ticks()
        back.some.clear()
        back.reader.resume()
        await back.some.wait()
        assert len(back.chunks) == 2
        assert os.lseek(shared, 0, os.SEEK_CUR) <= 3 * READ_BYTES
        back._also = None
        back.reader.resume()
        await back.ended.wait()
        assert len(back.data) == MIB
        os.close(shared)

    run(main())


def test_aborting_a_blocked_thread_writer_ends_it(run) -> None:
    """Teardown is bounded also where a thread has to do the writing."""

    async def main() -> None:
        read_end, write_end = os.pipe()
        out = Written(duplicate(write_end))
        out.writer.write(b"x" * MIB)
        wait = asyncio.create_task(out.writer.drain())
        assert len(threads()) == 1
        poller = select.poll()
        poller.register(write_end, select.POLLOUT)
        while poller.poll(0):  # until the thread has filled the pipe
            await asyncio.sleep(0)
        out.writer.abort()
        with pytest.raises(BrokenPipeError):
            await wait
        join_threads("acprt-fd-")
        os.close(read_end)
        os.close(write_end)

    run(main())


def test_loop_closed_under_a_reading_thread_is_no_error(run) -> None:
    """The thread finds nobody to tell and ends without a traceback."""
    failures: list[Any] = []
    hook, threading.excepthook = threading.excepthook, failures.append
    read_end, write_end = os.pipe()

    async def main() -> None:
        Read(read_end)
        await ticks()

    try:
        run(main())
        assert len(threads()) == 1
        os.write(write_end, b"late")
        join_threads("acprt-fd-")
    finally:
        threading.excepthook = hook
        os.close(write_end)
    assert failures == []


@pytest.mark.parametrize("direction", ["read", "write"])
def test_blocked_thread_does_not_hold_up_the_exit(direction) -> None:
    """ST-04: the thread is a daemon; a program that is done ends, whatever its peer does."""
    use = (
        "FdReader(r, on_data=print, on_end=print)"
        if direction == "read"
        else "FdWriter(w, on_pause=int, on_resume=int, on_error=print).write(b'x' * 1000000)"
    )
    program = (
        "import asyncio, os\n"
        "from acprt.transports.pipes import FdReader, FdWriter\n"
        "r, w = os.pipe()\n"
        "async def main():\n"
        f"    {use}\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
        "print('done')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
