"""The text of a docstring: our own words from `words.toml`, and facts of the schema; never a sentence of the schema."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from acp_schema.shapes import Item

__all__ = ["Words"]

TABLE = Path(__file__).with_name("words.toml")

DIRECTIONS = {
    "agent": "Client to agent",
    "client": "Agent to client",
    "protocol": "Either direction",
    "proxy": "Between a conductor and a proxy",
}
"""Who handles a message -> who sends it to whom."""


class Words:
    """The words of one version."""

    def __init__(self, version: str) -> None:
        table = tomllib.loads(TABLE.read_text("utf-8"))
        own = {name: table.pop(name, {}) for name in ("v1", "v2")}
        self._own: dict[str, dict[str, str]] = own[version]
        self._shared: dict[str, dict[str, str]] = table

    def first(self, item: Item) -> str:
        """What an item is, in a few sentences; empty for an alias of which nothing is known."""
        known = self._of(item.name).get("is") or self._made_up(item)
        parts = ["Unstable." if item.unstable else "", item.note, known, self._direction(item)]
        if item.method and item.name.endswith("Response"):
            parts[1] = f"Answers `{item.method[0]}`."
        elif item.name.endswith("Capabilities") and not item.members and not item.expression:
            parts.append("An empty object says yes.")
        return " ".join(filter(None, parts))

    def members(self, item: Item) -> list[str]:
        """A line per member that has words."""
        known = self._shared["everywhere"] | self._of(item.name)
        return [f"`{each.name}`: {known[each.name]}" for each in item.members if each.name in known]

    def _of(self, name: str) -> dict[str, str]:
        return self._shared.get(name, {}) | self._own.get(name, {})

    def _made_up(self, item: Item) -> str:
        """What can be said of an item without words."""
        if item.expression is not None or item.method:
            return "" if item.members or item.expression else "Empty."
        return f"Tagged `{item.tag[1]}`." if item.tag else f"{item.name}."

    def _direction(self, item: Item) -> str:
        if not item.method or item.name.endswith("Response"):
            return ""
        method, side = item.method
        gate = self._of("gates").get(method)
        return DIRECTIONS[side] + (f"; needs {gate}." if gate else ".")

    @staticmethod
    def unused(items_of: dict[str, Iterable[Item]]) -> list[str]:
        """Entries that say something of a class or member that is not there, by their place in the table."""
        there = {
            version: {item.name: {"is", *(each.name for each in item.members)} for item in items}
            for version, items in items_of.items()
        }
        methods = {v: {item.method[0] for item in items if item.method} for v, items in items_of.items()}
        for version, names in there.items():
            names["gates"] = methods[version]
            names["everywhere"] = set().union(*(members for members in names.values()))
        table = tomllib.loads(TABLE.read_text("utf-8"))
        places = [(f"{v}.", {v: there[v]}, table.pop(v, {})) for v in there] + [("", there, table)]
        return [
            f"{place}{name}.{key}"
            for place, versions, entries in places
            for name, entry in entries.items()
            for key in entry
            if not any(key in names.get(name, ()) for names in versions.values())
        ]
