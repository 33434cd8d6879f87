"""What a v2 session consists of at a moment: messages, tool calls, terminals, compactions, and the rest.

Plain records, changed only by the projection that made them. They never know a connection.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET

from acprt.acp import v2
from acprt.acp.sessions_v2.patches import Meta

__all__ = [
    "Compaction",
    "Message",
    "MessageKind",
    "Record",
    "SessionMessage",
    "Subagent",
    "Terminal",
    "ToolCall",
    "Usage",
]

MessageKind = Literal["user", "agent", "thought"]


def text_of(content: list[Any]) -> str:
    """The text blocks of some content, joined; other blocks are left out."""
    return "".join(block.text for block in content if isinstance(block, v2.TextContent))


class Message(msgspec.Struct, kw_only=True):
    """A message of the user or the agent, or a thought of the agent. Chunks append to `content`, snapshots replace it.

    `work` is the number of the foreground work it belongs to, as `Projection.works` counts: the work that went on when
    it was first seen. A user's message that comes while the session is idle belongs to the next work; what the agent
    says then, and what a resume replayed, belongs to none (None).
    """

    id: str
    kind: MessageKind
    work: int | None = None
    content: list[v2.ContentBlock] = []
    meta: Meta = {}

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return text_of(self.content)


class ToolCall(msgspec.Struct, kw_only=True):
    """A tool call. What was never reported has the protocol's default: kind `other`, status `pending`, no title."""

    id: str
    name: str | None = None
    title: str | None = None
    kind: str = "other"
    status: str = "pending"
    content: list[v2.ToolCallContent] = []
    locations: list[v2.ToolCallLocation] = []
    raw_input: Any = UNSET
    """Any JSON value; UNSET when there is none."""
    raw_output: Any = UNSET
    """Likewise."""
    capabilities: v2.ToolCallCapabilities | None = None
    meta: Meta = {}

    @property
    def is_final(self) -> bool:
        """Whether it has ended. A status that this version does not know counts as in progress."""
        return self.status in ("completed", "failed", "cancelled")


class Terminal(msgspec.Struct, kw_only=True):
    """A terminal that the agent owns. `output` holds its bytes, at most `Projection.terminal_bytes` of their end."""

    id: str
    command: str | None = None
    cwd: str | None = None
    output: bytearray = msgspec.field(default_factory=bytearray)
    dropped: int = 0
    """Bytes of output that were let go of at the front."""
    exit_status: v2.TerminalExitStatus | None = None
    size: v2.TerminalSize | None = None
    capabilities: v2.TerminalCapabilities | None = None
    meta: Meta = {}

    @property
    def has_exited(self) -> bool:
        """Whether an exit status was reported, even one that says nothing."""
        return self.exit_status is not None

    @property
    def text(self) -> str:
        """The output as UTF-8, with what is none replaced."""
        return self.output.decode("utf-8", "replace")


class Compaction(msgspec.Struct, kw_only=True):
    """A compaction of the context; its place in the timeline is where it was first heard of."""

    id: str
    status: str = "in_progress"
    summary: list[v2.ContentBlock] = []
    error: str | None = None
    meta: Meta = {}


class Usage(msgspec.Struct, kw_only=True):
    """How full the context is, in tokens, and what the session has cost so far."""

    used: int
    size: int
    cost: v2.Cost | None = None


class Subagent(msgspec.Struct, kw_only=True):
    """A child session that this session owns (unstable). `state` None: its activity is not confirmed."""

    session_id: str
    title: str | None = None
    description: str | None = None
    capabilities: v2.SubagentSessionCapabilities | None = None
    state: v2.SessionState | v2.Unknown | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    meta: Meta = {}


class SessionMessage(msgspec.Struct, kw_only=True):
    """A message between this session and another one, as this session's transcript shows it (unstable)."""

    id: str
    sender_session_id: str | None = None
    recipient_session_id: str | None = None
    sender_message_id: str | None = None
    recipient_message_id: str | None = None
    content: list[v2.ContentBlock] = []
    meta: Meta = {}

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return text_of(self.content)


Record = Message | ToolCall | Compaction | SessionMessage
"""What has a place in the timeline of a session."""
