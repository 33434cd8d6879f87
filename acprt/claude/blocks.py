"""What stands inside conversational messages: API messages, their content blocks, and the raw events of a stream.

Only what a client of the stream acts upon is typed; whatever else comes stays in the message's line.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import field

from acprt.claude.base import Open, Part

__all__ = [
    "ApiEvent",
    "ApiMessage",
    "Block",
    "Delta",
    "RedactedThinkingBlock",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "Usage",
    "UserContent",
    "text_of",
]


class TextBlock(Part, tag="text"):
    """Text of the model, or of the user."""

    text: str = ""


class ThinkingBlock(Part, tag="thinking"):
    """What the model thought; `signature` vouches for it towards the API."""

    thinking: str = ""
    signature: str | None = None


class RedactedThinkingBlock(Part, tag="redacted_thinking"):
    """Thinking that is not shown."""

    data: str = ""


class ToolUseBlock(Part, tag="tool_use"):
    """A tool call: its id, the tool and the input, an object by convention."""

    id: str
    name: str = ""
    input: Any = None


class ToolResultBlock(Part, tag="tool_result"):
    """What a tool call led to; `content` is text or a list of blocks as plain values."""

    tool_use_id: str
    content: Any = None
    is_error: bool | None = None


Block: TypeAlias = Open[TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock]
"""A content block; one with an unknown `type` (an image, a server tool) arrives as `UnknownPart`."""


class Usage(Part):
    """Tokens; zero on frames where the count is not final."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class ApiMessage(Part):
    """An assistant message of the API. Several frames share its `id`, one per finished block."""

    id: str | None = None
    role: str = "assistant"
    model: str = ""
    content: list[Block] = field(default_factory=list)
    stop_reason: str | None = None
    """Null on all but synthetic messages: the reason of a turn stands in its result."""
    usage: Usage | None = None


class UserContent(Part):
    """A user message of the API: text, or blocks."""

    content: str | list[Block]
    role: str = "user"


class Delta(Part):
    """What a streaming event adds: `text` (text_delta), `thinking` (thinking_delta), `partial_json` (input_json_delta),
    or the `stop_reason` of a message_delta, which has no type.
    """

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class ApiEvent(Part):
    """A raw streaming event of the API: message_start, content_block_start, content_block_delta, content_block_stop,
    message_delta, message_stop, ping, error. `index` is the place of the content block.
    """

    type: str
    index: int | None = None
    delta: Delta | None = None
    content_block: Any = None
    message: ApiMessage | None = None
    usage: Usage | None = None


def text_of(content: str | list[Block]) -> str:
    """The text of a message's content: its text blocks, joined."""
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if isinstance(block, TextBlock))
