"""This process's own stdin and stdout as a transport, with the wire kept clean while it is open.

The real descriptors move out of reach: fd 1 and `sys.stdout` point at stderr, fd 0 at the null device, so that
neither a `print` nor a child process can write to the peer or eat its input (PY-77). `aclose` puts them back.
This room must never change the flags of what it inherited (PY-76) and never wait for a peer.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO

from acprt.limits import Limits
from acprt.transports.base import ChildStatus, Sink
from acprt.transports.descriptors import duplicate, is_inherited, make_private, open_closed_descriptors
from acprt.transports.pipes import FdReader, FdWriter
from acprt.wire.lines import LineSplitter

__all__ = ["StdioTransport", "stdio"]


def stdio() -> StdioTransport:
    """This process's stdin and stdout, whatever they are: pipe, file, terminal, socket, null device or closed.

    One connection at a time can have them. What `input()` has read ahead before is not seen.
    """
    return StdioTransport()


class StdioTransport:
    """The transport behind `stdio()`. It serves: what it cannot read, it answers (DEC-23)."""

    peer_is_child = False

    def __init__(self) -> None:
        self._standard: _Standard | None = None  # None: not open yet
        self._over = False  # the connection was lost or closed: nothing more is delivered

    def open(self, sink: Sink, limits: Limits) -> None:
        """Take over stdin and stdout. Raises RuntimeError while another connection of the process has them."""
        with contextlib.ExitStack() as undo:
            standard = _Standard()
            undo.callback(standard.restore)
            self._sink = sink
            self._writer = FdWriter(
                standard.open_output(),
                on_pause=sink.pause_writing,
                on_resume=sink.resume_writing,
                on_error=self._lost,
            )
            undo.callback(self._writer.abort)
            self._splitter = LineSplitter(limits.line_bytes)
            self._reader = FdReader(standard.open_input(), on_data=self._data, on_end=self._end)
            undo.callback(self._reader.close)
            standard.redirect()
            undo.pop_all()
        self._standard = standard

    def write(self, data: bytes) -> None:
        """Write `data` now as far as it goes and keep the rest. Never raises for I/O."""
        self._writer.write(data)

    async def drain(self) -> None:
        """Wait until what was accepted so far has left the process. Raises OSError when it cannot any more."""
        await self._writer.drain()

    def pause_reading(self) -> None:
        """Deliver no more lines until `resume_reading`."""
        self._reader.pause()

    def resume_reading(self) -> None:
        """Deliver again."""
        self._reader.resume()

    def close_write(self) -> None:
        """Half-close once everything is written. The peer sees EOF, so `aclose` cannot give stdout back any more."""
        self._writer.close()
        if self._standard is not None:
            self._standard.give_up_output()

    async def aclose(self) -> None:
        """Stop and put the standard descriptors back, at once: what is not written yet is dropped (`drain` first)."""
        self._over = True
        if self._standard is not None:
            self._reader.close()
            self._writer.abort()
            self._standard.restore()

    def facts(self) -> dict[str, Any]:
        """Nothing: nobody here knows why the parent ended."""
        return {}

    def child_status(self) -> ChildStatus | None:
        """None: the peer is not a child."""
        return None

    def _data(self, data: bytes) -> None:
        lines = self._splitter.feed(data)
        if lines:
            self._sink.lines_received(lines)

    def _end(self, error: OSError | None) -> None:
        if error is not None:
            self._lost(error)
            return
        tail = self._splitter.finish()
        if tail:
            self._sink.lines_received(tail)
        if not self._over:
            self._sink.eof_received()

    def _lost(self, error: OSError) -> None:
        if not self._over:
            self._over = True
            self._reader.close()
            self._writer.abort()
            self._sink.connection_lost(error)


class _Standard:
    """The standard descriptors of this process: takes the real ones away, redirects the numbers, puts them back."""

    _taken = False

    def __init__(self) -> None:
        if _Standard._taken:
            raise RuntimeError("stdin and stdout belong to another connection of this process: close that one first")
        open_closed_descriptors()
        self._stdout: TextIO | None = None  # what `sys.stdout` was, and what stands in its place
        self._stand_in: TextIO | None = None
        self._saved: dict[int, int] = {}  # number -> a duplicate of what it named
        self._restored = False
        _Standard._taken = True

    def open_input(self) -> int:
        """A private descriptor for stdin; the null device when fd 0 is one that this process opened itself."""
        return make_private(0, os.O_RDONLY) if is_inherited(0) else os.open(os.devnull, os.O_RDONLY)

    def open_output(self) -> int:
        """A private descriptor for stdout; the null device when fd 1 is one that this process opened itself."""
        return make_private(1, os.O_WRONLY) if is_inherited(1) else os.open(os.devnull, os.O_WRONLY)

    def redirect(self) -> None:
        """From here on fd 0 is empty, and what is printed goes to stderr; so does what was printed and not flushed."""
        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._point(0, null)
            self._point(1, 2 if is_inherited(2) else null)
        finally:
            os.close(null)
        self._flush()
        if sys.stdout is not None and sys.stderr is not None and _writes_to(sys.stdout, 1):
            self._stdout = sys.stdout
            self._stand_in = sys.stdout = sys.stderr

    def give_up_output(self) -> None:
        """Let go of the real stdout, so that the other side can see its end: fd 1 stays with stderr for good."""
        saved = self._saved.pop(1, None)
        if saved is not None:
            os.close(saved)

    def restore(self) -> None:
        """Put everything back, once."""
        if self._restored:
            return
        self._restored = True
        self._flush()
        _flush_c_library()
        if self._stdout is not None and sys.stdout is self._stand_in:  # unless somebody replaced it once more
            sys.stdout = self._stdout
        while self._saved:
            fd, saved = self._saved.popitem()
            os.dup2(saved, fd)
            os.close(saved)
        _Standard._taken = False

    def _point(self, fd: int, at: int) -> None:
        if is_inherited(fd):
            self._saved[fd] = duplicate(fd)
            os.dup2(at, fd)

    def _flush(self) -> None:
        for stream in (self._stdout, sys.stdout, sys.__stdout__):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):  # stderr may be gone; that is not the wire's trouble
                    stream.flush()


def _writes_to(stream: TextIO, fd: int) -> bool:
    try:
        return stream.fileno() == fd
    except (AttributeError, OSError, ValueError):  # replaced by something that is no file, or closed
        return False


def _flush_c_library() -> None:
    """What native code has printed and C still holds would otherwise reach the wire at exit."""
    with contextlib.suppress(ImportError, OSError, AttributeError):  # not everywhere
        import ctypes  # costs 2 ms: at the end they do not matter

        ctypes.CDLL(None).fflush(None)
