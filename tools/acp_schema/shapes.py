"""JSON Schema walked, and what it becomes: items with members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Defs", "Item", "Member", "Schema", "Tag", "constant", "reference", "references", "variants"]

Schema = dict[str, Any]
Defs = dict[str, Schema]
Tag = tuple[str, str]
"""The wire name of the member that tells variants apart, and its value."""


@dataclass
class Member:
    """One field of a class; without `default` it is required."""

    name: str
    wire: str
    type: str
    default: str | None = None
    unstable: bool = False


@dataclass
class Item:
    """One definition of the output: an alias with an `expression`, or a class with `bases`.

    `method`: the wire method that it belongs to, and the side that handles it. `note`: what its making has to say.
    """

    name: str
    note: str = ""
    method: tuple[str, str] | None = None
    expression: str | None = None
    bases: list[str] = field(default_factory=list)
    tag: Tag | None = None
    members: list[Member] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    unstable: bool = False


def reference(schema: Schema) -> str | None:
    """The definition that a schema refers to and adds nothing to but a tag."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    parts = schema.get("allOf", ())
    return reference(parts[0]) if len(parts) == 1 else None


def references(schema: Any) -> Iterator[str]:
    """Every definition referred to anywhere inside."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rsplit("/", 1)[1]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def variants(schema: Schema) -> list[Schema]:
    """The alternatives of a union; none for anything else."""
    found: list[Schema] = schema.get("oneOf") or schema.get("anyOf") or []
    return found


def constant(variant: Schema) -> Tag | None:
    """By what a variant is told apart, if it is."""
    for name, member in variant.get("properties", {}).items():
        if "const" in member:
            return name, member["const"]
    return None
