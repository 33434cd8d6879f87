"""The byte side of the limit on stock asyncio: readiness callbacks around `os.read` and `os.write`.

Stock pipe transports read into blocks of 256 KiB, which malloc maps and unmaps every time; this is the faster way that
the standard loop allows, and so the floor for a runtime on it.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO, Protocol

__all__ = ["StockWriter", "read_lines_into"]

READ_BYTES = 65_536
"""What a pipe holds by default."""

HIGH_BYTES, LOW_BYTES = 65_536, 16_384
"""Waiting bytes at which the writer says pause, and at which it says resume: those of asyncio's own transports."""


class Reader(Protocol):
    def data_received(self, data: bytes) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


class Pausable(Protocol):
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


def read_lines_into(reader: Reader, read_end: IO[bytes]) -> None:
    """Hand over what arrives until the end of input."""
    loop, descriptor = asyncio.get_running_loop(), read_end.fileno()

    def readable() -> None:
        data = os.read(descriptor, READ_BYTES)
        if data:
            reader.data_received(data)
        else:
            loop.remove_reader(descriptor)
            reader.connection_lost(None)

    loop.add_reader(descriptor, readable)


class StockWriter:
    """Writes at once what the pipe takes, and the rest when it takes more."""

    def __init__(self, owner: Pausable, write_end: IO[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = owner
        self._write_end = write_end
        self._descriptor = write_end.fileno()
        os.set_blocking(self._descriptor, False)
        self._rest = bytearray()
        self._paused = False

    def write(self, data: bytes) -> None:
        if not self._rest:
            written = self._written(data)
            if written == len(data):
                return
            data = data[written:]
            self._loop.add_writer(self._descriptor, self._writable)
        self._rest += data
        if not self._paused and len(self._rest) > HIGH_BYTES:
            self._paused = True
            self._owner.pause_writing()

    def close(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._write_end.close()

    def _writable(self) -> None:
        with memoryview(self._rest) as view:
            written = self._written(view)
        del self._rest[:written]
        if not self._rest:
            self._loop.remove_writer(self._descriptor)
        if self._paused and len(self._rest) < LOW_BYTES:
            self._paused = False
            self._owner.resume_writing()

    def _written(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
