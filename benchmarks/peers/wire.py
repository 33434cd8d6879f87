"""The messages of the two bare loops, whole lines as msgspec structs: one typed pass each way, no envelope stage.

A runtime decodes an envelope first, so that bad params cost one request; the limit does without. Must stay a fair
floor: the same fields and variants that the acprt peers declare, and nothing a real peer could not send.
"""

from __future__ import annotations

import msgspec

import script

__all__ = [
    "Cancel",
    "CancelMessage",
    "Cancelled",
    "CancelledReply",
    "Inbound",
    "Initialize",
    "NewSession",
    "PermissionAnswer",
    "PermissionMessage",
    "PromptMessage",
    "Reply",
    "Result",
    "UpdateMessage",
    "cancel_message",
    "cancelled_reply",
    "initialize_message",
    "new_session_message",
    "permission_answer",
    "permission_message",
    "prompt_message",
    "text_of_prompt",
    "text_of_update",
    "update_message",
]


class Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class Image(msgspec.Struct, tag_field="type", tag="image", rename="camel"):
    data: str
    mime_type: str


Content = Text | Image


class Capabilities(msgspec.Struct, rename="camel", omit_defaults=True):
    load_session: bool = False


class InitializeParams(msgspec.Struct, rename="camel"):
    protocol_version: int
    client_capabilities: Capabilities


class Initialize(msgspec.Struct, tag_field="method", tag="initialize"):
    jsonrpc: str
    id: int
    params: InitializeParams


class NewSessionParams(msgspec.Struct, rename="camel"):
    cwd: str
    mcp_servers: list[str]


class NewSession(msgspec.Struct, tag_field="method", tag="session/new"):
    jsonrpc: str
    id: int
    params: NewSessionParams


class PromptParams(msgspec.Struct, rename="camel"):
    session_id: str
    prompt: list[Content]


class PromptMessage(msgspec.Struct, tag_field="method", tag="session/prompt"):
    jsonrpc: str
    id: int
    params: PromptParams


class AgentMessageChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: Content


class AgentThoughtChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    content: Content


class ToolCall(msgspec.Struct, tag_field="sessionUpdate", tag="tool_call", rename="camel"):
    tool_call_id: str
    title: str


class ToolCallOfPermission(msgspec.Struct, rename="camel"):
    tool_call_id: str
    title: str


Update = AgentMessageChunk | AgentThoughtChunk | ToolCall


class UpdateParams(msgspec.Struct, rename="camel"):
    session_id: str
    update: Update


class UpdateMessage(msgspec.Struct, tag_field="method", tag="session/update"):
    jsonrpc: str
    params: UpdateParams


class Result(msgspec.Struct, rename="camel", omit_defaults=True):
    """The three results in one struct: the bare client has one decoder for all that it reads."""

    stop_reason: str = ""
    session_id: str = ""
    protocol_version: int = 0


class Reply(msgspec.Struct):
    jsonrpc: str
    id: int
    result: Result


class Option(msgspec.Struct, rename="camel"):
    option_id: str
    name: str
    kind: str


class InboundParams(msgspec.Struct, rename="camel"):
    """Params of an update or of a permission request, told apart by which member is there."""

    session_id: str
    update: Update | None = None
    tool_call: ToolCallOfPermission | None = None
    options: list[Option] | None = None


class Inbound(msgspec.Struct):
    """Any line a client reads: a reply has `id` and maybe `result`, an update `method` and `params`, a request both."""

    id: int = 0
    result: Result | None = None
    method: str = ""
    params: InboundParams | None = None


class PermissionParams(msgspec.Struct, rename="camel"):
    session_id: str
    tool_call: ToolCallOfPermission
    options: list[Option]


class PermissionMessage(msgspec.Struct, tag_field="method", tag="session/request_permission"):
    jsonrpc: str
    id: int
    params: PermissionParams


class Selected(msgspec.Struct, tag_field="outcome", tag="selected", rename="camel"):
    option_id: str


class PermissionResult(msgspec.Struct):
    outcome: Selected


class PermissionAnswer(msgspec.Struct):
    """The only reply an agent reads."""

    jsonrpc: str
    id: int
    result: PermissionResult


class Cancel(msgspec.Struct, rename="camel"):
    request_id: int


class CancelMessage(msgspec.Struct, tag_field="method", tag="$/cancel_request"):
    jsonrpc: str
    params: Cancel


class Cancelled(msgspec.Struct):
    code: int
    message: str


class CancelledReply(msgspec.Struct):
    jsonrpc: str
    id: int
    error: Cancelled


def initialize_message(request_id: int) -> Initialize:
    return Initialize("2.0", request_id, InitializeParams(1, Capabilities()))


def new_session_message(request_id: int) -> NewSession:
    return NewSession("2.0", request_id, NewSessionParams("/", []))


def prompt_message(request_id: int, text: str) -> PromptMessage:
    return PromptMessage("2.0", request_id, PromptParams(script.SESSION_ID, [Text(text)]))


def update_message(text: str) -> UpdateMessage:
    return UpdateMessage("2.0", UpdateParams(script.SESSION_ID, AgentMessageChunk(Text(text))))


def text_of_prompt(message: PromptMessage) -> str:
    """The text of the first block; the benchmark sends no other kind, a typed reader still has to ask."""
    block = message.params.prompt[0]
    return block.text if isinstance(block, Text) else ""


def permission_message(request_id: int) -> PermissionMessage:
    call = ToolCallOfPermission(script.CALL_ID, script.CALL_TITLE)
    options = [Option(*words) for words in script.OPTIONS]
    return PermissionMessage("2.0", request_id, PermissionParams(script.SESSION_ID, call, options))


def permission_answer(request_id: int, options: list[Option]) -> PermissionAnswer:
    """The choice of the first option."""
    return PermissionAnswer("2.0", request_id, PermissionResult(Selected(options[0].option_id)))


def cancel_message(request_id: int) -> CancelMessage:
    return CancelMessage("2.0", Cancel(request_id))


def cancelled_reply(request_id: int) -> CancelledReply:
    return CancelledReply("2.0", request_id, Cancelled(-32800, "Request cancelled"))


def text_of_update(params: InboundParams) -> str:
    """The text of an agent message chunk, empty for every other update."""
    update = params.update
    if isinstance(update, AgentMessageChunk) and isinstance(update.content, Text):
        return update.content.text
    return ""
