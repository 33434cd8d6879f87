"""The site's table of contents, `mkdocs.yml`: it names every page of docs/ once. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_page_is_in_the_navigation_once() -> None:
    text = ROOT.joinpath("mkdocs.yml").read_text(encoding="utf-8")
    nav = text[text.index("\nnav:") : text.index("\nvalidation:")]
    named = re.findall(r"([\w/.-]+\.md)$", nav, re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in ROOT.joinpath("docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_every_public_module_has_a_page_of_reference() -> None:
    """Made from its docstrings."""
    shown = set()
    for page in ROOT.joinpath("docs", "reference").glob("*.md"):
        shown |= set(re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert shown >= {"acprt", "acprt.acp", "acprt.mcp", "acprt.claude", "acprt.otel", "acprt.testing"}
