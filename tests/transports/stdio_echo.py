"""Echoes every line over `stdio()` and is as noisy as it can on the way: the program under test of test_stdio.py.

`stdio_echo.py LOOP` where LOOP is asyncio or uvloop.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import subprocess
import sys

from acprt.limits import Limits
from acprt.transports.descriptors import open_closed_descriptors
from acprt.transports.stdio import stdio
from acprt.wire.lines import OversizedLine


class Echo:
    """A sink that writes back what it gets and stops reading while that is not taken."""

    def __init__(self) -> None:
        self.transport = stdio()
        self.ended = asyncio.Event()
        self.error: Exception | None = None

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        assert lines
        for line in lines:
            text = line if isinstance(line, bytes) else b"too long: %d" % line.size
            self.transport.write(text + b"\n")

    def eof_received(self) -> None:
        self.ended.set()

    def connection_lost(self, error: Exception) -> None:
        self.error = error
        self.ended.set()

    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()


def make_noise() -> None:
    """Everything that a handler, a library or a child may do to stdout and stdin."""
    print("noise: print")
    os.write(1, b"noise: descriptor\n")
    logging.getLogger().error("noise: logging")
    if sys.__stdout__ is not None:
        sys.__stdout__.write("noise: kept in a buffer\n")
    ctypes.CDLL(None).puts(b"noise: kept by the C library")
    subprocess.run(["/bin/sh", "-c", "cat; echo noise: child"], check=True)  # cat: eats stdin to its end


async def main() -> None:
    """Serve until the end of input, then hand everything back."""
    echo = Echo()
    print("noise: before", end="")  # not flushed
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    echo.transport.open(echo, Limits(line_bytes=1000))
    make_noise()
    await echo.ended.wait()
    if echo.error is None:
        await echo.transport.drain()
    await echo.transport.aclose()
    await echo.transport.aclose()
    if echo.error is not None:
        print(f"lost: {echo.error!r}", file=sys.stderr)


if __name__ == "__main__":
    open_closed_descriptors()
    if sys.argv[1] == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    else:
        asyncio.run(main())
