"""The updates of one session that nobody has read yet, in wire order, and where a turn ends among them.

Bounded in bytes as they came on the wire. It decides nothing about a full queue and knows no update by type.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

__all__ = ["TURN_END", "TurnEnd", "UpdateQueue"]


class TurnEnd:
    """Stands in the queue where the end of one turn stood in the order of messages."""

    __slots__ = ()


TURN_END: Final = TurnEnd()
"""That of a queue which serves a single turn."""


class UpdateQueue:
    """First in, first out, one reader. Bytes of an update are those of the params that brought it."""

    __slots__ = ("_arrival", "_items", "_limit", "size")

    def __init__(self, limit: int) -> None:
        self.size = 0  # bytes
        self._limit = limit
        self._items: deque[tuple[Any, int]] = deque()
        self._arrival: asyncio.Future[None] | None = None  # somebody waits in `next`

    def __len__(self) -> int:
        return len(self._items)

    def put(self, update: Any, size: int) -> bool:
        """Keep an update. False: it would go over the limit, and was not kept. One alone is never too large."""
        if self._items and self.size + size > self._limit:
            return False
        self._items.append((update, size))
        self.size += size
        if self._arrival is not None:
            self._wake()
        return True

    def end_turn(self, end: TurnEnd = TURN_END) -> None:
        """Mark the end of a turn behind what was put so far."""
        self._items.append((end, 0))
        if self._arrival is not None:
            self._wake()

    async def next(self) -> Any:
        """The oldest item, waiting for one. One task at a time: RuntimeError for a second."""
        if not self._items:
            if self._arrival is not None:
                raise RuntimeError("two tasks read the updates of one session; let one of them read and tell the other")
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        item, size = self._items.popleft()
        self.size -= size
        return item

    def take_all(self) -> list[Any]:
        """Every update there is, in order."""
        items, self._items = self._items, deque()
        self.size = 0
        return [update for update, _ in items]

    def drop_turn(self, end: TurnEnd) -> None:
        """Forget what is left of a turn nobody reads: up to its end, or all there is so far. Who waits is woken."""
        while self._items:
            item, size = self._items.popleft()
            self.size -= size
            if item is end:
                return
        if self._arrival is not None:
            self.end_turn(end)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
