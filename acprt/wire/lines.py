"""Splits incoming bytes into lines: on LF only, with a ceiling, in time linear in the input.

It must never look inside a line (U+2028 or a lone CR are legal there) and never lose a line next to a bad one.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import NamedTuple, final

__all__ = ["Line", "LineSplitter", "LongLine", "OutLine", "OversizedLine"]

_HEAD_BYTES = 4096  # enough of an over-long line to recover its id, which most peers write first or second
_CRUMB_BYTES = 1024  # a piece this small costs more as an object than it holds
_TAIL_BYTES = 256  # and some write last
_SEARCHED = 4096  # bytes from which a LF is looked for first: `split` takes forty times as long (bench-core w4)
_LONG = 64 * 1024  # bytes of a line from which the C library maps memory for it, gives that back and maps it again
_KEPT = 31 * 1024 * 1024  # half the free memory to keep: a line of 16 MiB, its value and an answer as long leave 56
_LF = 0x0A
_CR = 0x0D


class OversizedLine(NamedTuple):
    """What is kept of a line past the ceiling: its first and last bytes, and its size in bytes without terminator."""

    head: bytes
    tail: bytes
    size: int
    limit: int


Line = bytes | OversizedLine


@final
class LongLine:
    """An outgoing line in parts: to join them would copy a long text once more (bench-core w4)."""

    __slots__ = ("parts",)

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


OutLine = bytes | LongLine


class LineSplitter:
    """Feed it bytes as they come; it gives back the lines they complete, terminator and one CR before it removed."""

    __slots__ = ("_crumbs", "_pieces", "_size", "_tail", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._pieces: list[bytes] = []  # the line begun, or the head of one that is too long; joined once, at its end
        self._crumbs = bytearray()  # behind them: what came in pieces too small to be kept as objects of their own
        self._size = 0  # bytes of the line begun
        self._tail: bytes | None = None  # its last bytes, while the rest of an over-long line is skipped

    def feed(self, data: bytes) -> list[Line]:
        """The lines that `data` completes, in order. An over-long one stands in its place as an `OversizedLine`."""
        if len(data) >= _SEARCHED and _LF not in data:
            self._hold(data)
            return []
        pieces = data.split(b"\n")
        rest = pieces.pop()
        lines: list[Line] = pieces  # type: ignore[assignment]  # a list of bytes of our own; widened in place, not copied
        if pieces:
            if _CR in data or len(data) > self.limit:
                lines = [self._trim(piece) for piece in pieces]
            if self._size:
                lines[0] = self._complete(pieces[0])
        if rest:
            self._hold(rest)
        return lines

    def finish(self) -> list[Line]:
        """The unterminated last line at EOF, if there is one: it is a line too (FR-03)."""
        return [self._complete(b"")] if self._size else []

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._tail is not None:
            head = self._pieces[0]
            if len(head) < _HEAD_BYTES:
                self._pieces[0] = head + piece[: _HEAD_BYTES - len(head)]
            self._tail = (self._tail + piece[-_TAIL_BYTES - 1 :])[-_TAIL_BYTES - 1 :]
            return
        if len(piece) < _CRUMB_BYTES:
            self._crumbs += piece
        else:
            if self._crumbs:
                self._pieces.append(bytes(self._crumbs))
                self._crumbs.clear()
            self._pieces.append(piece)
        if self._size > self.limit + 1:  # one more byte may be the CR that is not part of the line
            so_far = self._joined()
            self._tail = so_far[-_TAIL_BYTES - 1 :]
            self._pieces.append(so_far[:_HEAD_BYTES])

    def _joined(self) -> bytes:
        """What is held, as one; nothing is held then."""
        whole = b"".join((*self._pieces, self._crumbs)) if self._crumbs else b"".join(self._pieces)
        self._pieces.clear()
        self._crumbs.clear()
        return whole

    def _complete(self, end: bytes) -> Line:
        if end:
            self._hold(end)
        size, self._size = self._size, 0
        tail, self._tail = self._tail, None
        if tail is None:
            if size >= _LONG:
                _keep_freed_memory()
            return self._trim(self._joined())
        if tail.endswith(b"\r"):
            tail, size = tail[:-1], size - 1
        return OversizedLine(self._joined()[:size], tail[-_TAIL_BYTES:], size, self.limit)

    def _trim(self, line: bytes) -> Line:
        if line.endswith(b"\r"):
            line = line[:-1]
        if len(line) <= self.limit:
            return line
        return OversizedLine(line[:_HEAD_BYTES], line[-_TAIL_BYTES:], len(line), self.limit)


@cache
def _keep_freed_memory() -> None:
    """Have the C library keep what a long line leaves behind: to fault pages in anew is half the cost of one (w4).

    glibc keeps twice as much as the largest block freed so far, if that was below 32 MiB. This one is never touched.
    """
    with suppress(MemoryError):
        bytes(_KEPT)
