"""Which prompt a message belongs to: a ticket per prompt, by its uuid, from queued over started to done.

Evidence in order of preference: the lifecycle of the command, the uuids on replies and results, the replayed echo, and
first in, first out. A turn that a finished background task wakes belongs to no prompt. It sends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any

from acprt.claude.base import Message
from acprt.claude.errors import ClaudeError, MessagesLost, PromptRefused
from acprt.claude.mailbox import Mailbox
from acprt.claude.messages import (
    AssistantMessage,
    CommandLifecycleMessage,
    ResultMessage,
    StreamEvent,
    UserMessage,
)
from acprt.claude.outcomes import Outcome, error_of, outcome_of
from acprt.claude.system import InitMessage

__all__ = ["Ticket", "TicketState", "Tickets"]


class TicketState(Enum):
    """Where a prompt is on its way; it only moves down this list."""

    NEW = auto()  # not sent
    QUEUED = auto()
    STARTED = auto()
    DONE = auto()


class Ticket:
    """One prompt."""

    __slots__ = (
        "_done",
        "acknowledged",
        "assistant_error",
        "error",
        "is_being_stopped",
        "is_dropped",
        "mailbox",
        "outcome",
        "prompt",
        "result",
        "state",
        "stop_when_started",
        "uuid",
    )

    def __init__(self, uuid: str, prompt: dict[str, Any] | None = None) -> None:
        self.uuid = uuid
        self.prompt = prompt  # the frame, until it is sent
        self.state = TicketState.NEW
        self.mailbox = Mailbox()
        self.acknowledged = False  # the command tells the lifecycle of this prompt
        self.is_dropped = False  # nobody reads any more
        self.is_being_stopped = False  # the command was asked to, and has not answered
        self.stop_when_started = False  # nobody wants its turn, and it could not be taken back
        self.assistant_error: str | None = None
        self.result: ResultMessage | None = None
        self.outcome: Outcome | None = None
        self.error: ClaudeError | None = None
        self._done = asyncio.Event()

    def drop(self) -> None:
        """Nobody reads any more; the end is still followed."""
        self.is_dropped = True
        self.mailbox.clear()

    def finish(self, outcome: Outcome, error: ClaudeError | None = None) -> None:
        """The end, once."""
        if self.state is not TicketState.DONE:
            self.state = TicketState.DONE
            self.outcome, self.error = outcome, error
            self.mailbox.end(error)
            self._done.set()

    async def done(self) -> None:
        """Wait for the end, without reading."""
        await self._done.wait()


class Tickets:
    """The prompts of one process, and the messages between them."""

    def __init__(self, limit: int, stop: Callable[[Ticket], None]) -> None:
        self.between = Mailbox()
        """What belongs to no prompt."""
        self.between_dropped = 0
        """How many of those were dropped, the oldest first, because nobody read them."""
        self.last_error: ResultMessage | None = None
        """The last result, if it is an error that no prompt's reader was told."""
        self._limit = limit
        self._stop = stop
        self._open: dict[str, Ticket] = {}  # in the order sent
        self._used: set[str] = set()
        self._tells_lifecycle = False  # and so of every prompt: none needs to be guessed
        self._current: Ticket | None = None  # its turn runs
        self._guessed = False  # that it does is no more than first in, first out
        self._end: Callable[[], ClaudeError] | None = None

    @property
    def open(self) -> Sequence[Ticket]:
        """The prompts that are not done, in the order sent."""
        return list(self._open.values())

    @property
    def current(self) -> Ticket | None:
        """The prompt whose turn runs."""
        return self._current

    def claim(self, uuid: str, prompt: dict[str, Any]) -> Ticket:
        """A ticket for a new prompt. ValueError for a uuid used before: the command would drop it without a word."""
        if uuid in self._used:
            raise ValueError(
                f"a prompt with uuid {uuid} was sent already, and the command would drop this one silently"
            )
        self._used.add(uuid)
        return Ticket(uuid, prompt)

    def enter(self, ticket: Ticket) -> None:
        """The prompt is being sent. Raises what the process ended with, if it did."""
        if self._end is not None:
            error = self._end()
            ticket.finish(Outcome.FAILED, error)
            raise error
        ticket.state = TicketState.QUEUED
        self._open[ticket.uuid] = ticket

    def has_not_begun(self, ticket: Ticket) -> bool:
        """Whether the turn of a prompt is still to come; of one whose lifecycle is not told: while another's runs."""
        return ticket.state is TicketState.QUEUED and (ticket.acknowledged or self._current is not None)

    def cancelled(self, ticket: Ticket) -> None:
        """A prompt was taken back before its turn."""
        self._finish(ticket, Outcome.CANCELLED)

    def deliver(self, message: Message, size: int) -> Ticket | None:
        """Hand a message to whom it belongs; the prompt, or None for a message between prompts."""
        ticket: Ticket | None
        if type(message) is StreamEvent or type(message) is AssistantMessage:
            uuid = message.user_message_uuid
            ticket = self._current
            if ticket is None or (uuid is not None and uuid != ticket.uuid):
                ticket = self._start_by(message.user_message_uuids or ((uuid,) if uuid is not None else ()))
            if ticket is not None and type(message) is AssistantMessage and message.parent_tool_use_id is None:
                ticket.assistant_error = message.error
        elif type(message) is ResultMessage:
            return self._result(message, size)
        elif type(message) is CommandLifecycleMessage:
            return self._lifecycle(message, size)
        elif type(message) is UserMessage and message.is_replay and message.uuid in self._open:
            ticket = self._start_by((message.uuid,)) if not self._open[message.uuid].acknowledged else self._current
        else:
            ticket = self._current
            if ticket is None and type(message) in (InitMessage, UserMessage):  # where no lifecycle is told
                ticket = self._start_by(())
        self._put(ticket, message, size)
        return ticket

    def result_lost(self, why: str) -> None:
        """A result could not be read: whoever runs must not wait for it."""
        ticket = self._current or self._unacknowledged()
        if ticket is not None:
            self._finish(ticket, Outcome.FAILED, MessagesLost(f"the result of the turn was lost: {why}"))

    def end(self, error: Callable[[], ClaudeError]) -> None:
        """The process is gone. `error` makes what each prompt is told, one for each: it is raised there."""
        self._end = error
        for ticket in self.open:
            self._finish(ticket, Outcome.FAILED, error())
        self.between.end()

    # -- how a prompt is found ----------------------------------------------------------------------------------------

    def _start_by(self, uuids: Iterable[str]) -> Ticket | None:
        """The open prompt that one of `uuids` names; without uuids the oldest whose lifecycle is not told."""
        named = False
        for uuid in uuids:
            named = True
            ticket = self._open.get(uuid)
            if ticket is not None:
                return self._start(ticket, guessed=False)
        if named:
            return None
        guess = self._unacknowledged()
        return None if guess is None else self._start(guess, guessed=True)

    def _unacknowledged(self) -> Ticket | None:
        if self._tells_lifecycle:
            return None
        ticket = next(iter(self._open.values()), None)
        return None if ticket is None or ticket.acknowledged else ticket

    def _start(self, ticket: Ticket, *, guessed: bool) -> Ticket:
        ticket.state = TicketState.STARTED
        self._current, self._guessed = ticket, guessed
        if ticket.stop_when_started:
            ticket.stop_when_started = False
            self._stop(ticket)
        return ticket

    def _lifecycle(self, message: CommandLifecycleMessage, size: int) -> Ticket | None:
        self._tells_lifecycle = True
        ticket = self._open.get(message.command_uuid)
        if ticket is None:
            self._put(self._current, message, size)
            return self._current
        ticket.acknowledged = True
        self._put(ticket, message, size)
        match message.state:
            case "started":
                self._start(ticket, guessed=False)
            case "cancelled":
                self._finish(ticket, Outcome.CANCELLED)
            case "completed":  # its result came without its uuid, or folded into that of another prompt
                self._finish(ticket, Outcome.COMPLETED)
            case "discarded" | "refused":
                self._finish(ticket, Outcome.FAILED, PromptRefused(ticket.uuid, message.state))
        return ticket

    def _result(self, result: ResultMessage, size: int) -> Ticket | None:
        uuids = result.user_message_uuids or ([result.user_message_uuid] if result.user_message_uuid else [])
        tickets = [ticket for uuid in uuids if (ticket := self._open.get(uuid)) is not None]
        if not tickets and not uuids and not _is_autonomous(result):
            guess = self._current or self._unacknowledged()
            tickets = [] if guess is None else [guess]
        self.last_error = result if result.is_error and not tickets else None
        if not tickets:
            self._put(None, result, size)
            if self._guessed:  # what ran was not that prompt: it has still to come
                self._current = None
            return None
        for ticket in tickets:
            self._put(ticket, result, size)
            ticket.result = result
            self._finish(
                ticket,
                outcome_of(result, assistant_error=ticket.assistant_error),
                error_of(result, assistant_error=ticket.assistant_error),
            )
        return tickets[0]

    def _finish(self, ticket: Ticket, outcome: Outcome, error: ClaudeError | None = None) -> None:
        self._open.pop(ticket.uuid, None)
        if self._current is ticket:
            self._current = None
        ticket.finish(outcome, error)

    def _put(self, ticket: Ticket | None, message: Message, size: int) -> None:
        if ticket is not None:
            if ticket.is_dropped:
                return
            ticket.mailbox.put(message, size)
            behind = ticket.mailbox.size - size  # one message alone may be larger than the limit
            if behind > self._limit and not ticket.mailbox.is_awaited and ticket.state is not TicketState.DONE:
                self._overflow(ticket)
            return
        between = self.between
        between.put(message, size)
        while between.size > self._limit and between.size > size:
            between.drop_oldest()
            self.between_dropped += 1

    def _overflow(self, ticket: Ticket) -> None:
        ticket.is_dropped = True  # what was read so far is not lost; then comes the error
        ticket.mailbox.end(
            MessagesLost(
                f"the reader of prompt {ticket.uuid} is over {self._limit} bytes behind (Limits.session_bytes)"
            )
        )
        self._stop(ticket)


def _is_autonomous(result: ResultMessage) -> bool:
    return result.origin is not None and result.origin.kind not in ("", "human")
