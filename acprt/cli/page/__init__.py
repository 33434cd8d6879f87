"""A trace as one self-contained page: a sequence diagram that a browser shows without a server or a network.

The page is `template.html` with `page.css` and the scripts put into it, and the records as JSON lines. What peers wrote
is data in it: never markup, never code.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import msgspec

from acprt.cli.show_preview import preview
from acprt.cli.show_records import Record

__all__ = ["write_page"]


def write_page(target: Path, records: Iterable[Record], *, title: str) -> int:
    """Write the page of `records` to `target`; how many there were. Raises OSError when it cannot be written."""
    lines: list[str] = []
    previews: list[str] = []
    for record in records:
        lines.append(_inert(record.raw.decode("utf-8", "replace")))
        previews.append(_inert(msgspec.json.encode(preview(record)).decode()))
    parts = {
        "title": html.escape(title),
        "style": _asset("page.css"),
        "script": "\n".join(map(_asset, ("events.js", "drawing.js", "moving.js"))),
        "records": "\n".join(lines),
        "previews": "\n".join(previews),
    }
    page = _asset("template.html")
    with target.open("w", encoding="utf-8") as file:
        while True:
            before, mark, rest = page.partition("{{")
            file.write(before)
            if not mark:
                return len(lines)
            name, _, page = rest.partition("}}")
            file.write(parts[name])


def _inert(json: str) -> str:
    """The same JSON without a character that could end the element it stands in."""
    return json.replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
