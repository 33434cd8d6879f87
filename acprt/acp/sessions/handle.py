"""An open session of protocol version 1, seen from the client: it prompts, cancels, configures and closes.

What the agent says of it is kept in one bounded queue, in wire order, whether a turn runs or not; each prompt reads on
where the one before ended. It must never stop the connection from being read, nor touch another session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from acprt.acp import v1
from acprt.acp.sessions.asking import ask
from acprt.acp.sessions.blocks import blocks_of
from acprt.acp.sessions.errors import PromptInFlight, SessionClosed
from acprt.acp.sessions.permissions import settle_permissions
from acprt.acp.sessions.routing import SessionRoutes
from acprt.acp.sessions.turn import OPEN, OVER, RunningTurn, Turn
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.connection import Connection

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["OpeningResponse", "Session", "agent_closes_sessions"]

logger = logging.getLogger("acprt.acp")

OpeningResponse = v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse


class Session:
    """One session of an agent. Made by `acp.session`, `load_session`, `resume_session` and `fork_session`.

    As an `async with` block it is left at the end: a running turn is cancelled and read to its stop reason, and the
    agent is told to close the session when it offers that (`sessionCapabilities.close`).
    """

    def __init__(self, cx: Connection, session_id: str, response: OpeningResponse) -> None:
        """Enter the session among the routes of `cx`, in the ordered slot of `response`. Raises what that does."""
        self.cx = cx
        """The connection."""
        self.id = session_id
        """The session's id, as the agent gave it."""
        self.response = response
        """The agent's answer that opened the session."""
        self.modes: v1.SessionModeState | None = response.modes
        """The modes of the agent and the current one, kept up to date; None when it has none."""
        self.config_options: Sequence[v1.SessionConfigOption] | None = response.config_options
        """The configuration options with their values, kept up to date; None when the agent has none."""
        self.stop_reason: str | None = None
        """Why the last turn stopped, once its reader met the end; None while one runs, and when it failed."""
        self.replay: tuple[v1.SessionUpdate, ...] = ()
        """After `load_session`: the updates that told the history of the session, in order."""
        self.dropped_updates = 0
        """Updates that came between turns and were not kept, since `Limits.session_bytes` of them were waiting."""
        self.queue = SessionRoutes.of(cx).claim(session_id, self)
        """What is not read yet. Turns read it; so must nobody else."""
        self._turn: RunningTurn | None = None
        self._closed = False  # towards the agent, or left

    # -- turns --------------------------------------------------------------------------------------------------

    def prompt(
        self, prompt: str | v1.ContentBlock | Iterable[str | v1.ContentBlock], *, meta: dict[str, Any] | None = None
    ) -> Turn:
        """A turn: the text, block or blocks that are sent when it is iterated over, entered, or awaited by `.text()`.

        Updates that came before are read first. One turn at a time: PromptInFlight is raised where a second one would
        be sent; one that was left is waited for, at most `Limits.cancel_grace_seconds`.
        """
        request = v1.PromptRequest(session_id=self.id, prompt=blocks_of(prompt, _text), meta=meta)
        return Turn(RunningTurn(self, request))

    @property
    def is_running(self) -> bool:
        """Whether the agent works on a prompt of this session: one was sent, and is not answered."""
        return self._turn is not None and not self._turn.is_answered

    def cancel(self) -> None:
        """Send `session/cancel` for the running turn, once; its updates and its stop reason still come. Open permission
        requests of the session are answered as cancelled. Without a turn there is nothing to cancel.
        """
        if self._turn is not None:
            self._turn.cancel()

    # -- configuration ------------------------------------------------------------------------------------------

    async def set_mode(self, mode_id: str) -> None:
        """Change the mode; `modes` tells it from then on. Raises the agent's RpcError."""
        self._refuse_if_closed()
        await ask(
            self.cx,
            v1.SetSessionModeRequest(session_id=self.id, mode_id=mode_id),
            lambda _: self._mode_is(mode_id),
        )

    async def set_config_option(self, config_id: str, value: str | bool) -> Sequence[v1.SessionConfigOption]:
        """Set one option, a boolean one with a bool; all options as they are then. Raises the agent's RpcError."""
        self._refuse_if_closed()
        request = v1.SetSessionConfigOptionRequest(
            session_id=self.id,
            config_id=config_id,
            value=value,
            type="boolean" if isinstance(value, bool) else msgspec.UNSET,
        )
        return await ask(self.cx, request, lambda response: self._options_are(response.config_options))

    # -- end ----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Send `session/close` and wait for the answer; a running turn is cancelled first. Idempotent.

        Raises the agent's RpcError, and stays open then; that it knows no such session counts as success.
        """
        if self._closed:
            return
        turn = self._turn
        if turn is not None:
            turn.cancel()
        try:
            await ask(self.cx, v1.CloseSessionRequest(session_id=self.id), lambda _: None)
        except RpcError as error:
            if error.code != ErrorCode.RESOURCE_NOT_FOUND:
                raise
        if turn is not None:
            await turn.answered_in_time()
        self._forget()

    async def aclose(self) -> None:
        """Leave the session, as the end of its `async with` block does: in bounded time, whatever the agent answers."""
        if self._closed:
            return
        self._closed = True  # from now on nothing new begins here
        turn = self._turn
        try:
            if turn is not None and not turn.is_answered:
                turn.cancel()
                await turn.answered_in_time()
            if self._may_close():
                await self._close_within(self.cx.limits.cancel_grace_seconds)
        finally:
            self._forget()

    def abandon(self) -> None:
        """Leave the session without waiting for anything: what `aclose` would send is sent."""
        if self._closed:
            return
        self.cancel()
        if self._may_close():
            self.cx.send_request(v1.CloseSessionRequest(session_id=self.id)).detach()
        self._forget()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, asyncio.CancelledError):  # who is cancelled wants out, not to wait
            self.abandon()
        else:
            await self.aclose()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "idle" if self._turn is None else "running"
        return f"<Session {self.id} {state}>"

    # -- for the other rooms of sessions ------------------------------------------------------------------------

    def deliver(self, update: Any, size: int) -> None:
        """Take one update from the dispatch loop (DEC-29)."""
        kind = type(update)
        if kind is v1.CurrentModeUpdate:
            self._mode_is(update.current_mode_id)
        elif kind is v1.ConfigOptionUpdate:
            self._options_are(update.config_options)
        turn = self._turn
        if turn is not None and turn.state is OPEN:
            if not self.queue.put(update, size):
                turn.overflow(self.cx.limits.session_bytes)
        elif (turn is None or turn.is_answered) and not self.queue.put(update, size):
            if not self.dropped_updates:
                logger.warning("session %s: Limits.session_bytes of updates wait for a prompt to read them", self.id)
            self.dropped_updates += 1

    async def take_turn(self, turn: RunningTurn) -> None:
        """Make `turn` the one that runs, when the one before has its stop reason. Raises PromptInFlight."""
        self._refuse_if_closed()
        while (before := self._turn) is not None:
            if before.is_interrupted:
                before.leave()
            if before.state is not OVER:
                raise PromptInFlight(
                    f"session {self.id} still works on a prompt: read it to its end, or leave it with "
                    "`async with session.prompt(…) as turn`"
                )
            if not await before.answered_in_time():
                raise PromptInFlight(
                    f"session {self.id}: the agent has not answered its cancelled prompt; leave the session, "
                    "or raise Limits.cancel_grace_seconds"
                )
            self._refuse_if_closed()
        self._turn = turn
        self.stop_reason = None

    def turn_moved(self, turn: RunningTurn) -> None:
        """A turn was answered, or its reader is done with it. With both, the session is free for the next."""
        if turn is not self._turn:
            return
        if turn.is_answered:
            SessionRoutes.of(self.cx).cancelling.discard(self.id)
        if turn.state is OVER:
            if turn.response is not None:
                self.stop_reason = turn.response.stop_reason
            if turn.is_answered:
                self._turn = None

    def send_cancel(self) -> None:
        """`session/cancel`, and what the client owes the agent then."""
        try:
            self.cx.send_notification(v1.CancelNotification(session_id=self.id))
        except RpcError as error:
            logger.debug("session %s was not cancelled: %s", self.id, error)
        SessionRoutes.of(self.cx).cancelling.add(self.id)
        settle_permissions(self.cx, self.id)

    # -- private ------------------------------------------------------------------------------------------------

    def _mode_is(self, mode_id: str) -> None:
        if self.modes is not None:
            self.modes = msgspec.structs.replace(self.modes, current_mode_id=mode_id)

    def _options_are(self, options: Sequence[v1.SessionConfigOption]) -> Sequence[v1.SessionConfigOption]:
        self.config_options = options
        return options

    def _may_close(self) -> bool:
        return agent_closes_sessions(self.cx) and not self.cx.is_ending and not self.cx.is_incoming_closed

    async def _close_within(self, seconds: float) -> None:
        request = v1.CloseSessionRequest(session_id=self.id)
        try:
            await ask(self.cx, request, lambda _: None, timeout=seconds)
        except (RpcError, TimeoutError) as error:
            logger.warning("session %s was not closed by the agent: %s", self.id, error)

    def _forget(self) -> None:
        self._closed = True
        SessionRoutes.of(self.cx).release(self.id, self)
        if self._turn is not None:
            self._turn.fail(SessionClosed(f"session {self.id} was closed before the agent answered its prompt"))

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise SessionClosed(f"session {self.id} is closed")


def agent_closes_sessions(cx: Connection) -> bool:
    """Whether the agent offers `session/close`."""
    capabilities = getattr(cx.peer, "capabilities", None)
    return isinstance(capabilities, v1.AgentCapabilities) and capabilities.session_capabilities.close is not None


def _text(text: str) -> v1.ContentBlock:
    return v1.TextContent(text=text)
