"""`AgentSessions`: the sessions that a v2 agent serves, and the three messages whose order makes their lifecycle.

`session/prompt`, `session/cancel` and `session/close` are taken in wire order in the dispatch loop, so that a cancel
meets exactly the prompts that came before it. How sessions are made, kept and listed is the agent's own.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from acprt.acp import v2
from acprt.acp.errors import session_not_found
from acprt.acp.sessions_v2.agent_session import AgentSession, WorkHandler
from acprt.acp.sessions_v2.projection import Projection
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.responder import Responder
from acprt.runtime.signatures import check_parameters

__all__ = ["AgentSessions"]

logger = logging.getLogger("acprt.acp")

F = TypeVar("F", bound=WorkHandler)
G = TypeVar("G", bound=Callable[[AgentSession], Awaitable[None]])


class AgentSessions:
    """Serves `session/prompt`, `session/cancel` and `session/close` of `agent`.

    Register one handler with `@sessions.on_prompt`, and make sessions known with `open` in the agent's `session/new`
    handler. A prompt that comes while work goes on is refused (-32602), or held until it ends with `hold=True`.
    """

    def __init__(self, agent: Endpoint, *, hold: bool = False) -> None:
        self._hold = hold
        self._handler: WorkHandler | None = None
        self._on_close: Callable[[AgentSession], Awaitable[None]] | None = None
        agent.on_receive_request(self._prompt)
        agent.on_receive_notification(self._cancel)
        agent.on_receive_request(self._close)
        agent.on_close(self._drain)

    def on_prompt(self, handler: F, /) -> F:
        """Register what works on a prompt: async `(work: Work) -> str | None`, the stop reason, None for `end_turn`.

        Its task is cancelled by `session/cancel`; the reason is `cancelled` then, whatever it returns or raises. An
        exception ends the work with the reason `error`: an `RpcError` as it is, any other as -32603, logged.
        """
        _check(handler, "work", "on_prompt")
        self._handler = handler
        return handler

    def on_close(self, handler: G, /) -> G:
        """Register what is awaited when a session is closed, behind its foreground work and before the answer: async
        `(session) -> None`. It is to stop the background work.
        """
        _check(handler, "session", "on_close")
        self._on_close = handler
        return handler

    def open(self, cx: Connection, session_id: str, *, cwd: str, history: Projection | None = None) -> AgentSession:
        """Make a session known on `cx`, in the handler of the request that opens it. Raises RpcError -32602 when it is
        open there already.
        """
        sessions = self._of(cx)
        if session_id in sessions:
            raise _invalid("session_already_open", session_id)
        session = sessions[session_id] = AgentSession(cx, session_id, cwd=cwd, hold=self._hold, history=history)
        return session

    def resume(
        self, cx: Connection, request: v2.ResumeSessionRequest, *, cwd: str, history: Projection | None = None
    ) -> AgentSession:
        """Make a kept session known on `cx`: replay what was asked for, and report the state; the answer is the
        caller's. `cwd` is the session's own.

        Raises RpcError -32602 for another directory, for a cursor that is not known, and while the session is open.
        """
        if request.cwd != cwd:
            raise _invalid("cwd_mismatch", request.session_id)
        if isinstance(request.replay_from, v2.Unknown):
            raise _invalid("unsupported_replay_cursor", request.session_id)
        session = self.open(cx, request.session_id, cwd=cwd, history=history)
        if request.replay_from is not None:
            session.replay()
        session.report_state()
        return session

    def get(self, cx: Connection, session_id: str) -> AgentSession:
        """An open session. Raises RpcError -32002 when there is none of that id."""
        session = self._of(cx).get(session_id)
        if session is None:
            raise session_not_found(session_id)
        return session

    async def _prompt(self, request: v2.PromptRequest, responder: Responder[v2.PromptResponse], cx: Connection) -> None:
        if self._handler is None:
            raise RpcError.method_not_found("session/prompt")
        self.get(cx, request.session_id).receive_prompt(request, responder, self._handler)

    async def _cancel(self, note: v2.CancelSessionNotification, cx: Connection) -> None:
        session = self._of(cx).get(note.session_id)
        if session is not None:
            session.cancel()

    async def _close(
        self, request: v2.CloseSessionRequest, responder: Responder[v2.CloseSessionResponse], cx: Connection
    ) -> None:
        """One that is not open counts as closed."""
        session = self._of(cx).get(request.session_id)
        if session is None:
            responder.respond(v2.CloseSessionResponse())
        else:
            session.begin_close()
            session.closing = session.closing or cx.spawn(self._finish_close(session))
            session.closing.add_done_callback(partial(_answer_close, responder))

    async def _finish_close(self, session: AgentSession) -> None:
        await session.close()
        if self._on_close is not None:
            try:
                await self._on_close(session)
            except Exception as error:
                text = "".join(traceback.format_exception(error))
                logger.error("closing session %s failed:\n%s", session.id, text)
        self._of(session.cx).pop(session.id, None)

    async def _drain(self, cx: Connection) -> None:
        """The client will say nothing more; what it asked for is still done, as long as the connection waits for it."""
        for session in list(self._of(cx).values()):
            await session.until_idle()

    def _of(self, cx: Connection) -> dict[str, AgentSession]:
        sessions: dict[str, AgentSession] = cx.attachments.setdefault(self, {})
        return sessions


def _answer_close(responder: Responder[v2.CloseSessionResponse], closing: asyncio.Task[None]) -> None:
    """Answer one of the requests that closed a session; the end of the connection answers by itself."""
    if not closing.cancelled():
        responder.respond(v2.CloseSessionResponse())


def _check(handler: Callable[..., object], parameter: str, decorator: str) -> None:
    """Raise TypeError for what is no `async def` with that one parameter."""
    check_parameters(handler, ((parameter,),), decorator)
    if not inspect.iscoroutinefunction(handler):
        raise TypeError(f"@{decorator}: {handler!r} must be `async def`")


def _invalid(reason: str, session_id: str) -> RpcError:
    return RpcError(ErrorCode.INVALID_PARAMS, "Invalid params", {"reason": reason, "sessionId": session_id})
