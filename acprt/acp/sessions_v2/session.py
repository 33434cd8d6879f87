"""`Session`: a v2 session that is followed: its handle, its projection, and the turns that watch it.

Updates reach it by session id, in wire order, before any handler of the user sees them; it passes all of them on. It
must never wait in the dispatch loop.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Self

from acprt.acp import v2
from acprt.acp.sessions.asking import ask, refuse_in_dispatch_loop
from acprt.acp.sessions.errors import SessionClosed
from acprt.acp.sessions.permissions import settle_permissions
from acprt.acp.sessions.routing import SessionRoutes
from acprt.acp.sessions_v2.ends import tell_of_the_end
from acprt.acp.sessions_v2.handle import Prompt, SessionHandle, option_request
from acprt.acp.sessions_v2.patches import Meta
from acprt.acp.sessions_v2.progress import PromptProgress
from acprt.acp.sessions_v2.projection import Projection
from acprt.acp.sessions_v2.turn import Turn
from acprt.errors import ErrorCode, RpcError

__all__ = ["Session"]

logger = logging.getLogger("acprt.acp")

Response = v2.NewSessionResponse | v2.ResumeSessionResponse | v2.ForkSessionResponse


class Session:
    """An open session. `projection` is what it is now; `prompt` starts a turn; the rest is asked of the agent.

    As `async with` block it is closed at the end. Without, it is followed until `close`, or the end of the connection.
    """

    def __init__(self, handle: SessionHandle, response: Response | None) -> None:
        self.handle = handle
        """The stateless handle, for what needs no following."""
        self.response = response
        """The complete answer that opened it; None while a resume is still replaying."""
        self.projection = Projection()
        self.cx = handle.cx
        self._turns: dict[Turn, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._closed: RpcError | None = None

    @property
    def id(self) -> str:
        """The session id."""
        return self.handle.id

    @property
    def is_closed(self) -> bool:
        """Whether it is followed no more: closed, or its connection has ended."""
        return self._closed is not None

    # -- prompts ------------------------------------------------------------------------------------------------

    def prompt(self, prompt: Prompt, *, meta: Meta | None = None) -> Turn:
        """Send a prompt (a text, a block or several of either) and watch its turn. While the session works, the agent
        may refuse it, hold it for later, or take it into that work. Whatever goes wrong is raised by the turn.
        """
        if self._closed is not None:
            raise SessionClosed(f"session {self.id} is closed")
        turn = Turn(self, PromptProgress(self.projection, is_alone=not self._turns))
        self._turns[turn] = None
        sent = self.handle.send_prompt(prompt, meta=meta)
        try:
            sent.on_receiving_result(turn.answered)
        except RpcError as error:  # the connection is being closed: nothing can answer any more
            turn.lost(error)
        return turn

    def cancel(self) -> None:
        """Cancel the foreground work and what was sent and is not part of the conversation yet. Keep reading: its end
        comes as stop reason `cancelled`. Open permission requests of the session are answered as cancelled, and its
        background work goes on.
        """
        try:
            self.handle.cancel()
        except RpcError as error:
            logger.debug("session %s was not cancelled: %s", self.id, error)
        for turn in self._turns:
            turn.cancel_sent()
        settle_permissions(self.cx, self.id)

    async def until_idle(self) -> None:
        """Wait until no foreground work goes on, whoever began it. Raises RpcError when the session ends before."""
        if self.projection.is_busy:
            refuse_in_dispatch_loop(self.cx, "until_idle()")
        while self.projection.is_busy:
            if self._closed is not None:
                raise RpcError(self._closed.code, self._closed.message, self._closed.data)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    # -- commands -----------------------------------------------------------------------------------------------

    async def set_config_option(self, config_id: str, value: str | bool) -> list[v2.SessionConfigOption]:
        """Choose a value of a configuration option; all options as they are then, which the projection has too.

        Raises RpcError -32602 for an id or a value that the agent does not offer.
        """
        return await ask(self.cx, option_request(self.id, config_id, value), self._options_set)

    async def cancel_tool_call(self, tool_call_id: str) -> None:
        """Have one tool call cancelled; its status tells when it has ended. Raises RpcError -32602 where it cannot."""
        await self.handle.cancel_tool_call(tool_call_id).block_task()

    async def cancel_terminal(self, terminal_id: str) -> None:
        """Have the process of one terminal stopped; its exit status tells when it has. Raises RpcError -32602 where it
        cannot.
        """
        await self.handle.cancel_terminal(terminal_id).block_task()

    async def close(self) -> None:
        """Close the session and wait for it: its work ends first, cancelled. Idempotent.

        Raises the agent's RpcError, and stays open then; that it knows no such session (-32002) counts as success.
        """
        if self._closed is not None:
            return
        try:
            await ask(self.cx, v2.CloseSessionRequest(session_id=self.id), lambda _response: self.leave())
        except RpcError as error:
            if error.code != ErrorCode.RESOURCE_NOT_FOUND:
                raise
            self.leave()

    async def aclose(self) -> None:
        """Leave the session, as the end of its `async with` block does: closed if the agent answers within
        `Limits.cancel_grace_seconds`, and followed no more in any case. It raises nothing.
        """
        if self._closed is not None:
            return
        try:
            async with asyncio.timeout(self.cx.limits.cancel_grace_seconds):
                await self.close()
        except (RpcError, TimeoutError) as failure:
            logger.warning("session %s was not closed by the agent: %s", self.id, str(failure) or "no answer in time")
        finally:
            self.leave()

    def abandon(self) -> None:
        """Leave the session without waiting for anything: the agent is told to close it."""
        if self._closed is None:
            if not self.cx.is_incoming_closed:
                self.handle.close().detach()
            self.leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, asyncio.CancelledError):  # who is cancelled wants out, not to wait
            self.abandon()
        else:
            await self.aclose()

    def __repr__(self) -> str:
        return f"<Session {self.id} {'closed' if self.is_closed else self.projection.state}>"

    # -- for turns and routes -----------------------------------------------------------------------------------

    def deliver(self, update: v2.SessionUpdate, size: int) -> None:
        """One update, from the dispatch loop; `size` is that of its JSON, in bytes."""
        self.projection.apply(update)
        for turn in list(self._turns):
            turn.updated(update, size)
        if self._waiters and not self.projection.is_busy:
            self._wake()

    def turn_ended(self, turn: Turn) -> None:
        """A turn needs no more updates."""
        self._turns.pop(turn, None)

    def lost(self, error: RpcError) -> None:
        """Nothing more will come; whoever waits learns why."""
        if self._closed is None:
            self._closed = error
            SessionRoutes.of(self.cx).release(self.id, self)
            for turn in list(self._turns):
                turn.lost(error)
            self._wake()

    def _options_set(self, response: v2.SetSessionConfigOptionResponse) -> list[v2.SessionConfigOption]:
        self.projection.config_options = list(response.config_options)
        return list(response.config_options)

    def follow(self) -> None:
        """Take the session's updates from now on, and those that came before. RpcError where another one does."""
        tell_of_the_end(self.cx, self)
        for update in SessionRoutes.of(self.cx).claim(self.id, self).take_all():
            self.projection.apply(update)

    def opened(self, response: Response) -> Session:
        """The answer that opened it, in its ordered slot."""
        self.response = response
        self.projection.apply_setup(response)
        return self

    def leave(self) -> None:
        """Follow it no more."""
        data = {"reason": "session_closed", "sessionId": self.id}
        self.lost(RpcError(ErrorCode.INTERNAL_ERROR, "Session closed", data))

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
