"""The control protocol's requests, both ways, as typed requests of the runtime: the wire method is the `subtype`.

Send one with `cli.send(claude.GetTaskOutput(task_id=…))`, serve one with `@handlers.method` on an endpoint given to
`claude.connect(…, handlers=…)`. Members are named as on the wire, or say what they are called there.
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
    "Allow",
    "AsyncMessageCancelled",
    "BackgroundTasks",
    "BackgroundTasksReply",
    "CanUseTool",
    "CancelAsyncMessage",
    "ControlRequest",
    "Deny",
    "Elicitation",
    "ElicitationAnswer",
    "Empty",
    "EndSession",
    "GetContextUsage",
    "GetSessionCost",
    "GetTaskOutput",
    "HookCallback",
    "HookMatcher",
    "HookOutput",
    "Initialize",
    "InitializeReply",
    "Interrupt",
    "InterruptReceipt",
    "ListModels",
    "McpMessage",
    "McpMessageReply",
    "McpReconnect",
    "McpServersSet",
    "McpSetServers",
    "McpStatus",
    "McpStatusReply",
    "McpToggle",
    "ModelInfo",
    "PermissionMode",
    "RequestUserDialog",
    "RewindFiles",
    "SetMaxThinkingTokens",
    "SetModel",
    "SetModelReply",
    "SetPermissionMode",
    "SetPermissionModeReply",
    "StopTask",
    "TaskOutput",
    "UserDialogAnswer",
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


# -- to the command ---------------------------------------------------------------------------------------------------


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


# -- from the command -------------------------------------------------------------------------------------------------


class Allow(Part):
    """Let the tool run. `updated_input` replaces what it was called with; without it the original runs.

    `updated_permissions` are permission updates, taken from the ask's `permission_suggestions`, at most 4096.
    """

    updated_input: dict[str, Any] | None = field(name="updatedInput", default=None)
    updated_permissions: list[Any] | None = field(name="updatedPermissions", default=None)
    decision_classification: str | None = field(name="decisionClassification", default=None)
    behavior: Literal["allow"] = field(default="allow")


class Deny(Part):
    """Refuse the tool call: `message` is for the model; `interrupt` ends the turn as well."""

    message: str
    interrupt: bool = False
    behavior: Literal["deny"] = field(default="deny")


class CanUseTool(ControlRequest[Any], method="can_use_tool"):
    """May this tool call run? It waits as long as a human needs: nothing here times out."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    permission_suggestions: list[Any] = field(default_factory=list)
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    classifier_approvable: bool | None = None
    suppress_always_allow_rule: bool = False
    default_to_no: bool = False
    matched_ask_rule: Any = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None
    agent_id: str | None = None
    mcp_server: Any = None
    requires_user_interaction: bool = False
    """A question to the user: answer with its `answers` added to the input."""


class HookOutput(Part):
    """What a hook says; names that Python keeps for itself end in `_` here."""

    continue_: bool | None = field(name="continue", default=None)
    suppress_output: bool | None = field(name="suppressOutput", default=None)
    stop_reason: str | None = field(name="stopReason", default=None)
    decision: str | None = None
    reason: str | None = None
    system_message: str | None = field(name="systemMessage", default=None)
    hook_specific_output: dict[str, Any] | None = field(name="hookSpecificOutput", default=None)
    async_: bool | None = field(name="async", default=None)
    async_timeout: Number | None = field(name="asyncTimeout", default=None)


class HookCallback(ControlRequest[Any], method="hook_callback"):
    """A hook of ours is to run on `input`, the event."""

    callback_id: str
    input: dict[str, Any] = field(default_factory=dict)
    tool_use_id: str | None = None


class McpMessageReply(Part):
    """What an MCP server of ours answered."""

    mcp_response: Any = None


class McpMessage(ControlRequest[Any], method="mcp_message"):
    """A JSON-RPC message between the command's MCP client and a server of the host's, in either direction."""

    server_name: str
    message: msgspec.Raw


class ElicitationAnswer(Part):
    """`action`: accept (with `content`), decline or cancel."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class Elicitation(ControlRequest[Any], method="elicitation"):
    """An MCP server asks the user for something: a form by `requested_schema`, or a visit to `url`."""

    mcp_server_name: str = ""
    message: str = ""
    mode: str | None = None
    requested_schema: Any = None
    url: str | None = None
    elicitation_id: str | None = None


class UserDialogAnswer(Part):
    """`behavior`: completed (with `result`) or cancelled."""

    behavior: Literal["completed", "cancelled"]
    result: Any = None


class RequestUserDialog(ControlRequest[Any], method="request_user_dialog"):
    """A dialog of a kind that the host declared; one of another kind is never answered."""

    dialog_kind: str
    payload: Any = None
    tool_use_id: str | None = None
