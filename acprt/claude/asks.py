"""What the command asks of its host, and the answers: typed requests of the runtime, as `control` has them.

`acprt.claude.host` serves most; any other is a `@handlers.method` on an endpoint given to `claude.connect`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import field

from acprt.claude.base import Number, Part
from acprt.claude.control import ControlRequest

__all__ = [
    "Allow",
    "CanUseTool",
    "Deny",
    "Elicitation",
    "ElicitationAnswer",
    "HookCallback",
    "HookOutput",
    "McpMessage",
    "McpMessageReply",
    "RequestUserDialog",
    "UserDialogAnswer",
]


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
