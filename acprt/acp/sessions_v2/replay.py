"""A history told again: the updates that give a fresh projection what an earlier one knew.

Pure. The conversation is told, not the streaming: each message is one snapshot, each tool call one update.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from msgspec import UNSET

from acprt.acp import v2
from acprt.acp.sessions_v2.projection import Projection
from acprt.acp.sessions_v2.records import Compaction, Message, MessageKind, Record, SessionMessage, Terminal, ToolCall

__all__ = ["replay_of"]

_SNAPSHOTS: dict[MessageKind, type[v2.UserMessage | v2.AgentMessage | v2.AgentThought]] = {
    "user": v2.UserMessage,
    "agent": v2.AgentMessage,
    "thought": v2.AgentThought,
}


def replay_of(history: Projection) -> Iterator[v2.SessionUpdate]:
    """The updates that tell `history` to a client that knows nothing of the session; not its state, which is now."""
    for terminal in history.terminals.values():  # first: tool calls refer to them
        yield _terminal(terminal)
    for record in history.timeline:
        yield _record(record)
    for plan in history.plans.values():
        yield v2.PlanUpdate(plan=plan)
    if history.title is not None or history.updated_at is not None or history.meta:
        yield v2.SessionInfoUpdate(
            title=history.title or UNSET, updated_at=history.updated_at or UNSET, meta=history.meta or UNSET
        )
    if history.usage is not None:
        usage = history.usage
        yield v2.UsageUpdate(used=usage.used, size=usage.size, cost=usage.cost or UNSET)


def _record(record: Record) -> v2.SessionUpdate:
    match record:
        case Message():
            snapshot = _SNAPSHOTS[record.kind]
            return snapshot(message_id=record.id, content=list(record.content), meta=record.meta or UNSET)
        case ToolCall():
            return _tool_call(record)
        case Compaction():
            return v2.CompactionUpdate(
                compaction_id=record.id,
                status=record.status,
                summary=list(record.summary) or UNSET,
                error=record.error or UNSET,
                meta=record.meta or UNSET,
            )
        case SessionMessage():
            return v2.SessionMessage(
                message_id=record.id,
                sender_session_id=record.sender_session_id or UNSET,
                recipient_session_id=record.recipient_session_id or UNSET,
                sender_message_id=record.sender_message_id or UNSET,
                recipient_message_id=record.recipient_message_id or UNSET,
                content=list(record.content),
                meta=record.meta or UNSET,
            )


def _tool_call(call: ToolCall) -> v2.ToolCallUpdate:
    return v2.ToolCallUpdate(
        tool_call_id=call.id,
        name=UNSET if call.name is None else call.name,
        title=UNSET if call.title is None else call.title,
        kind=call.kind,
        status=call.status,
        content=list(call.content) or UNSET,
        locations=list(call.locations) or UNSET,
        raw_input=call.raw_input,
        raw_output=call.raw_output,
        capabilities=call.capabilities or UNSET,
        meta=call.meta or UNSET,
    )


def _terminal(terminal: Terminal) -> v2.TerminalUpdate:
    output = v2.TerminalOutput(data=base64.b64encode(terminal.output).decode()) if terminal.output else UNSET
    return v2.TerminalUpdate(
        terminal_id=terminal.id,
        command=UNSET if terminal.command is None else terminal.command,
        cwd=UNSET if terminal.cwd is None else terminal.cwd,
        output=output,
        exit_status=terminal.exit_status or UNSET,
        size=terminal.size or UNSET,
        capabilities=terminal.capabilities or UNSET,
        meta=terminal.meta or UNSET,
    )
