"""One output pipe of a child: reads it, and once the child is gone tells when everything left in it was read.

A descendant that escaped may hold the pipe open for ever, so EOF alone cannot be waited for (DEC-27). It must never
look at the bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from acprt.transports.pipes import FdReader

if sys.platform != "win32":
    import array
    import fcntl
    import termios

__all__ = ["ChildOutput"]


class ChildOutput:
    """Gives the bytes of `fd`, which it owns, to `on_data`; `on_end` is called once, when there are no more of them.

    That is at EOF (None), on a read error (that error) and, after `settle`, once what was in the pipe has been read.
    """

    __slots__ = ("_fd", "_on_data", "_on_end", "_owed", "_reader", "ended")

    def __init__(self, fd: int, *, on_data: Callable[[bytes], None], on_end: Callable[[OSError | None], None]) -> None:
        self.ended = False
        """Whether nothing more comes."""
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._owed: int | None = None  # bytes still to come of those that were in the pipe when it was settled
        self._reader = FdReader(fd, on_data=on_data, on_end=self._end)

    def pause(self) -> None:
        """Read no more until `resume`."""
        self._reader.pause()

    def resume(self) -> None:
        """Read again."""
        self._reader.resume()

    def settle(self) -> None:
        """The writers we care for are gone: read what the pipe holds now, and end there even if there is no EOF."""
        if not self.ended and self._owed is None:
            self._owed = _buffered(self._fd)
            self._reader.redirect(self._counted)
            if self._owed == 0:
                self._end(None)

    def close(self) -> None:
        """Stop reading and close the descriptor. `on_end` is not called any more. Idempotent."""
        self.ended = True
        self._reader.close()

    def _counted(self, data: bytes) -> None:
        assert self._owed is not None, "counted since it was settled"
        self._owed -= len(data)
        self._on_data(data)
        if self._owed <= 0:
            self._end(None)

    def _end(self, error: OSError | None) -> None:
        if not self.ended:
            self.close()
            self._on_end(error)


def _buffered(fd: int) -> int:
    size = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]
