"""`Turn`: one prompt of a v2 session, to be waited for at each of its stages, or read update by update.

A turn watches; it owns nothing. What it tells comes from the projection of its session and the answer to its prompt,
both in wire order. Dropping a turn changes nothing for the agent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from acprt.acp import v2
from acprt.acp.sessions.asking import refuse_in_dispatch_loop
from acprt.acp.sessions.errors import SessionOverflow
from acprt.acp.sessions.queue import TURN_END, UpdateQueue
from acprt.acp.sessions_v2.progress import PromptProgress
from acprt.errors import RpcError
from acprt.runtime.results import Err, Ok, Result

if TYPE_CHECKING:
    from acprt.acp.sessions_v2.session import Session

__all__ = ["Turn"]

logger = logging.getLogger("acprt.acp")


class Turn:
    """A prompt that was sent with `Session.prompt`.

    `await turn.accepted()`, `started()` and `finished()` wait for its stages, in any order and from any number of
    tasks; `await turn` is `finished()`. `async for update in turn` yields the updates of the session from the moment
    the prompt was sent until its work ends. `async with` cancels it when it is left before that, and waits for its end.
    """

    def __init__(self, session: Session, progress: PromptProgress) -> None:
        self._session = session
        self._progress = progress
        self._waiters: list[asyncio.Future[None]] = []
        self._queue = UpdateQueue(session.cx.limits.session_bytes)
        self._is_read = False
        self._overflowed = False  # from the first update that was not kept, none is

    # -- its stages ---------------------------------------------------------------------------------------------

    async def accepted(self) -> str:
        """Wait until the agent took the message into the conversation; its message id.

        Raises the agent's RpcError when it refused (-32800: a cancel kept the message out), or that of the connection.
        """
        progress = self._progress
        await self._until(lambda: progress.is_accepted or progress.refusal is not None or progress.loss is not None)
        if progress.message_id is None:
            raise _fresh(progress.refusal or progress.loss)
        return progress.message_id

    async def started(self) -> None:
        """Wait until its work has begun. Raises when it never will."""
        progress = self._progress
        await self._until(lambda: progress.is_started or progress.is_finished)
        if not progress.is_started:
            raise _fresh(progress.failure or progress.refusal or RpcError.request_cancelled())

    async def finished(self) -> str | None:
        """Wait until its work has ended; the stop reason, None if the agent gave none.

        After a cancel that is `cancelled`, also where the message never came into the conversation. An agent that
        failed says so in the reason (`error`; `turn.end` has the details); what is raised is the refusal of the prompt
        or the end of the connection.
        """
        await self._until(lambda: self._progress.is_finished)
        self._raise_failure()
        return self._progress.stop_reason

    def __await__(self) -> Generator[None, None, str | None]:
        return self.finished().__await__()

    async def text(self) -> str:
        """Wait for its end; what the agent said in its work, without thoughts. Work that failed raises nothing: the
        stop reason is `error` then, and `end` tells why. A refused prompt raises, as `finished` does.
        """
        await self.finished()
        work = self._progress.work
        if work is None:  # a cancel kept the prompt out
            return ""
        messages = self._session.projection.messages
        return "".join(message.text for message in messages if message.kind == "agent" and message.work == work)

    @property
    def message_id(self) -> str | None:
        """The id of the prompt's message, once it is accepted."""
        return self._progress.message_id

    @property
    def is_finished(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._progress.is_finished

    @property
    def stop_reason(self) -> str | None:
        """Why it ended; None while it goes on, or where the agent gave no reason."""
        return self._progress.stop_reason

    @property
    def end(self) -> v2.StateUpdate | None:
        """The idle update that ended its work, with stop reason, error and usage."""
        return self._progress.end

    def cancel(self) -> None:
        """Cancel what the session does, this prompt included, with `session/cancel`: v2 cannot cancel one prompt alone.
        Keep reading: the end comes as stop reason `cancelled`. Nothing is sent when the turn has ended.
        """
        if not self.is_finished:
            self._session.cancel()

    # -- its updates --------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        self._is_read = True
        return self

    async def __anext__(self) -> v2.SessionUpdate:
        if not self._queue:
            refuse_in_dispatch_loop(self._session.cx, "the wait for a session's update")
        update: Any = await self._queue.next()
        if update is not TURN_END:
            return cast("v2.SessionUpdate", update)
        self._queue.end_turn()  # whoever asks once more is told the same
        if self._overflowed:
            raise SessionOverflow(self._session.id, self._session.cx.limits.session_bytes)
        self._raise_failure()
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.cancel()
        if kind is not None and issubclass(kind, asyncio.CancelledError):  # who is cancelled wants out, not to wait
            return
        seconds = self._session.cx.limits.cancel_grace_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._until(lambda: self._progress.is_finished)
        except TimeoutError:
            logger.warning("session %s: a turn did not end %g s after session/cancel", self._session.id, seconds)

    def __repr__(self) -> str:
        return f"<Turn of {self._session.id} {self._stage()}>"

    def _stage(self) -> str:
        progress = self._progress
        if progress.is_finished:
            return f"finished {progress.stop_reason or progress.failure or ''}".rstrip()
        if progress.is_started:
            return "started"
        return "accepted" if progress.is_accepted else "sent"

    # -- for the session ----------------------------------------------------------------------------------------

    async def answered(self, result: Result[v2.PromptResponse]) -> None:
        """The answer to the prompt, in wire order."""
        match result:
            case Ok(response):
                self._progress.accepted(response.message_id)
            case Err(error):
                self._progress.refused(error)
        self._moved()

    def updated(self, update: v2.SessionUpdate, size: int) -> None:
        """An update of the session was applied; `size` is that of its JSON, in bytes."""
        self._progress.updated(update)
        if not self._overflowed and not self._queue.put(update, size):
            self._overflowed = True
            self._queue.end_turn()
            if self._is_read:  # one that is only waited for goes on: what it tells is in the projection
                self.cancel()
        self._moved()

    def cancel_sent(self) -> None:
        """The session was told to cancel what it does."""
        self._progress.cancelled()

    def lost(self, error: RpcError) -> None:
        """Nothing more will be heard of the session."""
        self._progress.lost(error)
        self._moved()

    def _moved(self) -> None:
        if self.is_finished:
            self._session.turn_ended(self)
            if not self._overflowed:
                self._queue.end_turn()
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _until(self, is_ready: Callable[[], bool]) -> None:
        if not is_ready():
            refuse_in_dispatch_loop(self._session.cx, "the wait for a turn")
        while not is_ready():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def _raise_failure(self) -> None:
        failure = self._progress.failure
        if failure is not None:
            raise _fresh(failure)


def _fresh(error: RpcError | None) -> RpcError:
    """The same error without a traceback: one that is kept must not be raised itself, more than once at that."""
    assert error is not None, "asked for the error of what did not fail"
    fresh = RpcError(error.code, error.message, error.data)
    fresh.__cause__ = error.__cause__
    return fresh
