"""The benchmark's messages for pygls, as attrs classes that its protocol is told to structure.

Tags have no defaults: its converter leaves out what is at its default.
"""

from __future__ import annotations

from typing import Any

import attrs
from pygls.protocol import JsonRPCProtocol, default_converter

__all__ = [
    "AgentMessageChunk",
    "InitializeParams",
    "NewSessionParams",
    "Option",
    "Permission",
    "PermissionResult",
    "Prompt",
    "PromptResult",
    "Protocol",
    "Selected",
    "Text",
    "ToolCall",
    "Update",
    "converter",
]


@attrs.define
class Text:
    text: str
    type: str


@attrs.define
class Image:
    data: str
    mimeType: str  # noqa: N815 - pygls maps no names here: fields are what is on the wire
    type: str


@attrs.define
class InitializeParams:
    protocolVersion: int  # noqa: N815
    clientCapabilities: dict[str, Any]  # noqa: N815


@attrs.define
class InitializeResult:
    protocolVersion: int  # noqa: N815


@attrs.define
class NewSessionParams:
    cwd: str
    mcpServers: list[str]  # noqa: N815


@attrs.define
class NewSessionResult:
    sessionId: str  # noqa: N815


@attrs.define
class Prompt:
    sessionId: str  # noqa: N815
    prompt: list[Text | Image]


@attrs.define
class PromptResult:
    stopReason: str  # noqa: N815


@attrs.define
class AgentMessageChunk:
    content: Text | Image
    sessionUpdate: str  # noqa: N815


@attrs.define
class AgentThoughtChunk:
    content: Text | Image
    sessionUpdate: str  # noqa: N815


@attrs.define
class ToolCall:
    toolCallId: str  # noqa: N815
    title: str
    sessionUpdate: str  # noqa: N815


@attrs.define
class Update:
    sessionId: str  # noqa: N815
    update: AgentMessageChunk | AgentThoughtChunk | ToolCall


@attrs.define
class Option:
    optionId: str  # noqa: N815
    name: str
    kind: str


@attrs.define
class Permission:
    sessionId: str  # noqa: N815
    toolCall: ToolCall  # noqa: N815
    options: list[Option]


@attrs.define
class Selected:
    optionId: str  # noqa: N815
    outcome: str


@attrs.define
class PermissionResult:
    outcome: Selected


def _request(params: type) -> type:
    fields = {"id": int | str, "method": str, "params": params, "jsonrpc": str}
    return attrs.make_class(f"{params.__name__}Request", _fields(fields))


def _notification(params: type) -> type:
    return attrs.make_class(
        f"{params.__name__}Notification", _fields({"method": str, "params": params, "jsonrpc": str})
    )


def _response(result: type) -> type:
    return attrs.make_class(f"{result.__name__}Response", _fields({"id": int | str, "result": result, "jsonrpc": str}))


def _fields(types: dict[str, Any]) -> dict[str, Any]:
    return {name: attrs.field(type=type_) for name, type_ in types.items()}


MESSAGES = {
    "initialize": _request(InitializeParams),
    "session/new": _request(NewSessionParams),
    "session/prompt": _request(Prompt),
    "session/update": _notification(Update),
    "session/request_permission": _request(Permission),
}
RESULTS = {
    "initialize": _response(InitializeResult),
    "session/new": _response(NewSessionResult),
    "session/prompt": _response(PromptResult),
    "session/request_permission": _response(PermissionResult),
}


class Protocol(JsonRPCProtocol):  # type: ignore[misc]  # a peer that may be absent here
    def get_message_type(self, method: str) -> type | None:
        return MESSAGES.get(method)

    def get_result_type(self, method: str) -> type | None:
        return RESULTS.get(method)


def converter() -> Any:
    """cattrs cannot tell classes apart by a value, so it is told how: by the tag."""
    made = default_converter()
    contents = {"text": Text, "image": Image}
    updates = {
        "agent_message_chunk": AgentMessageChunk,
        "agent_thought_chunk": AgentThoughtChunk,
        "tool_call": ToolCall,
    }
    made.register_structure_hook(Text | Image, lambda value, _: made.structure(value, contents[value["type"]]))
    made.register_structure_hook(
        AgentMessageChunk | AgentThoughtChunk | ToolCall,
        lambda value, _: made.structure(value, updates[value["sessionUpdate"]]),
    )
    made.register_structure_hook(int | str, lambda value, _: value)
    return made
