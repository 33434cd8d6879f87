"""The benchmark's messages as an acprt user declares them; the same fields and variants as the bare loops have."""

from __future__ import annotations

import msgspec

import acprt

__all__ = [
    "AgentMessageChunk",
    "Capabilities",
    "Initialize",
    "InitializeReply",
    "NewSession",
    "NewSessionReply",
    "Option",
    "Permission",
    "PermissionReply",
    "Prompt",
    "PromptReply",
    "Selected",
    "SessionUpdate",
    "Text",
    "ToolCall",
]


class Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class Image(msgspec.Struct, tag_field="type", tag="image", rename="camel"):
    data: str
    mime_type: str


Content = Text | Image


class Capabilities(msgspec.Struct, rename="camel", omit_defaults=True):
    load_session: bool = False


class InitializeReply(msgspec.Struct, rename="camel"):
    protocol_version: int


class Initialize(acprt.Request[InitializeReply], method="initialize"):
    protocol_version: int
    client_capabilities: Capabilities


class NewSessionReply(msgspec.Struct, rename="camel"):
    session_id: str


class NewSession(acprt.Request[NewSessionReply], method="session/new"):
    cwd: str
    mcp_servers: list[str]


class PromptReply(msgspec.Struct, rename="camel"):
    stop_reason: str


class Prompt(acprt.Request[PromptReply], method="session/prompt"):
    session_id: str
    prompt: list[Content]


class AgentMessageChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: Content


class AgentThoughtChunk(msgspec.Struct, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    content: Content


class ToolCall(msgspec.Struct, tag_field="sessionUpdate", tag="tool_call", rename="camel"):
    tool_call_id: str
    title: str


class SessionUpdate(acprt.Notification, method="session/update"):
    session_id: str
    update: AgentMessageChunk | AgentThoughtChunk | ToolCall


class Option(msgspec.Struct, rename="camel"):
    option_id: str
    name: str
    kind: str


class Selected(msgspec.Struct, tag_field="outcome", tag="selected", rename="camel"):
    option_id: str


class PermissionReply(msgspec.Struct):
    outcome: Selected


class Permission(acprt.Request[PermissionReply], method="session/request_permission"):
    session_id: str
    tool_call: ToolCall
    options: list[Option]
