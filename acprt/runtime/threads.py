"""Daemon threads for plain `def` handlers. They never hold the process, and an abandoned job never starts (DEC-15)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["HandlerThreads", "Job"]

logger = logging.getLogger("acprt.dispatch")

_IDLE_SECONDS = 10.0  # a thread without work ends, so that a closed connection leaves none behind


class Job:
    """One call of a plain function, and its future on the loop."""

    __slots__ = ("call", "future", "is_abandoned", "is_over", "loop")

    def __init__(self, call: Callable[[], Any], future: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.future = future
        self.loop = loop
        self.is_abandoned = False
        self.is_over = False

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
        finally:
            del result, error, self  # the error holds this frame through its traceback, and the future holds the error

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
        self._stuck = 0  # threads at work on a job that was abandoned
        self._warned = False

    def submit(self, job: Job) -> None:
        """Queue a job; a thread takes it as soon as one is free. Raises RuntimeError when no thread can be started."""
        with self._ready:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._ready.notify()
            elif self._count < self._limit:
                self._count += 1
                try:
                    threading.Thread(target=self._work, name=f"acprt-handler-{self._count}", daemon=True).start()
                except BaseException:
                    self._count -= 1
                    self._jobs.remove(job)
                    raise
            lacking = self._lacks_threads()
        if lacking:
            self._warn()

    def abandon(self, job: Job) -> None:
        """Nobody wants it any more: if it has not started it never does; a running one's value is discarded."""
        with self._ready:
            if job in self._jobs:
                self._jobs.remove(job)
                return
            if job.is_over or job.is_abandoned:
                return
            job.is_abandoned = True
            self._stuck += 1
            lacking = self._lacks_threads()
        if lacking:
            self._warn()

    def _lacks_threads(self) -> bool:
        """Whether calls begin to wait for threads that work for nobody."""
        lacking = self._stuck >= self._limit and bool(self._jobs) and not self._warned
        self._warned = self._warned or lacking
        return lacking

    def _warn(self) -> None:
        logger.warning(
            "all %d handler threads are busy with cancelled calls that have not returned: further calls wait; "
            "let handlers return, or raise Limits(sync_threads=…)",
            self._limit,
        )

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
            with self._ready:
                job.is_over = True
                if job.is_abandoned:
                    self._stuck -= 1
                    self._warned = False
            del job
