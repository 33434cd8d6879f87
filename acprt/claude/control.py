"""What a host asks of the command, as typed requests of the runtime: the wire method is the `subtype`.

Send one with `cli.send(claude.GetTaskOutput(task_id=…))`; what the command asks is in `asks`. Members are named as on
the wire, or say what they are called there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

import msgspec
from msgspec import UNSET, UnsetType, field

from acprt.claude.base import Lenient, Number, Part
from acprt.claude.system import SlashCommand
from acprt.runtime.messages import Request

__all__ = [
    "AgentInfo",
    "AsyncMessageCancelled",
    "BackgroundTasks",
    "BackgroundTasksReply",
    "CancelAsyncMessage",
    "ControlRequest",
    "Empty",
    "EndSession",
    "GetContextUsage",
    "GetSessionCost",
    "GetTaskOutput",
    "HookMatcher",
    "Initialize",
    "InitializeReply",
    "Interrupt",
    "InterruptReceipt",
    "ListModels",
    "McpReconnect",
    "McpServersSet",
    "McpSetServers",
    "McpStatus",
    "McpStatusReply",
    "McpToggle",
    "ModelInfo",
    "PermissionMode",
    "RewindFiles",
    "SetMaxThinkingTokens",
    "SetModel",
    "SetModelReply",
    "SetPermissionMode",
    "SetPermissionModeReply",
    "StopTask",
    "TaskOutput",
]

R = TypeVar("R")

PermissionMode = Literal["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto"]
"""What is sent; what comes is a plain string, since the set is open."""

_AS_WRITTEN: Mapping[str, str] = {}


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class ControlRequest(Lenient, Request[R], Generic[R], rename=_AS_WRITTEN):
    """Base of a control request whose success payload is `R`. Unlike ACP's, its members are snake_case on the wire."""

    subtype: ClassVar[str]

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, method: str | None = None) -> None: ...


class Empty(Part):
    """A success that says nothing more."""


class HookMatcher(Part):
    """Hooks of one event: which of ours to call (`hookCallbackIds`), for which tools, for how many seconds at most."""

    hook_callback_ids: list[str] = field(name="hookCallbackIds")
    matcher: str | None = None
    timeout: Number | None = None
    on_failure: str | None = field(name="onFailure", default=None)


class AgentInfo(Part):
    """A subagent that is there to be called."""

    name: str = ""
    description: str = ""


class ModelInfo(Part):
    """A model that can be set."""

    value: str = ""
    resolved_model: str | None = field(name="resolvedModel", default=None)
    display_name: str = field(name="displayName", default="")
    description: str = ""


class InitializeReply(Part):
    """What the command is and has. `pending_permission_requests` are asks that are open on a process that lives on."""

    commands: list[SlashCommand] = field(default_factory=list)
    agents: list[AgentInfo] = field(default_factory=list)
    models: list[ModelInfo] = field(default_factory=list)
    output_style: str | None = None
    available_output_styles: list[str] = field(default_factory=list)
    account: dict[str, Any] = field(default_factory=dict)
    claude_code_version: str | None = None
    hooks_applied: Any = None
    hook_on_failure_supported: bool | None = None
    pending_permission_requests: list[Any] = field(default_factory=list)
    pending_user_dialog_requests: list[Any] = field(default_factory=list)


class Initialize(ControlRequest[InitializeReply], method="initialize"):
    """Says what the host can do. Optional and repeatable. Large configuration goes here, not on the command line."""

    hooks: dict[str, list[HookMatcher]] | None = None
    sdk_mcp_servers: list[str] | UnsetType = field(name="sdkMcpServers", default=UNSET)
    agents: dict[str, Any] | UnsetType = UNSET
    skills: Any = UNSET
    system_prompt: str | UnsetType = field(name="systemPrompt", default=UNSET)
    append_system_prompt: str | UnsetType = field(name="appendSystemPrompt", default=UNSET)
    json_schema: dict[str, Any] | UnsetType = field(name="jsonSchema", default=UNSET)
    title: str | UnsetType = UNSET
    agent_progress_summaries: bool | UnsetType = field(name="agentProgressSummaries", default=UNSET)
    forward_subagent_text: bool | UnsetType = field(name="forwardSubagentText", default=UNSET)
    prompt_suggestions: bool | UnsetType = field(name="promptSuggestions", default=UNSET)
    supported_dialog_kinds: list[str] | UnsetType = field(name="supportedDialogKinds", default=UNSET)
    per_task_stop_affordance: bool | UnsetType = field(name="perTaskStopAffordance", default=UNSET)
    plugins: list[Any] | UnsetType = UNSET
    mcp_servers: Any = field(name="mcpServers", default=UNSET)


class InterruptReceipt(Part):
    """What an interrupt left: uuids of prompts that run on in their turn, and of those it cancelled."""

    still_queued: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)


class Interrupt(ControlRequest[InterruptReceipt], method="interrupt"):
    """Stop the turn. Prompts behind it run on, unless `cancel_queued`; so do background shells."""

    cancel_queued: bool = False


class SetPermissionModeReply(Part):
    """The mode that holds now; it need not be the one asked for."""

    mode: str | None = None


class SetPermissionMode(ControlRequest[SetPermissionModeReply], method="set_permission_mode"):
    """Change the permission mode; a status message follows."""

    mode: str


class SetModelReply(Part):
    """The model that holds now."""

    model: str | None = None


class SetModel(ControlRequest[SetModelReply], method="set_model"):
    """Change the model; None: the default again."""

    model: str | None


class SetMaxThinkingTokens(ControlRequest[Empty], method="set_max_thinking_tokens"):
    """How much the model may think; None: as it likes."""

    max_thinking_tokens: int | None


class StopTask(ControlRequest[Empty], method="stop_task"):
    """Stop a background task. It succeeds for an unknown one, too: what proves the end is the task's own frame."""

    task_id: str


class BackgroundTasksReply(Part):
    """Whether the call went to the background."""

    backgrounded: bool | None = None


class BackgroundTasks(ControlRequest[BackgroundTasksReply], method="background_tasks"):
    """Send a running tool call, or all of them, to the background."""

    tool_use_id: str | UnsetType = UNSET


class TaskOutput(Part):
    """The end of a task's output, at most 8 KiB."""

    output: str = ""
    total_bytes: int = 0
    truncated: bool = False


class GetTaskOutput(ControlRequest[TaskOutput], method="get_task_output"):
    """Ask for the output of a task."""

    task_id: str


class AsyncMessageCancelled(Part):
    """Whether a prompt was taken back; False when it is unknown or runs already."""

    cancelled: bool = False
    message_uuid: str | None = None


class CancelAsyncMessage(ControlRequest[AsyncMessageCancelled], method="cancel_async_message"):
    """Take a queued prompt back."""

    message_uuid: str


class McpStatusReply(Part):
    """The MCP servers of the session."""

    mcp_servers: list[Any] = field(name="mcpServers", default_factory=list)


class McpStatus(ControlRequest[McpStatusReply], method="mcp_status"):
    """Ask how the MCP servers are."""


class McpServersSet(Part):
    """What setting the servers changed."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    errors: dict[str, Any] = field(default_factory=dict)


class McpSetServers(ControlRequest[McpServersSet], method="mcp_set_servers"):
    """Set the MCP servers that this host brings."""

    servers: dict[str, Any]


class McpReconnect(ControlRequest[Empty], method="mcp_reconnect"):
    """Connect an MCP server again."""

    server_name: str = field(name="serverName")


class McpToggle(ControlRequest[Empty], method="mcp_toggle"):
    """Turn an MCP server on or off."""

    server_name: str = field(name="serverName")
    enabled: bool


class RewindFiles(ControlRequest[Any], method="rewind_files"):
    """Put files back to what they were at a prompt; only where checkpoints are kept."""

    user_message_id: str
    dry_run: bool | UnsetType = UNSET


class GetContextUsage(ControlRequest[Any], method="get_context_usage"):
    """Ask what fills the context window."""


class GetSessionCost(ControlRequest[Any], method="get_session_cost"):
    """Ask what the session has cost."""


class ListModels(ControlRequest[Any], method="list_models"):
    """Ask which models there are."""


class EndSession(ControlRequest[Empty], method="end_session"):
    """Have the command answer, then exit 0 although its stdin is open."""
