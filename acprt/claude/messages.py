"""The catalogue of the stream's messages, the task family apart. Every class says what its frame means for a host.

Discriminators are `type` and, for system messages, `subtype`. Sets of words are open: fields are plain strings. Members
that are internal upstream are not typed here; `message.extras` has them.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from acprt.claude.base import Message, Number, Part
from acprt.claude.blocks import ApiEvent, ApiMessage, Block, UserContent, text_of

__all__ = [
    "ActiveGoalMessage",
    "AssistantMessage",
    "AuthStatusMessage",
    "AutocompactStateMessage",
    "BashCommand",
    "CommandLifecycleMessage",
    "ConversationResetMessage",
    "KeepAlive",
    "Origin",
    "PermissionDenial",
    "PromptSuggestionMessage",
    "RateLimitEvent",
    "RateLimitInfo",
    "ResultMessage",
    "StreamEvent",
    "ToolProgressMessage",
    "ToolUseSummaryMessage",
    "TranscriptMirrorMessage",
    "UpdateEnvironmentVariables",
    "UserMessage",
]


class AssistantMessage(Message, type="assistant"):
    """One finished block of the model's answer; several frames share `message.id`."""

    message: ApiMessage
    parent_tool_use_id: str | None = None
    """The tool call of the subagent that speaks; None: the main thread."""
    uuid: str | None = None
    session_id: str = ""
    error: str | None = None
    """Why there is no answer of the model: `authentication_failed`, `rate_limit`, `overloaded`, …"""
    request_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None
    resumed_from_incomplete_thinking: bool | None = None
    supersedes: list[str] | None = None
    aborted: bool | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None
    timestamp: str | None = None
    context_usage: Any = None
    usage_report: Any = None

    @property
    def content(self) -> list[Block]:
        """The blocks of this frame."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of its text blocks."""
        return text_of(self.message.content)


class Origin(Part):
    """Where a message, or the turn that it ends, came from: `human`, `task-notification`, `channel`, `peer`, …"""

    kind: str = ""
    subkind: str | None = None
    run_id: str | None = field(name="runId", default=None)
    server: str | None = None
    from_: str | None = field(name="from", default=None)
    name: str | None = None
    handback: bool | None = None
    handback_tool_use_id: str | None = field(name="handbackToolUseId", default=None)


class UserMessage(Message, type="user"):
    """A prompt, or what the host of a tool says to the model: mostly tool results."""

    message: UserContent
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    session_id: str = ""
    is_replay: bool = field(name="isReplay", default=False)
    """An echo of what stdin brought, under the same `uuid`."""
    is_synthetic: bool | None = field(name="isSynthetic", default=None)
    tool_use_result: Any = None
    priority: str | None = None
    origin: Origin | None = None
    should_query: bool | None = field(name="shouldQuery", default=None)
    timestamp: str | None = None
    client_composed: bool | None = None
    pasted_content: Any = None
    inline_pastes: Any = None
    agent_id: str | None = None
    subagent_type: str | None = None
    task_description: str | None = None

    @property
    def content(self) -> str | list[Block]:
        """Its text or its blocks."""
        return self.message.content


class StreamEvent(Message, type="stream_event"):
    """A piece of an answer that is being made; only with `include_partial_messages`."""

    event: ApiEvent
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    session_id: str = ""
    ttft_ms: Number | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None

    @property
    def text(self) -> str:
        """The text that it adds; empty for all else."""
        delta = self.event.delta
        return (delta.text or "") if delta is not None else ""

    @property
    def thinking(self) -> str:
        """The thinking that it adds; empty for all else."""
        delta = self.event.delta
        return (delta.thinking or "") if delta is not None else ""


class PermissionDenial(Part):
    """A tool call that was refused during the turn."""

    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: Any = None


class ResultMessage(Message, type="result"):
    """The end of a turn. `success` with `is_error` is how failures of the API look: the text is in `result` then.

    Counters are cumulative over the process: take the last, never the sum. Classify by `terminal_reason`
    (`claude.outcome_of` does), never by a text.
    """

    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    errors: list[str] = field(default_factory=list)
    terminal_reason: str | None = None
    stop_reason: str | None = None
    uuid: str | None = None
    session_id: str = ""
    duration_ms: Number = 0
    duration_api_ms: Number = 0
    num_turns: int = 0
    total_cost_usd: Number = 0
    usage: dict[str, Any] = field(default_factory=dict)
    model_usage: dict[str, Any] = field(name="modelUsage", default_factory=dict)
    permission_denials: list[PermissionDenial] = field(default_factory=list)
    queued_turn_count: int | None = None
    result_index: int | None = None
    """Counted from 0 per process: a gap means a lost result."""
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    resume_reason: str | None = None
    origin: Origin | None = None
    api_error_status: int | None = None
    structured_output: Any = None
    deferred_tool_use: Any = None
    fast_mode_state: str | None = None
    credential_expires_at: Any = None
    startup_failure_reason: str | None = None
    invalid_config_file: str | None = None

    @property
    def text(self) -> str:
        """What it says: the result, or the errors."""
        return self.result if self.result is not None else "\n".join(self.errors)


class RateLimitInfo(Part):
    """Where an account stands with one of its limits; `resets_at` is seconds since 1970."""

    status: str = ""
    resets_at: Number | None = field(name="resetsAt", default=None)
    rate_limit_type: str | None = field(name="rateLimitType", default=None)
    utilization: Number | None = None


class RateLimitEvent(Message, type="rate_limit_event"):
    """A limit of the account came near, was reached or was lifted."""

    rate_limit_info: RateLimitInfo
    uuid: str | None = None
    session_id: str = ""


class ToolProgressMessage(Message, type="tool_progress"):
    """A tool call still runs."""

    tool_use_id: str
    tool_name: str = ""
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: Number = 0
    task_id: str | None = None
    heartbeat: bool | None = None
    subagent_type: str | None = None
    subagent_retry: Any = None
    uuid: str | None = None
    session_id: str = ""


class ToolUseSummaryMessage(Message, type="tool_use_summary"):
    """What several tool calls did, in a line."""

    summary: str = ""
    preceding_tool_use_ids: list[str] = field(default_factory=list)
    uuid: str | None = None
    session_id: str = ""


class AuthStatusMessage(Message, type="auth_status"):
    """A login is under way, or failed."""

    is_authenticating: bool = field(name="isAuthenticating", default=False)
    output: list[str] = field(default_factory=list)
    error: str | None = None
    uuid: str | None = None
    session_id: str = ""


class PromptSuggestionMessage(Message, type="prompt_suggestion"):
    """What the user may want to say next."""

    suggestion: str = ""
    uuid: str | None = None
    session_id: str = ""


class ConversationResetMessage(Message, type="conversation_reset"):
    """The conversation begins anew, under another id."""

    new_conversation_id: str
    trigger: str | None = None
    user_message_uuid: str | None = None
    timestamp: str | None = None
    uuid: str | None = None
    session_id: str = ""


class CommandLifecycleMessage(Message, type="command_lifecycle"):
    """What became of a prompt that was sent with a `uuid`; the only positive acknowledgement of one.

    `state`: queued, started, completed, cancelled, discarded or refused.
    """

    command_uuid: str
    state: str
    wakeup_source: Any = None
    scheduled_for: Any = None
    uuid: str | None = None
    session_id: str = ""


class KeepAlive(Message, type="keep_alive"):
    """Nothing: a sign of life, in both directions."""


class TranscriptMirrorMessage(Message, type="transcript_mirror"):
    """Entries of the session's file for a host that stores them; never to be shown."""

    file_path: str = field(name="filePath", default="")
    entries: list[Any] = field(default_factory=list)


class ActiveGoalMessage(Message, type="active_goal"):
    """The goal that the session pursues; None: there is none."""

    value: Any = None


class AutocompactStateMessage(Message, type="autocompact_state"):
    """How near the history is to being compacted."""

    value: Any = None


class UpdateEnvironmentVariables(Message, type="update_environment_variables"):
    """To the command: set variables of its environment. It answers only one that has a `request_id`."""

    variables: dict[str, str] = field(default_factory=dict)
    request_id: str | None = None


class BashCommand(Message, type="bash_command"):
    """To the command: run a line in the shell; it comes back as two replayed user messages."""

    command: str = ""
    cwd: str | None = None
    uuid: str | None = None
