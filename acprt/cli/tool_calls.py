"""The tool calls of a turn, put together from what the agent tells of them piece by piece.

Agents may update a call that they never announced, and leave out what did not change. Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from acprt.acp import v1

__all__ = ["ShownCall", "ToolCalls"]

_ENDED = ("completed", "failed")


@dataclass
class ShownCall:
    """What is known of one call so far."""

    id: str
    title: str = "a tool"
    kind: str = "other"
    status: str = "pending"
    content: Sequence[object] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether it completed or failed."""
        return self.status in _ENDED


class ToolCalls:
    """Calls by their id, in the order in which they were first heard of."""

    def __init__(self) -> None:
        self.calls: dict[str, ShownCall] = {}

    def apply(self, update: v1.ToolCall | v1.ToolCallPatch) -> tuple[ShownCall, bool]:
        """Take what was told; the call as it is now, and whether its status changed (or it is new)."""
        is_new = update.tool_call_id not in self.calls
        call = self.calls.setdefault(update.tool_call_id, ShownCall(update.tool_call_id))
        before = call.status
        call.title = update.title or call.title
        call.kind = update.kind or call.kind
        call.status = update.status or call.status
        call.content = update.content or call.content
        return call, is_new or call.status != before

    @property
    def running(self) -> list[ShownCall]:
        """Those that have not ended."""
        return [call for call in self.calls.values() if not call.has_ended]
