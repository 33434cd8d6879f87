"""Which foreground work a prompt belongs to, and how far it has come.

Pure. The answer to a prompt and the updates of its session are two streams that may overtake each other, and an idle
update names no prompt: what belongs together is told from the order of what is seen here, and from the message id.
"""

from __future__ import annotations

from typing import TypeGuard

from acprt.acp import v2
from acprt.acp.sessions_v2.projection import Projection
from acprt.errors import ErrorCode, RpcError

__all__ = ["PromptProgress"]


class PromptProgress:
    """One prompt on its way: sent, accepted (its message is part of the conversation), started, finished.

    While the session is idle a prompt opens the next work. While it works, or will on another prompt, the prompt may be
    held for later or go into that work; where the agent put its message decides. An idle update seen before that work
    was seen running belongs to an earlier one, unless it answers a cancel: an agent that was stopped before it began
    may say no more than that.
    """

    def __init__(self, projection: Projection, *, is_alone: bool = True) -> None:
        """`is_alone`: no other prompt of the session is under way. One that is may open the next work in its place."""
        self.message_id: str | None = None
        self.refusal: RpcError | None = None
        """What the prompt was answered with instead of a message id."""
        self.loss: RpcError | None = None
        """Why nothing more will be heard of it: its connection has ended, or its session was left."""
        self.work: int | None = projection.works + 1 if is_alone and not projection.in_work else None
        """The number of the work it belongs to, as far as is known; None while only the agent can tell."""
        self._projection = projection
        self._earliest = projection.works if projection.in_work else projection.works + 1
        self._ends: dict[int, v2.StateUpdate] = {}
        self._last_end = projection.last_end
        self._is_placed = False  # the agent has shown its message, and so its place
        self._is_cancelled = False
        self._end_before_start: v2.StateUpdate | None = None

    def accepted(self, message_id: str) -> None:
        """The agent answered that the message is part of the conversation."""
        self.message_id = message_id
        if self.work is None:
            projection = self._projection
            self.work = projection.works if projection.in_work else projection.works + 1
        self._place()

    def refused(self, error: RpcError) -> None:
        """The agent answered with an error: the message is not part of the conversation. Work that has begun for it all
        the same owes its idle; if none has, no work will be its own.
        """
        self.refusal = error
        if not self.is_started:
            self.work = None

    def lost(self, error: RpcError) -> None:
        """Nothing more will come."""
        self.loss = self.loss or error

    def cancelled(self) -> None:
        """A cancel of the session was sent."""
        self._is_cancelled = True

    def updated(self, update: v2.SessionUpdate) -> None:
        """An update was applied to the projection."""
        projection = self._projection
        if projection.last_end is not self._last_end:
            self._last_end = end = projection.last_end
            if end is not None:
                self._ends[projection.works] = end
        elif self._is_cancelled and not self.is_started and _is_end_of_cancel(update):
            self._end_before_start = update
        if self.is_started and not self.is_accepted:
            self._end_before_start = None  # the cancel was for something else: the agent went on to begin
        if not self._is_placed:
            self._place()

    @property
    def is_accepted(self) -> bool:
        """Whether the agent has taken the message into the conversation."""
        return self.message_id is not None

    @property
    def is_started(self) -> bool:
        """Whether its work was seen to begin."""
        return self.work is not None and self._projection.works >= self.work

    @property
    def end(self) -> v2.StateUpdate | None:
        """The idle update that ended its work, once the prompt was answered and that work has ended."""
        if self._end_before_start is not None and self.is_accepted:
            return self._end_before_start
        if self.work is None or not (self.is_accepted or self._is_withdrawn):
            return None
        return self._ends.get(self.work)

    @property
    def is_finished(self) -> bool:
        """Whether it has come to its end, whatever that is."""
        if self.end is not None or self.loss is not None:
            return True
        return self.refusal is not None and not (self._is_withdrawn and self.work is not None)

    @property
    def stop_reason(self) -> str | None:
        """Why it ended: the reason of the idle update, or `cancelled` for a message that a cancel kept out. None while
        it goes on, and where the agent gave no reason.
        """
        if self.end is not None:
            return self.end.stop_reason
        return "cancelled" if self._is_withdrawn and self.is_finished and self.loss is None else None

    @property
    def failure(self) -> RpcError | None:
        """Why it did not end as a prompt should. A message that a cancel kept out did end as it should."""
        if self.end is not None:
            return None
        return self.loss or (None if self._is_withdrawn else self.refusal)

    @property
    def _is_withdrawn(self) -> bool:
        return self.refusal is not None and self.refusal.code == ErrorCode.REQUEST_CANCELLED

    def _place(self) -> None:
        message = None if self.message_id is None else self._projection.message(self.message_id, "user")
        if message is not None and message.work is not None and message.work >= self._earliest:
            # else its id was used before
            self._is_placed = True
            self.work = message.work


def _is_end_of_cancel(update: v2.SessionUpdate) -> TypeGuard[v2.StateUpdate]:
    return isinstance(update, v2.StateUpdate) and update.state == "idle" and update.stop_reason == "cancelled"
