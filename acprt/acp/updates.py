"""Builders of what an agent of version 1 tells and asks while it works: chunks, tool calls, diffs, plans, permissions.

They take plain text and paths where the schema wants objects, and only build: `acprt.acp.session_updates` sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias
from uuid import uuid4

from msgspec import UNSET

from acprt.acp.schema import v1

__all__ = [
    "Block",
    "CallContent",
    "Entry",
    "Location",
    "agent_message",
    "agent_thought",
    "diff",
    "permission_request",
    "plan",
    "tool_call",
    "tool_call_update",
    "user_message",
]

Block: TypeAlias = str | v1.ContentBlock
"""A block of content; plain text stands for a `TextContent`."""

CallContent: TypeAlias = str | v1.ContentBlock | v1.ToolCallContent
"""What a tool call shows: a block, a `Diff` or a `Terminal`."""

Location: TypeAlias = str | tuple[str, int] | v1.ToolCallLocation
"""An absolute path, alone or with a line counted from 1."""

Entry: TypeAlias = str | v1.PlanEntry
"""A step of a plan; plain text stands for a pending one of medium priority."""

_OPTIONS = (
    v1.PermissionOption(option_id="allow_once", name="Allow", kind="allow_once"),
    v1.PermissionOption(option_id="allow_always", name="Always allow", kind="allow_always"),
    v1.PermissionOption(option_id="reject_once", name="Reject", kind="reject_once"),
)


def agent_message(content: Block, *, message_id: str | None = None) -> v1.AgentMessageChunk:
    """A piece of what the agent says."""
    return v1.AgentMessageChunk(content=_block(content), message_id=message_id)


def agent_thought(content: Block, *, message_id: str | None = None) -> v1.AgentThoughtChunk:
    """A piece of what the agent thinks."""
    return v1.AgentThoughtChunk(content=_block(content), message_id=message_id)


def user_message(content: Block, *, message_id: str | None = None) -> v1.UserMessageChunk:
    """A piece of what the user said: an agent repeats it when it replays a loaded session."""
    return v1.UserMessageChunk(content=_block(content), message_id=message_id)


def tool_call(
    title: str,
    *,
    id: str | None = None,
    kind: v1.ToolKind = "other",
    status: v1.ToolCallStatus = "pending",
    content: Iterable[CallContent] = (),
    locations: Iterable[Location] = (),
    raw_input: Any = UNSET,
) -> v1.ToolCall:
    """A tool call as it is first told. Without an `id` it gets one that no other call has."""
    return v1.ToolCall(
        tool_call_id=f"call-{uuid4().hex}" if id is None else id,
        title=title,
        kind=kind,
        status=status,
        content=[_shown(item) for item in content],
        locations=[_location(place) for place in locations],
        raw_input=raw_input,
    )


def tool_call_update(
    call: v1.ToolCall | v1.ToolCallPatch | str,
    *,
    status: v1.ToolCallStatus | None = None,
    title: str | None = None,
    kind: v1.ToolKind | None = None,
    content: Iterable[CallContent] | None = None,
    locations: Iterable[Location] | None = None,
    raw_input: Any = UNSET,
    raw_output: Any = UNSET,
) -> v1.ToolCallUpdate:
    """What changed in a tool call, named by itself or its id. Lists replace those told before; None changes nothing."""
    return v1.ToolCallUpdate(
        tool_call_id=call if isinstance(call, str) else call.tool_call_id,
        status=status,
        title=title,
        kind=kind,
        content=None if content is None else [_shown(item) for item in content],
        locations=None if locations is None else [_location(place) for place in locations],
        raw_input=raw_input,
        raw_output=raw_output,
    )


def diff(path: str, new_text: str, *, old_text: str | None = None) -> v1.Diff:
    """A change of the file at an absolute path; without `old_text` it is a new one."""
    return v1.Diff(path=path, old_text=old_text, new_text=new_text)


def plan(*entries: Entry) -> v1.Plan:
    """The whole plan: each one told replaces the one before."""
    return v1.Plan(
        entries=[
            v1.PlanEntry(content=entry, priority="medium", status="pending") if isinstance(entry, str) else entry
            for entry in entries
        ]
    )


def permission_request(
    session_id: str,
    call: v1.ToolCall | v1.ToolCallPatch | str,
    options: Iterable[v1.PermissionOption] = _OPTIONS,
) -> v1.RequestPermissionRequest:
    """The question whether a tool call may run; without `options` it may be allowed once or always, or be rejected.

    Of a call that is given whole, the question repeats what a client needs to ask its user, as agents may ask before
    they have told of the call.
    """
    if isinstance(call, v1.ToolCall):
        patch = v1.ToolCallPatch(
            tool_call_id=call.tool_call_id,
            title=call.title,
            kind=call.kind,
            status=call.status,
            content=call.content or None,
            locations=call.locations or None,
            raw_input=call.raw_input,
        )
    else:
        patch = v1.ToolCallPatch(tool_call_id=call) if isinstance(call, str) else call
    return v1.RequestPermissionRequest(session_id=session_id, tool_call=patch, options=list(options))


def _block(content: Block) -> v1.ContentBlock:
    return v1.TextContent(text=content) if isinstance(content, str) else content


def _shown(item: CallContent) -> v1.ToolCallContent:
    if isinstance(item, v1.Content | v1.Diff | v1.Terminal):
        return item
    return v1.Content(content=_block(item))


def _location(place: Location) -> v1.ToolCallLocation:
    if isinstance(place, v1.ToolCallLocation):
        return place
    path, line = (place, None) if isinstance(place, str) else place
    return v1.ToolCallLocation(path=path, line=line)
