"""Daemon threads for plain `def` handlers. They never hold the process, and an abandoned job never starts (DEC-15)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["HandlerThreads", "Job"]

logger = logging.getLogger("acprt.dispatch")

_IDLE_SECONDS = 10.0  # a thread without work ends, so that a closed connection leaves none behind


class Job:
    """One call of a plain function, and its future on the loop."""

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.future = future
        self.loop = loop

    def run(self) -> None:
        """Call, on the thread, and hand the outcome to the loop."""
        try:
            result, error = self.call(), None
        except Exception as raised:
            result, error = None, raised
        except BaseException as raised:  # SystemExit in a thread ends nothing; the caller must still be answered
            result, error = None, RuntimeError(f"the handler raised {type(raised).__name__}")
        try:
            self.loop.call_soon_threadsafe(self._deliver, result, error)
        except RuntimeError:
            logger.debug("the loop closed before a synchronous handler returned")

    def _deliver(self, result: Any, error: Exception | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, StopIteration):
            self.future.set_exception(RuntimeError("the handler raised StopIteration"))
        else:
            self.future.set_exception(error)


class HandlerThreads:
    """Up to `limit` daemon threads, made when first needed, that take jobs in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: deque[Job] = deque()
        self._ready = threading.Condition()
        self._idle = 0
        self._count = 0

    def submit(self, job: Job) -> None:
        """Queue a job; a thread takes it as soon as one is free."""
        with self._ready:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._ready.notify()
            elif self._count < self._limit:
                self._count += 1
                threading.Thread(target=self._work, name=f"acprt-handler-{self._count}", daemon=True).start()

    def abandon(self, job: Job) -> None:
        """Nobody wants it any more: if it has not started it never does, and nothing is kept of it."""
        with self._ready, suppress(ValueError):  # not queued: it runs, and its value is discarded
            self._jobs.remove(job)

    def _work(self) -> None:
        while True:
            with self._ready:
                self._idle += 1
                while not self._jobs:
                    if not self._ready.wait(timeout=_IDLE_SECONDS) and not self._jobs:
                        self._idle -= 1
                        self._count -= 1
                        return
                self._idle -= 1
                job = self._jobs.popleft()
            job.run()
            del job
