"""The messages of the two bare loops, whole lines as msgspec structs: one typed pass each way, no envelope stage.

A runtime decodes an envelope first, so that bad params cost one request; the limit does without. Must stay a fair
floor: the same fields and variants that the acprt peers declare, and nothing a real peer could not send.
"""

from __future__ import annotations

import msgspec

import script

__all__ = [
    "Inbound",
    "Initialize",
    "NewSession",
    "PromptMessage",
    "Reply",
    "Result",
    "UpdateMessage",
    "initialize_message",
    "new_session_message",
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


class UpdateParams(msgspec.Struct, rename="camel"):
    session_id: str
    update: AgentMessageChunk | AgentThoughtChunk | ToolCall


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


class Inbound(msgspec.Struct):
    """Any line a client reads: a reply has `id` and `result`, an update has `method` and `params`."""

    id: int = 0
    result: Result | None = None
    method: str = ""
    params: UpdateParams | None = None


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


def text_of_update(params: UpdateParams) -> str:
    """The text of an agent message chunk, empty for every other update."""
    update = params.update
    if isinstance(update, AgentMessageChunk) and isinstance(update.content, Text):
        return update.content.text
    return ""
