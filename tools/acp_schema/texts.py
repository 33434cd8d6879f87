"""Names and docstrings, as they are written in Python."""

from __future__ import annotations

import re
import textwrap

__all__ = ["docstring", "pascal", "snake"]


def snake(name: str) -> str:
    """`camelCase` as `camel_case`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def pascal(tag: str) -> str:
    """`snake_case` as `SnakeCase`."""
    return "".join(part.capitalize() for part in tag.split("_"))


def docstring(lines: list[str], indent: str) -> str:
    """A docstring: a paragraph, then an item per further line."""
    first, *rest = lines
    wrapped = textwrap.wrap(first, 112 - len(indent))
    for line in rest:
        wrapped += textwrap.wrap(f"- {line}", 114 - len(indent), subsequent_indent="  ")
    if rest:
        wrapped.insert(len(textwrap.wrap(first, 112 - len(indent))), "")
    if len(wrapped) == 1:
        return f'{indent}"""{wrapped[0]}"""'
    head, *tail = wrapped
    return "\n".join([f'{indent}"""{head}', *(f"{indent}{line}".rstrip() for line in tail), f'{indent}"""'])
