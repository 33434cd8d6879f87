"""Reads the behaviour catalogue (`ids.txt`, `catalogue.toml`) and the names of the tests, without importing any test.

It must never judge: what is wrong with the catalogue is said by `test_catalogue.py`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["CATALOGUE", "ROOT", "Test", "cited_ids", "decisions", "entries", "id_pattern", "ids", "pages", "tests"]

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = Path(__file__).with_name("catalogue.toml")

Test = tuple[str, str]
"""A test as pytest names it (`tests/wire/test_lines.py::TestLineSplitter::test_x`), and its docstring."""


def ids() -> dict[str, list[str]]:
    """Ids by section, both in the order of `ids.txt`."""
    sections: dict[str, list[str]] = {}
    section: list[str] = []
    for line in Path(__file__).with_name("ids.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(line.split()[0])
    return sections


def entries() -> dict[str, dict[str, Any]]:
    """What `catalogue.toml` says, section by section: a list of tests, or a table with `tests`, `diverges`, `todo`."""
    return tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))


def decisions() -> list[str]:
    """Ids of the decisions (DEC-nn, PY-nn), in the order of docs/decisions.md, which has one entry for each."""
    text = ROOT.joinpath("docs/decisions.md").read_text(encoding="utf-8")
    return re.findall(r"^- \*\*((?:DEC|PY)-\d+)\*\* ", text, re.MULTILINE)


def pages(*folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of everything in `folders` that people read: code, pages, the catalogue."""
    for folder in folders:
        for path in sorted(ROOT.joinpath(folder).rglob("*")):
            if path.suffix in {".py", ".md", ".toml"}:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def tests() -> Iterator[Test]:
    """Every test function of the suite, found by reading the files; parametrisation adds nothing to a name."""
    for path in sorted(ROOT.joinpath("tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        yield from _tests_in(tree.body, path.relative_to(ROOT).as_posix())


def id_pattern() -> re.Pattern[str]:
    """Matches what looks like an id of the catalogue, also one that does not exist."""
    families = sorted({one.split("-")[0] for section in ids().values() for one in section})
    return re.compile(rf"\b(?:{'|'.join(families)})-\d\d\b")


def cited_ids() -> dict[str, list[str]]:
    """Tests by the ids that their docstrings cite."""
    pattern = id_pattern()
    cited: dict[str, list[str]] = {}
    for name, docstring in tests():
        for one in dict.fromkeys(pattern.findall(docstring)):
            cited.setdefault(one, []).append(name)
    return cited


def _tests_in(body: list[ast.stmt], prefix: str) -> Iterator[Test]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests_in(node.body, f"{prefix}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{prefix}::{node.name}", ast.get_docstring(node) or ""
