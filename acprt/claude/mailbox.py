"""Messages that wait for one reader: in order, bounded, and always with an end.

Putting never waits, so that control traffic never stands behind a reader who is slow (the reading loop puts).
"""

from __future__ import annotations

import asyncio
from collections import deque

from acprt.claude.base import Message

__all__ = ["Mailbox"]


class Mailbox:
    """`put` and `end` on one side, `next` on the other."""

    __slots__ = ("_end", "_ended", "_messages", "_reading", "_waiters", "size")

    def __init__(self) -> None:
        self.size = 0
        """Bytes of the lines that wait."""
        self._messages: deque[tuple[Message, int]] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._reading = 0  # readers that wait, or were called and have not run yet
        self._ended = False
        self._end: Exception | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will be put."""
        return self._ended

    @property
    def is_awaited(self) -> bool:
        """Whether a reader takes what is there as soon as the loop lets it: a burst is nothing that it is behind."""
        return self._reading > 0

    @property
    def is_read(self) -> bool:
        """Whether all was read, the error of the end too, and nothing more will be put."""
        return self._ended and not self._messages and self._end is None

    def put(self, message: Message, size: int) -> None:
        """Add a message; after the end it is dropped."""
        if not self._ended:
            self._messages.append((message, size))
            self.size += size
            if self._waiters:
                self._wake()

    def drop_oldest(self) -> None:
        """Make room."""
        self.size -= self._messages.popleft()[1]

    def clear(self) -> None:
        """Drop what waits."""
        self._messages.clear()
        self.size = 0

    def end(self, error: Exception | None = None) -> None:
        """What waits is still read, then comes the end, or `error`. The first end stands."""
        if not self._ended:
            self._ended, self._end = True, error
            self._wake()

    async def next(self) -> Message:
        """The next message. Raises StopAsyncIteration at the end; the end's error once, and StopAsyncIteration then."""
        while not self._messages:
            if self._ended:
                error, self._end = self._end, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            self._reading += 1
            try:
                await waiter
            finally:
                self._reading -= 1
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._messages and self._waiters:
                    self._wake()  # a cancelled reader passes its call on
        message, size = self._messages.popleft()
        self.size -= size
        return message

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
