"""Progress of our own requests: which tokens live, who listens to each, and what a dead one means.

A token is made for one request and dies with it: what still comes for it is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from acprt.mcp.messages import ProgressNotification
from acprt.wire.frames import UNREADABLE, NotificationFrame
from acprt.wire.ids import RequestId

__all__ = ["PROGRESS", "ProgressTokens"]

logger = logging.getLogger("acprt.mcp")

PROGRESS = "notifications/progress"
_PREFIX = "acprt-"

Listener = Callable[[ProgressNotification], object]

_decode = msgspec.json.Decoder(ProgressNotification).decode


class ProgressTokens:
    """The tokens of one connection."""

    def __init__(self) -> None:
        self._listeners: dict[str, Listener] = {}
        self._tokens: dict[RequestId, str] = {}  # by the request that brought them
        self._last = 0

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[str]:
        """A token that lives as long as the block, and calls `listener` for each progress that names it."""
        self._last += 1
        token = f"{_PREFIX}{self._last}"
        self._listeners[token] = listener
        try:
            yield token
        finally:
            self._listeners.pop(token, None)

    def sent(self, id: RequestId, token: str) -> None:
        """The request that brought the token has this id."""
        self._tokens[id] = token

    def answered(self, id: RequestId) -> None:
        """The answer of a request was read, or is not waited for any more: no progress of it may come behind that."""
        token = self._tokens.pop(id, None)
        if token is not None:
            self._listeners.pop(token, None)

    def hear(self, frame: NotificationFrame) -> bool:
        """Tell who listens. False: the token was ours and is dead. Others' tokens are none of our business."""
        try:
            note = _decode(frame.params)
        except UNREADABLE:
            return True
        token = note.progress_token
        if not isinstance(token, str) or not token.startswith(_PREFIX):
            return True
        listener = self._listeners.get(token)
        if listener is None:
            return False
        try:
            listener(note)
        except Exception:  # the reader is at work: what else it read must not be lost with one listener
            logger.exception("a progress listener failed")
        return True
