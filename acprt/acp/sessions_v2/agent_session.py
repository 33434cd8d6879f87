"""`AgentSession`: what an agent owes its client about one session: when it works, when it is idle, and why.

One piece of foreground work at a time. Its state is told at every change and only then; a cancel ends in an idle update
with stop reason `cancelled`, behind everything the work had to say.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from acprt.acp import v2
from acprt.acp.errors import session_not_found
from acprt.acp.sessions_v2.projection import Projection
from acprt.acp.sessions_v2.replay import replay_of
from acprt.acp.sessions_v2.work import Work, new_id
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.responder import Responder, current_request

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["AgentSession", "WorkHandler"]

logger = logging.getLogger("acprt.acp")

State = Literal["idle", "running", "requires_action"]
WorkHandler = Callable[[Work], Awaitable[str | None]]
"""Does a piece of work and returns its stop reason; None is `end_turn`."""


class _Phase(Enum):
    """What the session does; from the last one there is no way back."""

    IDLE = auto()
    WORKING = auto()
    STOPPING = auto()  # cancelled, and the handler is not done yet
    CLOSED = auto()


class _Held(NamedTuple):
    """A prompt that is not part of the conversation yet."""

    request: v2.PromptRequest
    responder: Responder[v2.PromptResponse]
    handler: WorkHandler


class AgentSession:
    """One session that an agent serves on one connection.

    `history`, if kept, takes in whatever is sent, for `replay` in a later life of the session. `background` is what
    runs beside the foreground work, for agents that report it: it is part of every state update once it is a list.
    """

    def __init__(self, cx: Connection, id: str, *, cwd: str, hold: bool, history: Projection | None = None) -> None:
        self.cx = cx
        self.id = id
        self.cwd = cwd
        self.history = history
        self.background: list[v2.BackgroundWork] | None = None
        self._hold = hold
        self._phase = _Phase.IDLE
        self._work: Work | None = None
        self._task: asyncio.Task[Any] | None = None
        self._blocked_by: set[Any] = set()
        self._told: State = "idle"
        self._held: deque[_Held] = deque()
        self._is_closing = False
        self.closing: asyncio.Task[None] | None = None
        """What waits for its end, once the client closes it."""
        self._when_stopped: list[asyncio.Future[None]] = []

    @property
    def state(self) -> State:
        """`idle`, `running` or `requires_action`. Work that is being cancelled stays what it was until it has ended."""
        if self._phase is _Phase.WORKING:
            return "requires_action" if self._blocked_by else "running"
        return self._told if self._phase is _Phase.STOPPING else "idle"

    @property
    def is_closed(self) -> bool:
        """Whether the client closed it; nothing more is said of it."""
        return self._phase is _Phase.CLOSED

    # -- telling ------------------------------------------------------------------------------------------------

    def update(self, update: v2.SessionUpdate) -> None:
        """Send a session update, at any time: background work goes on while the session is idle. Dropped once the
        session is closed or the connection ends.
        """
        if self._phase is _Phase.CLOSED or self.cx.is_ending:
            logger.debug("session %s is closed: dropped an update", self.id)
            return
        self.cx.send_notification(v2.UpdateSessionNotification(session_id=self.id, update=update))
        if self.history is not None:
            self.history.apply(update)

    def replay(self) -> None:
        """Send the history again, as a resume with `replayFrom` asks. Before the answer to it."""
        for update in replay_of(self.history or Projection()):
            self.cx.send_notification(v2.UpdateSessionNotification(session_id=self.id, update=update))

    def report_state(self) -> None:
        """Send the state as it is: a resume owes it before its answer, and changed `background` is told this way."""
        self._tell(v2.StateUpdate(state=self.state))

    # -- working ------------------------------------------------------------------------------------------------

    def receive_prompt(
        self, request: v2.PromptRequest, responder: Responder[v2.PromptResponse], handler: WorkHandler
    ) -> None:
        """A prompt came: work on it, hold it for later, or refuse it. One that comes while cancelled work is stopping
        is held in any case: the cancel was not for it.
        """
        if self._is_closing:
            responder.respond_with_error(session_not_found(self.id))
        elif self._phase is _Phase.IDLE:
            self._insert(_Held(request, responder, handler))
        elif self._hold or self._phase is _Phase.STOPPING:
            held = _Held(request, responder, handler)
            self._held.append(held)
            responder.cancellation.on_cancel(partial(self._withdraw, held))
        else:
            responder.respond_with_error(
                RpcError(ErrorCode.INVALID_PARAMS, "Invalid params", {"reason": "session_busy", "sessionId": self.id})
            )

    def start_work(self, handler: WorkHandler) -> Work:
        """Begin foreground work that no prompt asked for. RuntimeError while other work goes on, or once closed."""
        if self._phase is not _Phase.IDLE or self._is_closing:
            doing = "closed" if self._is_closing else "working"
            raise RuntimeError(f"session {self.id} is {doing}: one piece of work at a time")
        return self._start(handler, [], None)

    def cancel(self) -> None:
        """What `session/cancel` asks: prompts that are held are answered -32800, and the work is cancelled. A second
        cancel does not disturb the cleaning up after the first.
        """
        held, self._held = self._held, deque()
        for each in held:
            each.responder.respond_with_error(RpcError.request_cancelled())
        if self._phase is _Phase.WORKING and self._work is not None and self._task is not None:
            self._phase = _Phase.STOPPING
            self._work.cancel()
            self._task.cancel()

    def begin_close(self) -> None:
        """The client closes the session: no prompt is taken any more, and its work is cancelled."""
        self._is_closing = True
        self.cancel()

    async def close(self) -> None:
        """Close it, wait until its work has ended and said so, and say nothing more of it."""
        self.begin_close()
        await self.until_idle()
        self._phase = _Phase.CLOSED

    async def until_idle(self) -> None:
        """Wait until no work goes on."""
        while self._work is not None:
            stopped: asyncio.Future[None] = self.cx.loop.create_future()
            self._when_stopped.append(stopped)
            await stopped

    def blocked_by(self, request: object) -> None:
        """The work cannot go on without an answer to this request of the user's."""
        self._blocked_by.add(request)
        self._tell_changed_state()

    def unblocked_by(self, request: object) -> None:
        """That request is answered, or not waited for any more."""
        self._blocked_by.discard(request)
        self._tell_changed_state()

    def _insert(self, prompt: _Held) -> None:
        message_id = new_id()
        prompt.responder.respond(v2.PromptResponse(message_id=message_id))
        try:
            self.update(v2.UserMessage(message_id=message_id, content=prompt.request.prompt))
        except RpcError as error:  # too long to be said back: it is worked on all the same
            logger.error("session %s: the message of a prompt cannot be told: %s", self.id, error)
        self._start(prompt.handler, prompt.request.prompt, message_id)

    def _withdraw(self, prompt: _Held) -> None:
        """The client cancelled one prompt by its id, before it was part of the conversation."""
        if prompt in self._held:
            self._held.remove(prompt)
            prompt.responder.respond_with_error(RpcError.request_cancelled())

    def _start(self, handler: WorkHandler, prompt: list[v2.ContentBlock], message_id: str | None) -> Work:
        work = self._work = Work(self, prompt, message_id)
        self._phase = _Phase.WORKING
        self._tell_changed_state()
        context = copy_context()
        context.run(current_request.set, None)  # the prompt is answered: what the work asks is not in its service
        self._task = context.run(self.cx.spawn, _done(handler, work))
        self._task.add_done_callback(partial(self._ended, work))
        return work

    def _ended(self, work: Work, task: asyncio.Task[Any]) -> None:
        """The handler is done, or never began. The idle update is the last thing said of the work."""
        work.end()
        self._blocked_by.clear()
        self._work = self._task = None
        self._phase = _Phase.IDLE
        if not self.cx.is_ending:
            self._tell(_end_of(work, task))
            while self._held and self._phase is _Phase.IDLE:
                self._insert(self._held.popleft())
        stopped, self._when_stopped = self._when_stopped, []
        for waiter in stopped:
            if not waiter.done():
                waiter.set_result(None)

    def _tell_changed_state(self) -> None:
        if self.state != self._told and self._phase is not _Phase.CLOSED:
            self._tell(v2.StateUpdate(state=self.state))

    def _tell(self, update: v2.StateUpdate) -> None:
        self._told = self.state
        if self.background is not None:
            update.background = list(self.background)
        try:
            self.update(update)
        except RpcError as error:  # what a handler put into it must not leave the client waiting for its end
            logger.error("session %s: its state cannot be told as it is: %s", self.id, error)
            self.update(_bare(update))


async def _done(handler: WorkHandler, work: Work) -> str | RpcError | None:
    """The work; an exception is its outcome, not the connection's end."""
    try:
        reason = await handler(work)
        if not isinstance(reason, str | None):
            raise TypeError(f"a prompt handler returns a stop reason or None, not {reason!r}")
        return reason
    except RpcError as error:
        return RpcError(error.code, error.message, error.data)
    except Exception as error:
        if not work.is_cancelled:
            text = "".join(traceback.format_exception(error))
            logger.error("the work on a prompt of session %s failed:\n%s", work.session.id, text)
        return RpcError.internal_error()


def _end_of(work: Work, task: asyncio.Task[Any]) -> v2.StateUpdate:
    """The idle update of work that has ended: cancelled work never says `error`, whatever it raised on the way out."""
    usage = work.usage
    if work.is_cancelled:
        return v2.StateUpdate(state="idle", stop_reason="cancelled", usage=usage)
    outcome = RpcError.internal_error() if task.cancelled() else task.result()
    if isinstance(outcome, RpcError):
        error = v2.Error(code=outcome.code, message=outcome.message, data=outcome.data)
        return v2.StateUpdate(state="idle", stop_reason="error", error=error, usage=usage)
    return v2.StateUpdate(state="idle", stop_reason=outcome or "end_turn", usage=usage)


def _bare(update: v2.StateUpdate) -> v2.StateUpdate:
    """The same state in words of our own, which can be written whatever those of the handler were."""
    if update.state != "idle" or update.stop_reason in (None, "cancelled"):
        return v2.StateUpdate(state=update.state, stop_reason=update.stop_reason)
    error = RpcError.internal_error()
    return v2.StateUpdate(state="idle", stop_reason="error", error=v2.Error(code=error.code, message=error.message))
