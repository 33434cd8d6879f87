"""The answers of one batch, gathered into the array that they leave as.

It knows slots and lines, never requests or handlers: who fills a slot, and when, is the business of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from acprt.limits import DEFAULT_LIMITS
from acprt.wire.frames import encode_error
from acprt.wire.ids import RequestId
from acprt.wire.payloads import line_too_long

__all__ = ["BatchReply"]

logger = logging.getLogger("acprt.dispatch")


class _Answered(msgspec.Struct):
    id: RequestId


_decode_answered = msgspec.json.Decoder(_Answered).decode


class BatchReply:
    """The answers of one batch: one array, written when every slot is filled and every member dispatched (BA-09)."""

    __slots__ = ("_dispatched", "_open", "_put", "_slots", "_when_written", "_written", "limit")

    def __init__(self, put: Callable[[bytes], None], limit: int = DEFAULT_LIMITS.line_out_bytes) -> None:
        self.limit = limit  # bytes of the array
        self._put = put
        self._slots: list[bytes | None] = []
        self._open = 0
        self._dispatched = False
        self._written = False
        self._when_written: list[Callable[[], None]] = []

    def new_slot(self) -> int:
        """A place in the array, in source order; by position, since ids may repeat (BA-11)."""
        self._slots.append(None)
        self._open += 1
        return len(self._slots) - 1

    def fill(self, slot: int, line: bytes | None) -> None:
        """The answer of one slot; None leaves it out."""
        self._slots[slot] = line
        self._open -= 1
        self._write_if_complete()

    def dispatched(self) -> None:
        """Every member was handled to its end, trailing notifications included, or never will be."""
        self._dispatched = True
        self._write_if_complete()

    def when_written(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the array is queued, or it is clear that there is none; at once if it is."""
        if self._written:
            callback()
        else:
            self._when_written.append(callback)

    def _write_if_complete(self) -> None:
        if self._dispatched and not self._open and not self._written:
            self._written = True
            lines = [line for line in self._slots if line is not None]
            if lines:
                size = sum(map(len, lines)) + len(lines) + 1  # with brackets and commas
                if size > self.limit:
                    self._shorten(lines, size)
                self._put(b"[" + b",".join(lines) + b"]")
            callbacks, self._when_written = self._when_written, []
            for callback in callbacks:
                callback()

    def _shorten(self, lines: list[bytes], size: int) -> None:
        """Put errors in the place of the largest answers until the array is within the limit, or nothing helps."""
        logger.error("the answers of a batch are %d bytes, over the limit of %d: the largest fail", size, self.limit)
        error = line_too_long("the array of all answers of the batch", size, self.limit)
        for at in sorted(range(len(lines)), key=lambda at: len(lines[at]), reverse=True):
            if size <= self.limit:
                return
            shorter = encode_error(_decode_answered(lines[at]).id, error)
            if len(shorter) < len(lines[at]):
                size -= len(lines[at]) - len(shorter)
                lines[at] = shorter
