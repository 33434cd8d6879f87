"""An event loop whose time stands still until a test moves it, so that nothing that waits has to be waited for.

It is for what happens inside one process: memory transports, timeouts, sleeps. What a child or a thread does takes real
time, which this clock knows nothing of.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, Unpack

__all__ = ["FakeClockLoop", "fake_clock_loop", "run_on_fake_clock"]

T = TypeVar("T")
_Ts = TypeVarTuple("_Ts")

_ROUNDS = 10_000  # of the loop, until what never comes to rest is called that


class FakeClockLoop(asyncio.SelectorEventLoop):
    """A loop that begins at second 0 and stays there until `advance`."""

    def __init__(self) -> None:
        self._clock_now = 0.0
        self._clock_due: list[float] = []
        self._clock_calls = 0
        super().__init__()

    def time(self) -> float:
        """Seconds on the clock of this loop."""
        return self._clock_now

    def call_soon(
        self, callback: Callable[[Unpack[_Ts]], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As in every loop; counted, so that rest can be told from work."""
        self._clock_calls += 1
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As in every loop; `advance` stops at each of these moments."""
        heapq.heappush(self._clock_due, when)
        return super().call_at(when, callback, *args, context=context)

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass: whatever is due meanwhile happens, in order and at its time, before this returns."""
        until = self._clock_now + seconds
        await self.settled()
        while self._clock_due and self._clock_due[0] <= until:
            self._clock_now = max(self._clock_now, heapq.heappop(self._clock_due))
            await self.settled()
        self._clock_now = until
        await self.settled()

    async def settled(self) -> None:
        """Wait until nothing is left to do at this moment. RuntimeError when that does not come."""
        quiet = 0
        for _ in range(_ROUNDS):
            before = self._clock_calls
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._clock_calls - before <= 1 else 0  # but for what woke this task
            if quiet == 2:  # timers that are due come behind this task in the first of two rounds
                return
        raise RuntimeError(f"the loop did not come to rest in {_ROUNDS} rounds: something in it never waits")


def fake_clock_loop() -> FakeClockLoop:
    """The running loop, which must be one of these; RuntimeError says how to get one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, FakeClockLoop):
        raise RuntimeError("this needs a fake clock: run the test with acprt.testing.run_on_fake_clock(…)")
    return loop


def run_on_fake_clock(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on a `FakeClockLoop`."""
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(main)
