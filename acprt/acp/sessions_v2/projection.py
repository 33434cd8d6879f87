"""`Projection`: what a v2 session is now, from the updates that led there.

Pure: updates in, records out; no connection, no clock, and no update makes it raise. It changes only its own records,
so an update may be kept or sent on after it was applied.
"""

from __future__ import annotations

import binascii
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from acprt.acp import v2
from acprt.acp.sessions_v2.patches import Meta, merged_meta, patched
from acprt.acp.sessions_v2.records import (
    Compaction,
    Message,
    MessageKind,
    Record,
    SessionMessage,
    Subagent,
    Terminal,
    ToolCall,
    Usage,
)

__all__ = ["Projection"]

_BUSY = ("running", "requires_action")
"""The states in which foreground work goes on for certain. Any other that is not `idle` is shown as busy, but begins no
work: an agent must report the standard states beside its own."""

_UNAPPLIED = 100  # updates that could not be applied, kept for whoever wants to look; the oldest go first

Changed = Record | Terminal | Subagent | None


class Projection:
    """The current messages, tool calls, terminals, plans, options, usage and state of one session.

    Updates are applied in the order in which they came. Ids are kept apart by kind; an id seen for the first time makes
    its record, whether by a chunk or an upsert. What an update could not tell (an unknown variant, bytes that are no
    base64) changes nothing and is kept in `unapplied`, the last 100 of them.
    """

    def __init__(self, *, terminal_bytes: int = 1 << 20) -> None:
        """`terminal_bytes`: how much of the end of each terminal's output is kept."""
        self.terminal_bytes = terminal_bytes
        self.timeline: list[Record] = []
        """Messages, those between sessions too, tool calls and compactions, in the order of their first appearance."""
        self.tool_calls: dict[str, ToolCall] = {}
        self.terminals: dict[str, Terminal] = {}
        self.compactions: dict[str, Compaction] = {}
        self.plans: dict[str, Any] = {}
        """The content of each plan by its id: `v2.PlanItems`, `PlanFile`, `PlanMarkdown`, or `Unknown`."""
        self.config_options: list[v2.SessionConfigOption] = []
        self.available_commands: list[v2.AvailableCommand] = []
        self.usage: Usage | None = None
        self.title: str | None = None
        self.updated_at: str | None = None
        """When the session was last active, RFC 3339, as the agent wrote it."""
        self.meta: Meta = {}
        self.subagents: dict[str, Subagent] = {}
        self.session_messages: dict[str, SessionMessage] = {}
        self.unapplied: deque[Any] = deque(maxlen=_UNAPPLIED)

        self.state: str = "idle"
        """What the agent last reported; a new session is idle. Anything but `idle` is to be shown as busy."""
        self.works = 0
        """How many pieces of foreground work have begun."""
        self.in_work = False
        """Whether the last of them is going on."""
        self.last_end: v2.StateUpdate | None = None
        """The idle update that ended the last piece of work, with its stop reason, error and usage."""
        self.background: list[v2.BackgroundWork] | None = None
        """What runs beside the foreground work. None: not reported, which is not the same as nothing."""
        self._messages: dict[tuple[MessageKind, str], Message] = {}

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages and thoughts, in the order in which each was first seen."""
        return list(self._messages.values())

    def message(self, id: str, kind: MessageKind = "agent") -> Message | None:
        """The message of that id and kind."""
        return self._messages.get((kind, id))

    @property
    def is_busy(self) -> bool:
        """Whether the agent reports anything but idle; a state that is not known counts."""
        return self.state != "idle"

    # -- applying -----------------------------------------------------------------------------------------------

    def apply(self, update: v2.SessionUpdate) -> Changed:
        """Apply one update; the record that it made or changed, if it is about one."""
        apply = _APPLY.get(type(update))
        if apply is None:
            self._cannot_apply(update)
            return None
        return apply(self, update)

    def apply_setup(self, response: v2.NewSessionResponse | v2.ResumeSessionResponse | v2.ForkSessionResponse) -> None:
        """Take over the options and commands that the answer to a set-up request brings; one that brings none leaves
        what updates said. The state is never taken from it: a resume reports it as an update. Messages that came before
        the answer to a resume are history, and wait for no work.
        """
        if isinstance(response, v2.ResumeSessionResponse):
            for message in self._messages.values():
                if message.work is not None and message.work > self.works:
                    message.work = None
        if response.config_options:
            self.config_options = list(response.config_options)
        if response.available_commands:
            self.available_commands = list(response.available_commands)

    def _message_chunk(self, kind: MessageKind, chunk: v2.ContentChunk) -> Message:
        message = self._message_of(kind, chunk.message_id)
        message.content.append(chunk.content)
        return message

    def _message_upsert(self, kind: MessageKind, update: Any) -> Message:
        message = self._message_of(kind, update.message_id)
        message.content = list(patched(message.content, update.content, []))
        message.meta = merged_meta(message.meta, update.meta)
        return message

    def _message_of(self, kind: MessageKind, id: str) -> Message:
        message = self._messages.get((kind, id))
        if message is None:
            work = self.works if self.in_work else self.works + 1 if kind == "user" else None
            message = self._messages[kind, id] = Message(id=id, kind=kind, work=work)
            self.timeline.append(message)
        return message

    def _tool_call(self, update: v2.ToolCallUpdate) -> ToolCall:
        call = self._tool_call_of(update.tool_call_id)
        call.name = patched(call.name, update.name, None)
        call.title = patched(call.title, update.title, None)
        call.kind = patched(call.kind, update.kind, "other")
        call.status = patched(call.status, update.status, "pending")
        call.content = list(patched(call.content, update.content, []))
        call.locations = list(patched(call.locations, update.locations, []))
        call.raw_input = patched(call.raw_input, update.raw_input, UNSET)
        call.raw_output = patched(call.raw_output, update.raw_output, UNSET)
        call.capabilities = patched(call.capabilities, update.capabilities, None)
        call.meta = merged_meta(call.meta, update.meta)
        return call

    def _tool_call_content(self, chunk: v2.ToolCallContentChunk) -> ToolCall:
        call = self._tool_call_of(chunk.tool_call_id)
        call.content.append(chunk.content)
        return call

    def _tool_call_of(self, id: str) -> ToolCall:
        call = self.tool_calls.get(id)
        if call is None:
            call = self.tool_calls[id] = ToolCall(id=id)
            self.timeline.append(call)
        return call

    def _terminal(self, update: v2.TerminalUpdate) -> Terminal:
        terminal = self._terminal_of(update.terminal_id)
        terminal.command = patched(terminal.command, update.command, None)
        terminal.cwd = patched(terminal.cwd, update.cwd, None)
        terminal.exit_status = patched(terminal.exit_status, update.exit_status, None)
        terminal.size = patched(terminal.size, update.size, None)
        terminal.capabilities = patched(terminal.capabilities, update.capabilities, None)
        terminal.meta = merged_meta(terminal.meta, update.meta)
        output = update.output
        if output is None:
            self._set_output(terminal, b"")
        elif output is not UNSET:
            data = _bytes_of(output.data)
            if data is None:
                self._cannot_apply(update)
            else:
                self._set_output(terminal, data)
        return terminal

    def _terminal_output(self, chunk: v2.TerminalOutputChunk) -> Terminal | None:
        data = _bytes_of(chunk.data)
        if data is None:
            self._cannot_apply(chunk)
            return None
        terminal = self._terminal_of(chunk.terminal_id)
        terminal.output += data
        self._trim(terminal)
        return terminal

    def _terminal_of(self, id: str) -> Terminal:
        terminal = self.terminals.get(id)
        if terminal is None:
            terminal = self.terminals[id] = Terminal(id=id)
        return terminal

    def _set_output(self, terminal: Terminal, data: bytes) -> None:
        terminal.output = bytearray(data)
        terminal.dropped = 0
        self._trim(terminal)

    def _trim(self, terminal: Terminal) -> None:
        excess = len(terminal.output) - self.terminal_bytes
        if excess > 0:
            del terminal.output[:excess]
            terminal.dropped += excess

    def _plan(self, update: v2.PlanUpdate) -> None:
        plan = update.plan
        id = _plan_id_of(plan)
        if id is None:
            self._cannot_apply(update)
        else:
            self.plans[id] = plan

    def _plan_removed(self, update: v2.PlanRemoved) -> None:
        self.plans.pop(update.plan_id, None)

    def _commands(self, update: v2.AvailableCommandsUpdate) -> None:
        self.available_commands = list(update.available_commands)

    def _config(self, update: v2.ConfigOptionUpdate) -> None:
        self.config_options = list(update.config_options)

    def _info(self, update: v2.SessionInfoUpdate) -> None:
        self.title = patched(self.title, update.title, None)
        self.updated_at = patched(self.updated_at, update.updated_at, None)
        self.meta = merged_meta(self.meta, update.meta)

    def _usage(self, update: v2.UsageUpdate) -> None:
        cost = None if self.usage is None else self.usage.cost
        self.usage = Usage(used=update.used, size=update.size, cost=patched(cost, update.cost, None))

    def _notice(self, update: v2.Notice) -> None:
        """A notice is an event for the user, not a part of the session."""

    def _compaction(self, update: v2.CompactionUpdate) -> Compaction:
        compaction = self._compaction_of(update.compaction_id)
        compaction.status = update.status
        compaction.summary = list(patched(compaction.summary, update.summary, []))
        compaction.error = patched(compaction.error, update.error, None)
        compaction.meta = merged_meta(compaction.meta, update.meta)
        return compaction

    def _compaction_summary(self, chunk: v2.CompactionSummaryChunk) -> Compaction:
        compaction = self._compaction_of(chunk.compaction_id)
        compaction.summary.append(chunk.content)
        return compaction

    def _compaction_of(self, id: str) -> Compaction:
        compaction = self.compactions.get(id)
        if compaction is None:
            compaction = self.compactions[id] = Compaction(id=id)
            self.timeline.append(compaction)
        return compaction

    def _subagent(self, update: v2.SubagentUpdate) -> Subagent:
        child = self.subagents.get(update.session_id)
        if child is None:
            child = self.subagents[update.session_id] = Subagent(session_id=update.session_id)
        child.title = patched(child.title, update.title, None)
        child.description = patched(child.description, update.description, None)
        child.capabilities = patched(child.capabilities, update.capabilities, None)
        child.state = patched(child.state, update.state, None)
        child.cwd = patched(child.cwd, update.cwd, None)
        child.additional_directories = patched(child.additional_directories, update.additional_directories, None)
        child.meta = merged_meta(child.meta, update.meta)
        return child

    def _session_message(self, update: v2.SessionMessage) -> SessionMessage:
        message = self._session_message_of(update.message_id)
        message.sender_session_id = patched(message.sender_session_id, update.sender_session_id, None)
        message.recipient_session_id = patched(message.recipient_session_id, update.recipient_session_id, None)
        message.sender_message_id = patched(message.sender_message_id, update.sender_message_id, None)
        message.recipient_message_id = patched(message.recipient_message_id, update.recipient_message_id, None)
        message.content = list(patched(message.content, update.content, []))
        message.meta = merged_meta(message.meta, update.meta)
        return message

    def _session_message_chunk(self, chunk: v2.SessionMessageChunk) -> SessionMessage:
        message = self._session_message_of(chunk.message_id)
        message.content.append(chunk.content)
        return message

    def _session_message_of(self, id: str) -> SessionMessage:
        message = self.session_messages.get(id)
        if message is None:
            message = self.session_messages[id] = SessionMessage(id=id)
            self.timeline.append(message)
        return message

    def _state(self, update: v2.StateUpdate) -> None:
        """One more snapshot of the state. Only the first `idle` after work ends it: repeated ones tell nothing new."""
        self.state = update.state
        self.background = None if update.background is None else list(update.background)
        if update.state in _BUSY:
            if not self.in_work:
                self.in_work = True
                self.works += 1
        elif update.state == "idle" and self.in_work:
            self.in_work = False
            self.last_end = update

    def _unknown(self, update: v2.Unknown) -> None:
        """A variant that the schema does not name. A state that it does not name is a state all the same: not idle."""
        state = update.get("state")
        if update.get("sessionUpdate") == "state_update" and isinstance(state, str):
            self.state = state
        else:
            self._cannot_apply(update)

    def _cannot_apply(self, update: Any) -> None:
        self.unapplied.append(update)


def _bytes_of(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError):  # ValueError: characters outside ASCII
        return None


Apply = Callable[[Projection, Any], Changed]


def _of_kind(method: Callable[[Projection, MessageKind, Any], Message], kind: MessageKind) -> Apply:
    return lambda projection, update: method(projection, kind, update)


def _plan_id_of(plan: Any) -> str | None:
    """The id that every plan has, whatever its kind; None where the agent left it out."""
    if isinstance(plan, v2.Unknown):
        id = plan.get("planId")
        return id if isinstance(id, str) else None
    known: str = plan.plan_id
    return known


_APPLY: dict[type, Apply] = {
    v2.UserMessageChunk: _of_kind(Projection._message_chunk, "user"),
    v2.AgentMessageChunk: _of_kind(Projection._message_chunk, "agent"),
    v2.AgentThoughtChunk: _of_kind(Projection._message_chunk, "thought"),
    v2.UserMessage: _of_kind(Projection._message_upsert, "user"),
    v2.AgentMessage: _of_kind(Projection._message_upsert, "agent"),
    v2.AgentThought: _of_kind(Projection._message_upsert, "thought"),
    v2.ToolCallUpdate: Projection._tool_call,
    v2.ToolCallContentChunk: Projection._tool_call_content,
    v2.TerminalUpdate: Projection._terminal,
    v2.TerminalOutputChunk: Projection._terminal_output,
    v2.PlanUpdate: Projection._plan,
    v2.PlanRemoved: Projection._plan_removed,
    v2.AvailableCommandsUpdate: Projection._commands,
    v2.ConfigOptionUpdate: Projection._config,
    v2.SessionInfoUpdate: Projection._info,
    v2.UsageUpdate: Projection._usage,
    v2.Notice: Projection._notice,
    v2.CompactionUpdate: Projection._compaction,
    v2.CompactionSummaryChunk: Projection._compaction_summary,
    v2.SubagentUpdate: Projection._subagent,
    v2.SessionMessage: Projection._session_message,
    v2.SessionMessageChunk: Projection._session_message_chunk,
    v2.StateUpdate: Projection._state,
    v2.Unknown: Projection._unknown,
}
