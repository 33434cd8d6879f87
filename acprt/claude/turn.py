"""One prompt as its reader sees it: the handle that `cli.prompt(…)` returns. Dropping it gives the turn up."""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

from acprt.claude.base import Message
from acprt.claude.messages import AssistantMessage, ResultMessage
from acprt.claude.outcomes import Outcome, stop_reason_of
from acprt.claude.tickets import Ticket, TicketState

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PromptSender", "Turn"]

logger = logging.getLogger("acprt.claude")

_WAYS = (
    "a turn is not awaited itself: `async for message in turn`, `async with turn`, `await turn.text()` or "
    "`await turn.finished()`"
)


class PromptSender:
    """What a turn needs of its client: to send its prompt, and to stop it."""

    def __init__(
        self,
        send: Callable[[Ticket], None],
        stop: Callable[[Ticket], None],
        call_on_loop: Callable[[Callable[[], None]], None],
        grace_seconds: float,
    ) -> None:
        self.send = send
        self.stop = stop
        self.call_on_loop = call_on_loop
        self.grace_seconds = grace_seconds
        self.thread_id = threading.get_ident()


class Turn:
    """One prompt and its messages. Nothing is sent before it is used, in one way:

    - `async for message in turn` — every message in wire order, the result last; then the error of a failed turn;
    - `async with turn` — sends at once; leaving early interrupts and waits for the result;
    - `await turn.text()` — the text of the main thread; `await turn.finished()` — the result.

    Leaving the loop early interrupts the turn; its remaining messages are dropped.
    """

    __slots__ = ("__weakref__", "_is_used", "_sender", "_ticket")

    def __init__(self, ticket: Ticket, sender: PromptSender) -> None:
        self._ticket = ticket
        self._sender = sender
        self._is_used = False  # by a call: a task that is cancelled before its first step has used it, too

    @property
    def uuid(self) -> str:
        """The prompt's uuid: lifecycle, echo and result name it."""
        return self._ticket.uuid

    @property
    def result(self) -> ResultMessage | None:
        """The result, once it is there."""
        return self._ticket.result

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it runs."""
        return self._ticket.outcome

    @property
    def stop_reason(self) -> str | None:
        """ACP's word for that; None while it runs and when it failed."""
        if self._ticket.outcome is Outcome.CANCELLED:
            return "cancelled"
        return None if self._ticket.result is None else stop_reason_of(self._ticket.result)

    def cancel(self, timeout: float | None = None) -> Coroutine[Any, Any, bool]:
        """Take a queued prompt back, or interrupt one that runs, and wait for its end; its messages stay to be read. A
        prompt that was not sent will not be.

        False when it went on for `timeout` seconds (`Limits.cancel_grace_seconds` without it) all the same.
        """
        self._is_used = True
        return self._cancel(self._sender.grace_seconds if timeout is None else timeout)

    def text(self) -> Coroutine[Any, Any, str]:
        """Read to the end; the text of the main thread's answers, joined. Raises what the turn failed of, RuntimeError
        when all of it was read before.
        """
        self._is_used = True
        return self._read_text()

    def finished(self) -> Coroutine[Any, Any, ResultMessage]:
        """Read to the end and drop the messages; the result. Raises what the turn failed of, or RuntimeError when it
        was cancelled before it began.
        """
        self._is_used = True
        return self._read_result()

    async def _cancel(self, seconds: float) -> bool:
        self._sender.stop(self._ticket)
        return await self._ended_within(seconds)

    async def _read_text(self) -> str:
        if self._ticket.result is not None and self._ticket.mailbox.is_read:
            raise RuntimeError("the turn was read before, and its messages are gone: `turn.result` is still there")
        parts = []
        try:
            async for message in self:
                match message:
                    case AssistantMessage(parent_tool_use_id=None, text=text):
                        parts.append(text)
        finally:
            self._leave()
        return "".join(parts)

    async def _read_result(self) -> ResultMessage:
        try:
            async for _ in self:
                pass
        finally:
            self._leave()
        if self._ticket.result is None:
            raise RuntimeError("there is no result: the prompt was taken back before its turn, or read before")
        return self._ticket.result

    if not TYPE_CHECKING:  # to a type checker it is not awaitable at all

        def __await__(self) -> NoReturn:
            raise TypeError(_WAYS)

    def __aiter__(self) -> Turn:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Message]:
        self._is_used = True
        return _next(self._ticket, self._sender)  # no frame of ours holds the handle: a traceback would keep it alive

    async def __aenter__(self) -> Turn:
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._leave()
        if kind is None or not issubclass(kind, asyncio.CancelledError):  # who is cancelled wants out, not to wait
            await self._ended_within(self._sender.grace_seconds)

    def __del__(self) -> None:
        ticket = getattr(self, "_ticket", None)
        if ticket is None or ticket.state is TicketState.DONE:
            return
        if ticket.state is TicketState.NEW:
            if not self._is_used:
                warnings.warn(
                    "a prompt was never used, so nothing was sent: iterate over it", RuntimeWarning, stacklevel=2
                )
        elif self._sender.thread_id == threading.get_ident():
            _leave(ticket, self._sender)
        else:  # a collector ran on another thread; the connection is not thread-safe
            sender = self._sender
            sender.call_on_loop(lambda: _leave(ticket, sender))

    def _start(self) -> None:
        if self._ticket.state is TicketState.NEW:
            self._sender.send(self._ticket)

    def _leave(self) -> None:
        if self._ticket.state is not TicketState.DONE:
            _leave(self._ticket, self._sender)

    async def _ended_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._ticket.done()
        except TimeoutError:
            logger.warning("prompt %s went on for %g s after it was interrupted", self.uuid, seconds)
            return False
        return True


async def _next(ticket: Ticket, sender: PromptSender) -> Message:
    if ticket.state is TicketState.NEW:
        sender.send(ticket)
    return await ticket.mailbox.next()


def _leave(ticket: Ticket, sender: PromptSender) -> None:
    if not ticket.is_dropped:
        ticket.drop()
        sender.stop(ticket)
