"""What arrived so far, in order, for tests that wait for more of it: by an event, from whichever thread it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Arrivals"]

T = TypeVar("T")


class Arrivals(list[T]):
    """A list that coroutines wait for; `append` is how something arrives."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[Callable[[], object]] = []

    def append(self, item: T) -> None:
        """Add what arrived, and wake who waits."""
        super().append(item)
        for wake in tuple(self._waiting):
            wake()

    async def until(self, happened: Callable[[], object], timeout: float = 20.0) -> None:
        """Wait until `happened()` is true; it is asked now and after each arrival."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(arrived.set)

        self._waiting.append(wake)
        try:
            async with asyncio.timeout(timeout):
                while not happened():
                    await arrived.wait()
                    arrived.clear()
        finally:
            self._waiting.remove(wake)

    async def first(self, wanted: Callable[[T], object], timeout: float = 20.0) -> T:
        """The first that is wanted, once it is there."""
        found: list[T] = []

        def happened() -> bool:
            found.extend(item for item in self if wanted(item))
            return bool(found)

        await self.until(happened, timeout)
        return found[0]
