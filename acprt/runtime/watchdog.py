"""Names the handler that holds the dispatch loop too long: the deadlock that cannot be seen directly (DEC-17).

One timer per connection, set only while frames come in; it warns and does nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection
    from acprt.runtime.dispatch import DispatchLoop

__all__ = ["Watchdog"]

logger = logging.getLogger("acprt.dispatch")


class Watchdog:
    """Looks at the loop every half of `seconds`: a turn that it sees three times has taken that long, or half more."""

    def __init__(self, cx: Connection, seconds: float) -> None:
        self.armed = seconds <= 0 or seconds == float("inf")  # a switched-off watchdog never asks to be armed
        self._cx = cx
        self._dispatch: DispatchLoop | None = None
        self._seconds = seconds
        self._turn = 0
        self._looks = 0  # how often that turn was seen
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, dispatch: DispatchLoop) -> None:
        """The loop to watch."""
        self._dispatch = dispatch

    def arm(self) -> None:
        """Begin to look, until nothing runs."""
        self.armed = True
        self._timer = self._cx.loop.call_later(self._seconds / 2, self._look)

    def close(self) -> None:
        """Stop looking."""
        self.armed = True
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        dispatch = self._dispatch
        self.armed = False
        if dispatch is None or dispatch.running is None:
            return
        if dispatch.turns != self._turn:
            self._turn = dispatch.turns
            self._looks = 0
        self._looks += 1
        if self._looks == 3:
            self._warn(dispatch)
        self.arm()

    def _warn(self, dispatch: DispatchLoop) -> None:
        pending = self._cx.status().pending
        waits = ", ".join(f"{call.method} (id {call.id})" for call in pending[:5]) or "none"
        logger.warning(
            "%s: handler %s has held the dispatch loop for over %g s; nothing behind it is dispatched, and requests of "
            "this side stay unanswered (%d pending: %s). If it waits for one of them, move the wait into cx.spawn(…), "
            "or make it a `method` handler, or give block_task a timeout",
            self._cx.name,
            dispatch.running_name,
            self._seconds,
            len(pending),
            waits,
        )
