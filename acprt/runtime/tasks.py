"""Work spawned on a connection: held until it is done, cancelled with the connection, fatal when it fails (SP-02)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["SpawnedTasks", "cancelled_and_gone"]

_LAST_WAIT = 1.0  # seconds a task may take after each of two cancels; one that swallows both is left behind
_left_behind: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()  # nobody waits for these a second time


class SpawnedTasks:
    """The tasks of one connection that are not `method` handlers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_failure: Callable[[BaseException], None]) -> None:
        self.closed = False
        self._loop = loop
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        """Start `work` as a task; never inline (SP-01)."""
        coroutine = work if asyncio.iscoroutine(work) else _awaited(work)
        task: asyncio.Task[Any] = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def cancel_all(self) -> list[asyncio.Task[Any]]:
        """Cancel what runs and take no more; the tasks that were."""
        self.closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        return tasks

    def reopen(self) -> None:
        """Take tasks again: the callbacks of requests that the end of the connection fails."""
        self.closed = False

    async def ended(self) -> list[asyncio.Task[Any]]:
        """Wait a moment for what runs, then cancel it and take no more; what is left behind."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=_LAST_WAIT)
        return await cancelled_and_gone(self.cancel_all())

    def __contains__(self, task: object) -> bool:
        return task in self._tasks

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def cancelled_and_gone(tasks: list[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Wait for cancelled tasks to end; cancel once more those that swallow it. Those still alive after that."""
    own = asyncio.current_task()
    alive = [task for task in tasks if task is not own and not task.done() and task not in _left_behind]
    for last in (False, True):
        if not alive:
            break
        _done, pending = await asyncio.wait(alive, timeout=_LAST_WAIT)
        alive = list(pending)
        if not last:
            for task in alive:
                task.cancel()
    _left_behind.update(alive)
    return alive
