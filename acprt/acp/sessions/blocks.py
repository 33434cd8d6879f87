"""A prompt as its user gives it made into content blocks, of either version of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import msgspec

__all__ = ["blocks_of"]

Block = TypeVar("Block")


def blocks_of(prompt: str | Block | Iterable[str | Block], as_block: Callable[[str], Block]) -> list[Block]:
    """The blocks of a text, a block, or several of either. A block that no class stands for is a JSON object."""
    is_one = isinstance(prompt, str | msgspec.Struct | Mapping)  # also iterable, some of them
    several = cast("Iterable[str | Block]", (prompt,) if is_one else prompt)
    return [as_block(each) if isinstance(each, str) else each for each in several]
