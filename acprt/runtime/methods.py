"""`method` handlers: a task each, started in wire order, answered by its return value, cancelled by the peer's cancel.

Plain `def` handlers run on daemon threads of our own: the loop's executor would be joined at exit, and a handler that
never returns would hold the process (DEC-15).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from acprt.errors import EndFacts, RpcError
from acprt.runtime.dialect import Dialect
from acprt.runtime.handlers import Link
from acprt.runtime.inbound import InboundTable
from acprt.runtime.responder import ANSWERED, RUNNING, InboundRequest, current_request
from acprt.runtime.threads import HandlerThreads, Job
from acprt.wire.payloads import decode_params

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["MethodTasks"]

logger = logging.getLogger("acprt.dispatch")


class MethodTasks:
    """The running `method` handlers of one connection."""

    def __init__(
        self,
        cx: Connection,
        inbound: InboundTable,
        dialect: Dialect,
        thread_limit: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.unstarted = False  # tasks were made that have not taken their first step
        self._cx = cx
        self._inbound = inbound
        self._dialect = dialect
        self._loop = loop
        self._threads = HandlerThreads(thread_limit)

    def start(self, link: Link, request: InboundRequest, params: Raw) -> None:
        """Start the handler's task; its first step comes before any later ordered handler (DEC-7)."""
        self.unstarted = True
        work = self._run(link, request, params)
        loop = self._loop
        if loop.get_task_factory() is None:  # a loop's own `create_task` makes a name that nobody reads (bench-core w2)
            request.task = asyncio.Task(work, loop=loop, name=link.name)
        else:
            request.task = loop.create_task(work)

    async def first_steps_taken(self) -> None:
        """Yield once, so that every task made so far takes its first step."""
        self.unstarted = False
        await asyncio.sleep(0)

    def __contains__(self, task: object) -> bool:
        return any(request.task is task for request in (*self._inbound, *self._inbound.outlived))

    def cancel_all(self) -> list[asyncio.Task[None]]:
        """Cancel what runs; the tasks that were."""
        requests = (*self._inbound, *self._inbound.outlived)
        tasks = [request.task for request in requests if request.task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    async def _run(self, link: Link, request: InboundRequest, params: Raw) -> None:
        try:
            try:
                if request.state is ANSWERED:  # cancelled before this first step
                    return
                request.state = RUNNING
                current_request.set(request)
                message = decode_params(link.decoder, params)
                if link.is_sync:
                    result = await self._in_thread(link, message)
                else:
                    result = await (link.handler(message, self._cx) if link.takes_cx else link.handler(message))
            finally:
                request.task = None  # task, context and request would hold each other
                if request.state is ANSWERED:
                    self._inbound.outlived.discard(request)
        except asyncio.CancelledError:
            self._cancelled(link, request)
        except Exception as error:
            self._failed(link, request, error)
        except BaseException as error:  # SystemExit and its like: whoever opened the connection raises it (PY-14)
            self._cx.fail(error)
        else:
            request.answer(result)

    async def _in_thread(self, link: Link, message: Any) -> Any:
        arguments = (message, self._cx) if link.takes_cx else (message,)
        done: asyncio.Future[Any] = self._loop.create_future()
        job = Job(partial(copy_context().run, link.handler, *arguments), done, self._loop)
        try:
            self._threads.submit(job)
            result = await done
            if inspect.isawaitable(result):  # a plain function around a coroutine function
                result = await result
            return result
        except asyncio.CancelledError:
            self._threads.abandon(job)
            raise
        finally:
            del done, job  # the future holds an error, whose traceback holds this frame

    def _cancelled(self, link: Link, request: InboundRequest) -> None:
        task = asyncio.current_task()
        if request.is_cancelled:
            self._inbound.end_cancelled(request)
        elif self._cx.is_ending or (task is not None and task.cancelling()):  # the connection ends, or the loop itself
            error = self._dialect.answer_on_shutdown(request.method)
            if error is None:
                request.end_silently()
            else:
                request.fail(error)
        else:  # the handler let an inner cancellation leak (PY-11)
            logger.error("handler %s of %s was cancelled from inside", link.route.name, request.method)
            request.fail(RpcError.internal_error())

    def _failed(self, link: Link, request: InboundRequest, error: Exception) -> None:
        if not isinstance(error, RpcError):
            text = "".join(traceback.format_exception(error))
            logger.error("handler %s of %s failed:\n%s", link.route.name, request.method, text)
        elif type(error.data) is EndFacts:  # its peer is told neutral words (SR-11), and only this side what happened
            logger.info("handler %s of %s failed with a connection: %s", link.route.name, request.method, error)
        if request.is_cancelled:
            if isinstance(error, RpcError):
                logger.debug("handler %s of cancelled %s raised %s", link.route.name, request.method, error)
            self._inbound.end_cancelled(request)
        else:
            request.fail(error if isinstance(error, RpcError) else RpcError.internal_error())
