"""How a connection ends: clean EOF, a failure with a cause, or a local close. Every wait gets an answer and a reason.

One place per transition: `end_of_input` (EOF reached its turn), `fail` (something broke), `aclose` (somebody wants
out); the latter two run the one closing task, which is bounded at every step.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from acprt.errors import EndFacts, RpcError
from acprt.runtime.calls import closed_error
from acprt.runtime.tasks import cancelled_and_gone

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection, Rooms

__all__ = ["ConnectionState", "Ends"]

logger = logging.getLogger("acprt.dispatch")

_LAST_FLUSH_SECONDS = 0.1  # for finished answers, when their handlers took all the time that was left

CloseCallback = Callable[["Connection"], Awaitable[None]]


class ConnectionState(Enum):
    """Where a connection is in its life; it only moves down this list."""

    OPEN = auto()
    INPUT_CLOSING = auto()  # EOF reached its turn, the close callbacks run
    INPUT_CLOSED = auto()  # nothing comes in any more; writing may still work
    ENDING = auto()  # being torn down
    ENDED = auto()


class Ends:
    """The ends of one connection."""

    def __init__(self, cx: Connection, rooms: Rooms, close_callbacks: Sequence[CloseCallback]) -> None:
        self.state = ConnectionState.OPEN
        self.is_ending = False  # being torn down, by whoever; asked for every message
        self.cause: BaseException | None = None
        self.last_error: Exception | None = None  # what the transport failed of
        self.eof_at: float | None = None
        self._cx = cx
        self._rooms = rooms
        self.close_callbacks = close_callbacks
        self._last_call_ends: float | None = None  # loop time at which somebody wants the process gone
        self._deferred: BaseException | None = None  # a failure while the close callbacks run (EO-12)
        self._callback_failed = False
        self._eof_dispatched = False
        self._dispatch_over = False
        self._callbacks_until = math.inf  # loop time at which whoever closes stops waiting for the close callbacks
        self._closing: asyncio.Task[None] | None = None
        self._input_closed = asyncio.Event()
        self._input_ended = asyncio.Event()  # set once the close callbacks are done or will never run
        self._eof_or_end = asyncio.Event()
        self._body: asyncio.Task[Any] | None = None
        self._body_cancelled = False
        self._body_cancelling = 0  # cancellations that the body's task had pending before

    @property
    def is_incoming_closed(self) -> bool:
        """Whether nothing will come in any more and the close callbacks are done."""
        return self._input_closed.is_set()

    async def incoming_closed(self) -> None:
        """Wait for `is_incoming_closed`."""
        await self._input_closed.wait()

    # -- clean EOF ----------------------------------------------------------------------------------------------

    def eof_received(self) -> None:
        """The transport read EOF; its turn comes when everything before it is dispatched (EO-01)."""
        self.eof_at = self._cx.loop.time()
        self._eof_or_end.set()

    async def end_of_input(self) -> None:
        """EOF's turn, in the dispatch task: fail what waits, run the close callbacks, wake who waits for it (EO-02)."""
        if self.state is not ConnectionState.OPEN:  # it failed, or was closed, while EOF waited for its turn
            return
        cx = self._cx
        self.state = ConnectionState.INPUT_CLOSING
        self._eof_dispatched = True
        self._callbacks_until = min(self._callbacks_until, cx.loop.time() + cx.limits.drain_seconds)
        facts = self._rooms.transport.facts()
        failed = self._rooms.calls.close(lambda method: closed_error(method, facts))
        self._rooms.outbox.withdraw_requests()  # their answers cannot come any more (EO-06)
        logger.debug("%s: incoming transport closed, %d pending requests failed", cx.name, failed)
        self._lose_parked()
        first_error: BaseException | None = None
        for callback in self.close_callbacks:
            try:
                await callback(cx)
            except asyncio.CancelledError:
                if self.is_ending or _is_being_cancelled():
                    raise
                first_error = first_error or RpcError.internal_error("a close callback was cancelled from inside")
            except Exception as error:
                logger.warning("%s: a close callback failed: %s", cx.name, error)
                first_error = first_error or error
        if self.is_ending:  # a callback swallowed the cancellation that ended the wait for it
            return
        self.state = ConnectionState.INPUT_CLOSED
        self._input_closed.set()
        self._input_ended.set()
        self._callback_failed = first_error is not None
        cause = first_error or self._deferred
        if cause is not None:
            self.fail(cause)

    # -- failure ------------------------------------------------------------------------------------------------

    def fail(self, cause: BaseException) -> None:
        """End the connection because of `cause`; later causes are ignored."""
        if self.is_ending:
            logger.debug("%s: failure while ending: %r", self._cx.name, cause)
            return
        if self.state is ConnectionState.INPUT_CLOSING and not _has_reason(cause, "outbox_full"):
            self._deferred = self._deferred or cause
        else:  # a full outbox waits for no callback: it may be the callback that fills it
            self._break(cause)

    def _break(self, cause: BaseException) -> None:
        logger.debug("%s: the connection fails: %r", self._cx.name, cause)
        self.cause = cause
        if self.state is ConnectionState.INPUT_CLOSING:
            self._enter_ending()
            self._input_ended.set()  # whoever waits for the close callbacks goes on
        self._begin()
        self._cancel_body()

    def _cancel_body(self) -> None:
        if self._body is not None and not self._body_cancelled and not self._body.done():
            self._body_cancelled = True
            self._body.cancel()

    def transport_lost(self, error: Exception) -> None:
        """Reading or writing failed (TF-01, TF-02)."""
        self.last_error = self.last_error or error  # it beats an end that was clean so far (TF-06)
        self.fail(error)

    async def while_open(self, dispatch: Callable[[], Awaitable[None]]) -> None:
        """The body of the dispatch task. Cancelled by a stranger, such as the end of `asyncio.run`, it goes only when
        the connection is closed: nothing else would be left to close it.
        """
        try:
            await dispatch()
        except asyncio.CancelledError:
            if not self.is_ending:
                self._dispatch_over = True
                self._input_ended.set()  # the close callbacks were cut short
                self._break(_dispatch_cancelled())
                await asyncio.shield(self._begin())
            raise

    def dispatch_ended(self, task: asyncio.Task[None]) -> None:
        """The dispatch task is over; that it failed by itself is a defect of the runtime, but never a silent one."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
        elif not self.is_ending:  # cancelled before its first step
            self._break(_dispatch_cancelled())

    # -- local close --------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """End the connection and wait for it, unless the caller is one of its own tasks (DEC-18)."""
        closing = self._begin()
        if not self._is_own(asyncio.current_task()):
            await asyncio.shield(closing)  # a cancelled caller leaves; the closing goes on, bounded

    async def finished(self, grace: float) -> None:
        """Reactive mode: until the connection failed, or EOF was dispatched and every accepted request answered, or
        `grace` seconds have passed since EOF was read (DEC-25).
        """
        cx = self._cx
        await self._eof_or_end.wait()
        if self.is_ending:
            return
        remaining = (self.eof_at or 0.0) + grace - cx.loop.time()
        try:
            async with asyncio.timeout(max(0.0, remaining)):
                await self._input_ended.wait()
                if not self.is_ending:
                    await self._rooms.inbound.empty()
        except TimeoutError:
            left = len(self._rooms.inbound)
            if left:
                what = "1 request was" if left == 1 else f"{left} requests were"
                logger.warning("%s: %s still running %g s after EOF", cx.name, what, grace)

    async def last_call(self, seconds: float) -> None:
        """Somebody wants the process gone: requests, close callbacks and the last write have `seconds` left."""
        self._last_call_ends = self._cx.loop.time() + seconds
        self._callbacks_until = min(self._callbacks_until, self._last_call_ends)
        try:
            async with asyncio.timeout(seconds):
                await self._rooms.inbound.empty()
                if self.state is ConnectionState.INPUT_CLOSING:
                    await self._input_ended.wait()
        except TimeoutError:
            logger.debug("%s: %d requests did not finish in %g s", self._cx.name, len(self._rooms.inbound), seconds)

    def attach_body(self, task: asyncio.Task[Any] | None) -> None:
        """The task of an `async with` block: cancelled once when the connection fails (DEC-16)."""
        self._body = task
        self._body_cancelling = 0 if task is None else task.cancelling()

    async def leave_body(self, error: BaseException | None) -> None:
        """Close at the end of an `async with` block that ended with `error`, and raise what the connection failed of
        if that goes first: before a success, before what it caused itself, and, from a close callback, before every
        other error (EO-10). A cancellation by somebody else always goes first.
        """
        body, self._body = self._body, None
        caused_by_us = self._body_cancelled and body is not None
        interrupted, undelivered = isinstance(error, asyncio.CancelledError), False
        if caused_by_us and body is not None:
            if not interrupted:
                undelivered = await _cancellation_due()
            interrupted = body.uncancel() > self._body_cancelling
        await self.aclose()
        if interrupted and undelivered:
            raise asyncio.CancelledError
        if self.cause is None or interrupted or not isinstance(error, Exception | asyncio.CancelledError | None):
            return
        if error is None or caused_by_us or self._callback_failed or _is_ours(error):
            raise self.cause

    def closed_error(self, method: str) -> RpcError:
        """What a send on a connection that is over gets."""
        data = EndFacts(reason="connection_closed", method=method)
        message = "Connection closed"
        if self.cause is not None:
            data["reason"] = "connection_failed"
            data["error"] = _text_of(self.cause)
            message = "Connection failed"
        data.update(self._rooms.transport.facts())
        error = RpcError(-32603, message, data)
        error.__cause__ = self.cause
        return error

    # -- the closing task ---------------------------------------------------------------------------------------

    def _begin(self) -> asyncio.Task[None]:
        if self._closing is None:
            if self.state is not ConnectionState.INPUT_CLOSING:
                self._enter_ending()
            self._closing = self._cx.loop.create_task(self._close(), name=f"acprt closing {self._cx.name}")
        return self._closing

    def _enter_ending(self) -> None:
        self.state = ConnectionState.ENDING
        self.is_ending = True
        self._eof_or_end.set()
        if not self._eof_dispatched:  # else requests keep failing with the EOF, which came first (EO-07)
            self._rooms.calls.refuse_new(self.closed_error)

    async def _close(self) -> None:
        try:
            await self._finish()
        except Exception:  # a defect of this room; the transport must be closed all the same
            logger.exception("%s: closing failed", self._cx.name)
        finally:
            await self._release()

    async def _finish(self) -> None:
        """What happens while the transport is open: work stops, what is owed is written."""
        rooms = self._rooms
        if self.state is ConnectionState.INPUT_CLOSING:
            await self._callbacks_done()  # EO-11
        if not self.is_ending:
            if self.cause is None and self._deferred is not None:  # the callbacks were given up
                self.cause = self._deferred
                self._cancel_body()
            self._enter_ending()
        rooms.watchdog.close()
        rooms.inbox.close()
        rooms.transport.resume_reading()  # to discard: a peer that must write before it reads gets on (TF-05)
        self._lose_parked()
        await self._stop_work()
        rooms.inbound.answer_rest()
        await self._send_the_rest()

    async def _release(self) -> None:
        """Close the transport, then tell the waiters; also when the closing task itself was cancelled."""
        rooms = self._rooms
        rooms.outbox.close()
        try:
            await rooms.transport.aclose()
            await self._fail_waiters()
        except Exception:  # a defect of a transport; whoever waits must learn of the end all the same
            logger.exception("%s: closing failed", self._cx.name)
        finally:
            self._fail_calls()
            self.state = ConnectionState.ENDED
            self._input_closed.set()
            self._input_ended.set()

    async def _stop_work(self) -> None:
        """Cancel every task of the connection and wait for them; one that swallows two cancels is left behind."""
        cx = self._cx
        tasks: list[asyncio.Task[Any]] = [*self._rooms.methods.cancel_all(), *self._rooms.tasks.cancel_all()]
        if cx.dispatch_task is not None and not self._dispatch_over:
            cx.dispatch_task.cancel()
            tasks.append(cx.dispatch_task)
        for task in await cancelled_and_gone(tasks):
            logger.error("%s: task %s did not end although it was cancelled twice", cx.name, task.get_name())

    async def _send_the_rest(self) -> None:
        """Write what is queued, unless the cause of the end is that nobody reads it."""
        if not isinstance(self.cause, OSError) and not _has_reason(self.cause, "outbox_full"):
            self._rooms.outbox.hand_over()
            await self._flush()

    async def _flush(self) -> None:
        """What is queued leaves the process, in bounded time; a reader that is gone is remembered, not raised."""
        limits = self._cx.limits
        bound = limits.exit_grace_seconds if self._rooms.transport.peer_is_child else limits.drain_seconds
        if self._last_call_ends is not None:
            bound = min(bound, max(_LAST_FLUSH_SECONDS, self._last_call_ends - self._cx.loop.time()))
        try:
            async with asyncio.timeout(bound):
                await self._rooms.transport.drain()
        except TimeoutError:
            logger.warning("%s: queued output was not written within %g s", self._cx.name, bound)
        except OSError as error:
            self.last_error = self.last_error or error
            logger.debug("%s: queued output could not be written: %s", self._cx.name, error)

    async def _fail_waiters(self) -> None:
        """Whoever waits for an answer learns of the end, with a child's exit status; callbacks get a moment to act."""
        self._rooms.tasks.reopen()
        self._fail_calls()
        for task in await self._rooms.tasks.ended():
            logger.error("%s: task %s did not end although it was cancelled", self._cx.name, task.get_name())

    def _fail_calls(self) -> None:
        if not self._eof_dispatched:  # else they have failed with the EOF
            self._rooms.calls.close(self.closed_error)
        self._rooms.calls.end(self.closed_error)

    def _lose_parked(self) -> None:
        for offer in self._rooms.dynamic.end():
            logger.warning("%s: %s %s was parked and no handler took it", self._cx.name, offer.kind, offer.method)
            if offer.request is not None:
                offer.request.fail(RpcError.method_not_found(offer.method))
            elif offer.call is not None and offer.response is not None and offer.call.settle(offer.response):
                self._rooms.calls.run_late(offer.call)

    async def _callbacks_done(self) -> None:
        try:
            async with asyncio.timeout_at(self._callbacks_until):
                await self._input_ended.wait()
        except TimeoutError:
            logger.warning("%s: the close callbacks did not end in time; they are cancelled", self._cx.name)

    def _is_own(self, task: asyncio.Task[Any] | None) -> bool:
        rooms = self._rooms
        return task is not None and (task is self._cx.dispatch_task or task in rooms.tasks or task in rooms.methods)


def _dispatch_cancelled() -> RpcError:
    return RpcError.internal_error(EndFacts(reason="connection_failed", error="the dispatch loop was cancelled"))


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _cancellation_due() -> bool:
    """Take the cancellation that was asked for and not delivered, if any: `uncancel()` does not take it back."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return True
    return False


def _is_ours(error: BaseException | None) -> bool:
    """Whether an error out of the body only repeats that the connection failed."""
    return _has_reason(error, "connection_failed")


def _has_reason(error: BaseException | None, reason: str) -> bool:
    return isinstance(error, RpcError) and isinstance(error.data, dict) and error.data.get("reason") == reason


def _text_of(cause: BaseException) -> str:
    """What a cause says; a user's exception may fail even at that, and waiters must learn of the end all the same."""
    try:
        return str(cause) or type(cause).__name__
    except Exception:
        return type(cause).__name__
