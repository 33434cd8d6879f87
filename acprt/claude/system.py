"""System messages other than the task family: the state of the session, and what it wants its host to know.

Subtypes that are internal upstream have no class here: they arrive as `UnknownMessage` and are to be ignored.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from acprt.claude.base import Number, Part, SystemMessage

__all__ = [
    "ApiRetryMessage",
    "CommandsChangedMessage",
    "CompactBoundaryMessage",
    "CompactMetadata",
    "ControlRequestProgressMessage",
    "ElicitationCompleteMessage",
    "FilesPersistedMessage",
    "HookProgressMessage",
    "HookResponseMessage",
    "HookStartedMessage",
    "InformationalMessage",
    "InitMessage",
    "LocalCommandOutputMessage",
    "McpServerStatus",
    "MemoryRecallMessage",
    "MirrorErrorMessage",
    "ModelRefusalFallbackMessage",
    "ModelRefusalNoFallbackMessage",
    "NotificationMessage",
    "PermissionDeniedMessage",
    "PluginInstallMessage",
    "SessionStateChangedMessage",
    "SessionWritesLostMessage",
    "SlashCommand",
    "StatusMessage",
    "ThinkingTokensMessage",
    "WorkerShuttingDownMessage",
]


class McpServerStatus(Part):
    """An MCP server of the session."""

    name: str = ""
    status: str = ""
    source: str | None = None


class InitMessage(SystemMessage, subtype="init"):
    """The session as a turn finds it: it comes at the start of every turn, and never before the first prompt.

    Ask `capabilities` for a feature, never the version.
    """

    cwd: str = ""
    tools: list[str] = field(default_factory=list)
    mcp_servers: list[McpServerStatus] = field(default_factory=list)
    model: str = ""
    permission_mode: str = field(name="permissionMode", default="default")
    slash_commands: list[str] = field(default_factory=list)
    terminal_slash_commands: list[str] | None = None
    output_style: str | None = None
    agents: list[str] | None = None
    skills: list[str] = field(default_factory=list)
    plugins: list[Any] = field(default_factory=list)
    plugin_errors: list[Any] | None = None
    api_key_source: str | None = field(name="apiKeySource", default=None)
    betas: list[str] | None = None
    claude_code_version: str | None = None
    fast_mode_state: str | None = None
    effort: str | None = None
    view_mode: str | None = None
    capabilities: list[str] = field(default_factory=list)


class StatusMessage(SystemMessage, subtype="status"):
    """What the session does: `compacting`, `requesting` or nothing; also that its permission mode changed."""

    status: str | None = None
    permission_mode: str | None = field(name="permissionMode", default=None)
    compact_result: str | None = None
    compact_error: str | None = None


class ApiRetryMessage(SystemMessage, subtype="api_retry"):
    """A call of the model failed and will be tried again; `error_status` None: there was no HTTP answer."""

    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: Number = 0
    error_status: int | None = None
    error: str | None = None
    no_response: Any = None


class CompactMetadata(Part):
    """How the history was compacted: `trigger` manual or auto, tokens before and after."""

    trigger: str = ""
    pre_tokens: Number = 0
    post_tokens: Number | None = None
    cumulative_dropped_tokens: Number | None = None
    duration_ms: Number | None = None
    user_context: str | None = None
    messages_summarized: int | None = None
    precomputed: bool | None = None
    pre_compact_discovered_tools: list[str] | None = None
    pre_compact_artifact_read_versions: list[Any] | None = None
    preserved_segment: Any = None
    preserved_messages: Any = None


class CompactBoundaryMessage(SystemMessage, subtype="compact_boundary"):
    """The history was compacted here."""

    compact_metadata: CompactMetadata | None = None


class SessionStateChangedMessage(SystemMessage, subtype="session_state_changed"):
    """`idle`: nothing more is owed; `running`; `requires_action`: a host's answer is pending."""

    state: str = ""
    sdk_host_only: bool = False
    """Only this host asked for it: not for the eyes of a user."""


class PermissionDeniedMessage(SystemMessage, subtype="permission_denied"):
    """A tool call was refused without asking the host; the result's `permission_denials` are the record."""

    tool_name: str = ""
    tool_use_id: str = ""
    agent_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str = ""


class InformationalMessage(SystemMessage, subtype="informational"):
    """A banner; `level` info, notice, suggestion or warning."""

    content: str = ""
    level: str = "info"
    tool_use_id: str | None = None
    prevent_continuation: bool | None = None
    tag: str | None = None


class NotificationMessage(SystemMessage, subtype="notification"):
    """A note for the user interface; `priority` low, medium, high or immediate."""

    key: str = ""
    text: str = ""
    priority: str = "low"
    color: str | None = None
    timeout_ms: Number | None = None


class LocalCommandOutputMessage(SystemMessage, subtype="local_command_output"):
    """What a local slash command printed."""

    content: str = ""


class _HookMessage(SystemMessage):
    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""


class HookStartedMessage(_HookMessage, subtype="hook_started"):
    """A hook runs; this and the next two only with `include_hook_events`."""


class HookProgressMessage(_HookMessage, subtype="hook_progress"):
    """What a hook has printed so far."""

    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponseMessage(_HookMessage, subtype="hook_response"):
    """A hook ended: `outcome` success, error or cancelled."""

    output: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""


class PluginInstallMessage(SystemMessage, subtype="plugin_install"):
    """A plugin is being installed: `status` started, installed, failed or completed."""

    status: str = ""
    name: str | None = None
    error: str | None = None


class FilesPersistedMessage(SystemMessage, subtype="files_persisted"):
    """Files were stored; each is an object with `filename` and `file_id`, or `error`."""

    files: list[Any] = field(default_factory=list)
    failed: list[Any] = field(default_factory=list)
    processed_at: str | None = None


class ThinkingTokensMessage(SystemMessage, subtype="thinking_tokens"):
    """An estimate for a spinner, not for a bill."""

    estimated_tokens: int = 0
    estimated_tokens_delta: int = 0
    user_message_uuid: str | None = None


class SlashCommand(Part):
    """A command that a prompt may begin with."""

    name: str = ""
    description: str = ""
    argument_hint: str = field(name="argumentHint", default="")


class CommandsChangedMessage(SystemMessage, subtype="commands_changed"):
    """The list of slash commands, anew."""

    commands: list[SlashCommand] = field(default_factory=list)


class MemoryRecallMessage(SystemMessage, subtype="memory_recall"):
    """Memories that were brought into the conversation: `mode` select or synthesize."""

    mode: str = ""
    memories: list[Any] = field(default_factory=list)


class ElicitationCompleteMessage(SystemMessage, subtype="elicitation_complete"):
    """What an MCP server asked the user for at a URL is done."""

    mcp_server_name: str = ""
    elicitation_id: str = ""


class ControlRequestProgressMessage(SystemMessage, subtype="control_request_progress"):
    """A long control request of ours is being worked on."""

    request_id: str = ""
    status: str = ""
    attempt: int | None = None
    max_retries: int | None = None
    retry_delay_ms: Number | None = None
    error_status: int | None = None


class ModelRefusalFallbackMessage(SystemMessage, subtype="model_refusal_fallback"):
    """The model refused and another one takes over; `retracted_message_uuids` are to be taken back."""

    trigger: str = ""
    direction: str = ""
    scope: str | None = None
    original_model: str = ""
    fallback_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    retracted_message_uuids: list[str] = field(default_factory=list)
    refused_user_message_uuid: str | None = None
    content: str = ""


class ModelRefusalNoFallbackMessage(SystemMessage, subtype="model_refusal_no_fallback"):
    """The model refused and no other one takes over."""

    original_model: str = ""
    request_id: str | None = None
    api_refusal_category: str | None = None
    api_refusal_explanation: str | None = None
    refused_user_message_uuid: str | None = None
    content: str = ""


class MirrorErrorMessage(SystemMessage, subtype="mirror_error"):
    """Entries of the session's file could not be stored."""

    error: str = ""
    key: Any = None


class WorkerShuttingDownMessage(SystemMessage, subtype="worker_shutting_down"):
    """The command is about to end; that this does not come means nothing."""

    reason: str = ""


class SessionWritesLostMessage(SystemMessage, subtype="session_writes_lost"):
    """The disk was full: `lost` names what was not written."""

    error_code: str = ""
    lost: list[str] = field(default_factory=list)
    transcript_session_ids: list[str] = field(default_factory=list)
