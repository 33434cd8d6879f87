"""What a prompt is on the wire. It refuses here what the command would take without a word of what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

__all__ = ["Content", "prompt_frame"]

Content: TypeAlias = str | Sequence[Any]
"""Text, or content blocks: `claude.TextBlock(text=…)` and its like, or dicts."""


def prompt_frame(content: Content, uuid: str, session_id: str) -> dict[str, Any]:
    """The user message that brings a prompt. TypeError for what is neither text nor a list of objects."""
    message = {"role": "user", "content": _checked(content)}
    return {"type": "user", "session_id": session_id, "message": message, "parent_tool_use_id": None, "uuid": uuid}


def _checked(content: object) -> str | list[Any]:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        blocks = list(content)
        if all(isinstance(block, Mapping | msgspec.Struct | msgspec.Raw) for block in blocks):
            return blocks
    raise TypeError(
        f"a prompt is a str, or a list of content blocks (claude.TextBlock(text=…) or dicts), not {content!r:.80}"
    )
