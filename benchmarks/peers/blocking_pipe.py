"""Lines over two blocking descriptors. What the machine and msgspec allow when nothing has to be asynchronous."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

__all__ = ["BlockingPipe"]

READ_BYTES = 65_536
"""What a pipe holds by default; larger blocks are mapped and unmapped by malloc on every read."""


class BlockingPipe:
    """Reads all lines that are there, writes structs as lines."""

    def __init__(self, read_end: int, write_end: int) -> None:
        self._read_end = read_end
        self._write_end = write_end
        self._encoder = msgspec.json.Encoder()
        self._parts: list[bytes] = []

    def read_lines(self) -> list[bytes]:
        """At least one complete line; an empty list at the end of input."""
        while chunk := os.read(self._read_end, READ_BYTES):
            lines = chunk.split(b"\n")
            if len(lines) == 1:
                self._parts.append(chunk)
                continue
            if self._parts:
                self._parts.append(lines[0])
                lines[0] = b"".join(self._parts)
                self._parts.clear()
            if rest := lines.pop():
                self._parts.append(rest)
            return lines
        return []

    def write(self, messages: Sequence[msgspec.Struct]) -> None:
        data = self._encoder.encode_lines(messages)
        written = os.write(self._write_end, data)
        if written < len(data):
            view = memoryview(data)
            while written < len(data):
                written += os.write(self._write_end, view[written:])
