"""The wait of `block_task`: the handle itself stands in for the coroutine, until the answer comes.

A coroutine beside it is a sixth of what a pending request holds (bench-core w6). Nor would one that has not taken its
first step learn that it was cancelled: its body never runs, and the request would go on.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from asyncio import current_task
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import msgspec

from acprt.errors import DispatchLoopBlocked
from acprt.runtime.calls import OutgoingCall

__all__ = ["BLOCK_TASK", "TimedWaiting", "Waiting"]

R = TypeVar("R")

BLOCK_TASK = "block_task"
_ENDED = "a block_task() that has ended"

_FOUR_WAYS = (
    "a SentRequest is not awaitable: choose how to take the answer — `await sent.block_task()` outside the dispatch "
    "loop, `sent.on_receiving_result(callback)` in order, `sent.forward_response_to(responder)` in a proxy, or "
    "`sent.detach()`"
)

_CANCELLED_WHEN_DROPPED = (None, BLOCK_TASK)
"""Not consumed; or a block_task() that was never awaited, or was destroyed while it waited (DEC-19)."""


class Waiting(msgspec.Struct, Generic[R], eq=False):
    """A call that somebody holds: how it is waited for, and what becomes of it when it is let go."""

    __name__ = "block_task"  # as asyncio shows a task that waits

    _call: OutgoingCall
    _consumed: str | None = None  # in which way

    if not TYPE_CHECKING:  # to a type checker no handle is awaitable: what `block_task` returns is

        def __await__(self) -> Waiting[R]:
            return self

        def send(self, _value: None) -> asyncio.Future[None]:  # noqa: D102  # as of every coroutine
            return self.__next__()

        def throw(self, kind: Any, value: Any = None, _traceback: Any = None) -> NoReturn:  # noqa: D102
            self._thrown(kind if value is None else value)

    def close(self) -> None:
        """Cancel the request, unless it was answered or somebody else takes the answer."""
        if self._consumed in _CANCELLED_WHEN_DROPPED:
            self._consumed = _ENDED
            self._let_go()

    def __next__(self) -> asyncio.Future[None]:
        """One step of the coroutine: the future to wait for, or the end with the answer."""
        if self._consumed != BLOCK_TASK:
            raise (
                TypeError(_FOUR_WAYS) if self._consumed is None else RuntimeError(f"already taken by {self._consumed}")
            )
        call = self._call
        if call.outcome is None:
            table = call.table
            if call.waiter is not None:
                raise RuntimeError(f"block_task() of {call.method} (id {call.id}) is awaited already")
            if table.cx.dispatch.running is not None:
                self._refuse_in_dispatch_loop()
            call.waiter = waiter = table.loop.create_future()
            if call.watched is not None:
                call.awaited()
            waiter._asyncio_future_blocking = True  # as `await waiter` says it to the task
            return waiter
        self._consumed = _ENDED  # a coroutine ends once, and what a `map` makes of a result is made once
        try:
            value = call.result()
        except StopIteration as error:
            raise RuntimeError(f"StopIteration out of the result of {call.method}") from error
        raise StopIteration(value)

    def _thrown(self, error: Any) -> NoReturn:
        """Whoever waits was cancelled, or is told otherwise not to wait on."""
        self.close()
        raise error

    def _refuse_in_dispatch_loop(self) -> None:
        """Raise DispatchLoopBlocked where waiting would be for ever: in the dispatch task itself.

        Asked only while a handler holds the loop, since `current_task` is slow on 3.11 (bench-core w1).
        """
        call, cx = self._call, self._call.table.cx
        if current_task() is cx.dispatch_task:
            self.close()
            raise DispatchLoopBlocked(
                f"block_task() of {call.method} (id {call.id}) inside the dispatch loop, in {cx.running_handler}: "
                "the loop that would receive the answer is the one that waits. Use on_receiving_result(callback), "
                "or wait in cx.spawn(…) or in a `method` handler"
            )

    def _let_go(self) -> None:
        call = self._call
        if call.table.thread_id == threading.get_ident():
            call.abandon()
        else:  # a collector ran on another thread; the connection is not thread-safe (PY-03)
            call.table.call_on_loop(call.abandon)

    def __del__(self) -> None:
        call = self._call
        if call.outcome is not None or self._consumed not in _CANCELLED_WHEN_DROPPED:
            return
        never_awaited = self._consumed == BLOCK_TASK and call.waiter is None
        self._let_go()  # first: where warnings are errors, nothing behind one happens
        if never_awaited:
            warnings.warn(f"block_task() of {call.method} was never awaited", RuntimeWarning, stacklevel=2)


class TimedWaiting(Waiting[R], eq=False):
    """The wait of `block_task(timeout=…)`: it takes the request over from its handle."""

    _timeout: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Cancel the request, as every wait that ends early."""
        self._stop_timer()
        super().close()

    def __next__(self) -> asyncio.Future[None]:
        """The first step starts the timer, the one that brings the answer stops it."""
        if self._call.outcome is not None:
            self._stop_timer()
        waiter = super().__next__()
        self._timer = self._call.table.loop.call_later(self._timeout, _expire, waiter)
        return waiter

    def _thrown(self, error: Any) -> NoReturn:
        call = self._call
        waiter = call.waiter
        if waiter is None or not waiter.done() or waiter.cancelled() or waiter.exception() is not error:
            super()._thrown(error)
        if call.outcome is not None:  # the answer came in the same moment
            self.__next__()
            raise AssertionError("an answered call ends the wait")
        self._stop_timer()
        self._consumed = _ENDED
        call.abandon(f"no answer within {self._timeout:g} s")
        raise TimeoutError(call.table.cx.describe_silence(call)) from None

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def __del__(self) -> None:
        timer, table = self._timer, self._call.table
        if timer is not None:
            if table.thread_id == threading.get_ident():
                timer.cancel()
            else:
                table.call_on_loop(timer.cancel)
        super().__del__()


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
