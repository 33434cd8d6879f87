"""One output of a child: it ends at EOF, and without one once everything in it was read."""

from __future__ import annotations

import asyncio
import os

import pytest

from acprt.transports.child_output import ChildOutput


class Output:
    """A pipe and what its `ChildOutput` told."""

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        os.set_blocking(read_end, False)
        self.data = b""
        self.ends: list[OSError | None] = []
        self.ended = asyncio.Event()
        self.some = asyncio.Event()
        self.output = ChildOutput(read_end, on_data=self.on_data, on_end=self.on_end)

    def on_data(self, data: bytes) -> None:
        self.data += data
        self.some.set()

    def on_end(self, error: OSError | None) -> None:
        self.ends.append(error)
        self.ended.set()

    def close(self) -> None:
        self.output.close()
        os.close(self.write_end)


def test_eof_is_its_end(run):
    """DEC-27: the usual case."""

    async def main():
        pipe = Output()
        os.write(pipe.write_end, b"words")
        os.close(pipe.write_end)
        await pipe.ended.wait()
        assert (pipe.data, pipe.ends) == (b"words", [None])
        pipe.output.settle()
        assert pipe.ends == [None]

    run(main())


@pytest.mark.parametrize("size", [1, 65_535, 65_536])
def test_settled_it_ends_without_eof_once_it_was_read(run, size):
    """DEC-27: a descendant that escaped holds the other end."""

    async def main():
        pipe = Output()
        os.write(pipe.write_end, b"x" * size)
        pipe.output.settle()
        pipe.output.settle()
        assert pipe.ends == []
        await pipe.ended.wait()
        assert (len(pipe.data), pipe.ends) == (size, [None])
        pipe.close()

    run(main())


def test_settled_when_empty_it_ends_at_once(run):
    """DEC-27."""

    async def main():
        pipe = Output()
        pipe.output.settle()
        assert pipe.ends == [None]
        pipe.close()

    run(main())


def test_settled_while_paused_it_ends_when_it_was_read(run):
    """EO-01: a consumer that takes its time loses nothing."""

    async def main():
        pipe = Output()
        pipe.output.pause()
        os.write(pipe.write_end, b"words")
        pipe.output.settle()
        assert pipe.ends == []
        pipe.output.resume()
        await pipe.ended.wait()
        assert pipe.data == b"words"
        pipe.close()

    run(main())


def test_settled_from_inside_a_delivery_it_loses_nothing(run):
    """The bytes that are being delivered are not among those still to come."""

    async def main():
        pipe = Output()
        deliver = pipe.on_data

        def settle_first(data: bytes) -> None:
            deliver(data)
            if data == b"first":
                os.write(pipe.write_end, b"second")
                pipe.output.settle()

        pipe.output._reader.redirect(settle_first)
        os.write(pipe.write_end, b"first")
        await pipe.ended.wait()
        assert (pipe.data, pipe.ends) == (b"firstsecond", [None])
        pipe.close()

    run(main())


def test_closed_it_tells_nothing(run):
    """It was closed by who would be told."""

    async def main():
        pipe = Output()
        os.write(pipe.write_end, b"words")
        pipe.output.close()
        pipe.output.close()
        pipe.output.settle()
        assert pipe.output.ended
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (pipe.data, pipe.ends) == (b"", [])
        os.close(pipe.write_end)

    run(main())
