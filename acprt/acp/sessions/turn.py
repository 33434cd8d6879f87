"""One prompt, from the request to its stop reason: what the agent does, and what its reader sees of it.

`Turn` is the reader's handle; dropping it gives the turn up. `RunningTurn` is the state behind it, which the session
and the pending request hold too, so that a turn nobody reads is still followed to its end (DEC-30).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections.abc import Coroutine
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NoReturn

from acprt.acp import v1
from acprt.acp.sessions.asking import refuse_in_dispatch_loop
from acprt.acp.sessions.errors import SessionOverflow
from acprt.acp.sessions.queue import TurnEnd
from acprt.runtime.results import Err, Ok, Result

if TYPE_CHECKING:
    from types import TracebackType

    from acprt.acp.sessions.handle import Session

__all__ = ["OPEN", "OVER", "RunningTurn", "Turn"]

logger = logging.getLogger("acprt.acp")

_WAYS = (
    "a Turn is not awaitable: choose what to wait for — `await turn.text()` for what the agent says, "
    "`await turn.finished()` for its response, `async for update in turn` for every update"
)


class Turn:
    """One prompt and its updates: what `session.prompt(…)` returns. Nothing is sent before it is used, in one way:

    - `async for update in turn` — every update in wire order, then the end; an error is raised there;
    - `async with turn` — sends at once; leaving early cancels and waits for the stop reason;
    - `await turn.text()` — the agent's text; `await turn.finished()` — the response.

    Leaving the loop early cancels the turn; its remaining updates are dropped.
    """

    __slots__ = ("__weakref__", "_running")

    def __init__(self, running: RunningTurn) -> None:
        self._running = running

    @property
    def response(self) -> v1.PromptResponse | None:
        """The agent's answer, once it is there: stop reason, usage."""
        return self._running.response

    @property
    def stop_reason(self) -> str | None:
        """Why the agent stopped; None while it works, and when the prompt failed."""
        response = self._running.response
        return None if response is None else response.stop_reason

    def cancel(self) -> None:
        """Send `session/cancel`, once; the updates and the stop reason still come. Open permission requests are
        answered as cancelled. Nothing after the agent's answer; a turn that was not sent will not be.
        """
        self._running.cancel()

    async def text(self) -> str:
        """Read to the end; the text of the agent's message chunks, joined. Raises what the prompt failed of."""
        parts = []
        try:
            async for update in self:
                match update:
                    case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                        parts.append(text)
        finally:
            self._running.leave()
        return "".join(parts)

    async def finished(self) -> v1.PromptResponse:
        """Read to the end and drop the updates; the agent's response. Raises what the prompt failed of."""
        try:
            async for _ in self:
                pass
        finally:
            self._running.leave()
        response = self._running.response
        if response is None:
            raise RuntimeError("the prompt was cancelled before it was sent, or it has failed already")
        return response

    if not TYPE_CHECKING:  # to a type checker it is not awaitable at all

        def __await__(self) -> NoReturn:
            if self._running.state is NEW:
                self._running.leave()  # the error says it all: nothing is warned of besides
            raise TypeError(_WAYS)

    def __aiter__(self) -> Turn:
        return self

    def __anext__(self) -> Coroutine[Any, Any, v1.SessionUpdate]:
        return self._running.next()  # no frame of ours holds the handle: a traceback would keep the turn running

    async def __aenter__(self) -> Turn:
        await self._running.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._running.leave()
        if kind is None or not issubclass(kind, asyncio.CancelledError):  # who is cancelled wants out, not to wait
            await self._running.answered_in_time()

    def __del__(self) -> None:
        running = getattr(self, "_running", None)
        if running is None or running.state is OVER:
            return
        if running.state is NEW:
            warnings.warn("a prompt was never used, so nothing was sent: iterate over it", RuntimeWarning, stacklevel=2)
        elif running.thread_id == threading.get_ident():
            running.leave()
        else:  # a collector ran on another thread; the connection is not thread-safe
            running.leave_from_thread()


class TurnState(Enum):
    """What the reader has seen of a turn; it only moves down this list. Whether the agent answered is apart."""

    NEW = auto()  # not sent
    OPEN = auto()  # sent: updates are for the reader
    ENDING = auto()  # answered, or failed here: its end stands in the queue behind its updates
    OVER = auto()  # the reader met the end, or left


NEW, OPEN, ENDING, OVER = TurnState  # an attribute of an Enum class costs 60 ns on 3.11, and each update asks for one


class RunningTurn:
    """The state of one prompt."""

    def __init__(self, session: Session, request: v1.PromptRequest) -> None:
        self.state = NEW
        self.response: v1.PromptResponse | None = None
        self.is_interrupted = False
        """Whether its reader was cancelled, and nobody has read on: it may be held by a traceback only."""
        self.thread_id = threading.get_ident()
        self._session = session
        self._request = request
        self._error: Exception | None = None
        self._answered = asyncio.Event()  # nothing more comes of the prompt
        self._is_starting = False
        self._cancel_sent = False
        self._end_mark = TurnEnd()

    @property
    def is_answered(self) -> bool:
        """Whether the agent answered the prompt, or it failed for good."""
        return self._answered.is_set()

    async def start(self) -> None:
        """Send the prompt, when the session is free for it (DEC-30). Raises PromptInFlight and SessionClosed."""
        if self.state is not NEW:
            return
        if self._is_starting:
            raise RuntimeError("two tasks use one turn; let one of them read and tell the other")
        self._is_starting = True
        session = self._session
        try:
            refuse_in_dispatch_loop(session.cx, "session.prompt()")
            await session.take_turn(self)
            if self.is_answered:  # cancelled while it waited for the turn before
                self._never_sent()
                return
            self.state = OPEN
            sent = session.cx.send_request(self._request)
            sent.on_receiving_result(self._receive_answer)
        except BaseException:  # the session is busy or closed, the connection is over, or the caller went
            self._never_sent()
            raise

    async def next(self) -> v1.SessionUpdate:
        """The next update. StopAsyncIteration behind the last one; what the prompt failed of, raised in its place."""
        if self.state is NEW:
            await self.start()
        if self.state is OVER:
            raise StopAsyncIteration
        queue = self._session.queue
        if not queue:
            refuse_in_dispatch_loop(self._session.cx, "the wait for a session's update")
        while True:
            try:
                item = await queue.next()
            except asyncio.CancelledError:
                self.is_interrupted = True
                raise
            self.is_interrupted = False
            if type(item) is not TurnEnd:
                update: v1.SessionUpdate = item
                return update
            if item is self._end_mark:  # else that of a turn whose reader left as it came
                break
        error, self._error = self._error, None
        self.state = OVER
        self._session.turn_moved(self)
        if error is not None:
            raise error
        raise StopAsyncIteration

    def overflow(self, limit: int) -> None:
        """The reader is too slow: what is kept is still read, then the overflow is raised (DEC-29)."""
        logger.warning("session %s: a turn is cancelled, its updates are not read fast enough", self._session.id)
        self.fail(SessionOverflow(self._session.id, limit))
        self.cancel()

    def fail(self, error: Exception) -> None:
        """End the turn for its reader, behind what was kept; the agent's answer is still waited for."""
        if self.state is OPEN:
            self._error = error
            self.state = ENDING
            self._session.queue.end_turn(self._end_mark)

    def cancel(self) -> None:
        """Send `session/cancel`, unless that was done, the agent has answered, or there is no prompt to cancel."""
        if self.state is NEW:
            self._never_sent()
        elif not self.is_answered and not self._cancel_sent:
            self._cancel_sent = True
            self._session.send_cancel()

    def leave(self) -> None:
        """Nobody reads on: cancel, and drop what is unread of it."""
        if self.state in (OPEN, ENDING):
            self.state = OVER
            self.cancel()
            self._session.queue.drop_turn(self._end_mark)
            self._session.turn_moved(self)
        elif self.state is NEW:
            self._never_sent()

    def leave_from_thread(self) -> None:
        """The same, from another thread."""
        self._session.cx.call_on_loop(self.leave)

    async def answered_in_time(self) -> bool:
        """Wait for the agent's answer to a prompt that was cancelled, at most `Limits.cancel_grace_seconds`."""
        if self.is_answered:
            return True
        session = self._session
        refuse_in_dispatch_loop(session.cx, "the wait for a stop reason")
        seconds = session.cx.limits.cancel_grace_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._answered.wait()
        except TimeoutError:
            logger.warning("session %s: no answer to a prompt %g s after session/cancel", session.id, seconds)
            return False
        return True

    async def _receive_answer(self, result: Result[v1.PromptResponse]) -> None:
        """In the ordered slot: every earlier update is in the queue, no later one is."""
        match result:
            case Ok(response):
                self.response = response
            case Err(error):
                self._error = self._error or error
        self._answered.set()
        if self.state is OPEN:
            self.state = ENDING
            self._session.queue.end_turn(self._end_mark)
        self._session.turn_moved(self)

    def _never_sent(self) -> None:
        """Nothing comes of it, for the reader or from the agent."""
        self.state = OVER
        self._answered.set()
        self._session.turn_moved(self)
