"""Runs the snippets of the README and of docs/, each as a program of its own, and follows the links between them.

A snippet fenced as ```python is run; ```text and other languages are not. `title="name.py"` after the language also
saves it under that name beside the other snippets of its page, which may import or spawn it. Where a snippet has
lines that begin with `# > `, exactly these are what it must print. It must never run anything from outside the project.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from acprt.limits import Limits

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.joinpath("docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([\w./-]+)"')
_EXPECTED = re.compile(r"^[ ]*# > ?(.*)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Snippet(NamedTuple):
    """One fenced block of Python: its page, the line it starts at, its text and the name it is saved under, if any."""

    page: Path
    line: int
    text: str
    title: str | None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def snippets_of(page: Path) -> list[Snippet]:
    """The Python snippets of a page, padded so that a traceback shows the line of the page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _FENCE.finditer(text):
        language, _, attributes = block["info"].strip().partition(" ")
        if language == "python":
            line = text.count("\n", 0, block.start()) + 2
            title = _TITLE.search(attributes)
            found.append(Snippet(page, line, block["body"], title and title[1]))
    return found


SNIPPETS = [snippet for page in PAGES for snippet in snippets_of(page)]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_snippet_runs_as_written(snippet: Snippet, tmp_path: Path) -> None:
    """It ends with exit code 0, quietly on stderr, and prints what it says it prints."""
    for neighbour in snippets_of(snippet.page):
        if neighbour.title:
            tmp_path.joinpath(neighbour.title).write_text(neighbour.text, encoding="utf-8")
    program = tmp_path / "snippet.py"
    program.write_text("\n" * (snippet.line - 1) + snippet.text, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=45,
    )

    assert done.returncode == 0, f"{snippet.name} failed:\n{done.stdout}{done.stderr}"
    assert not done.stderr, f"{snippet.name} wrote to stderr:\n{done.stderr}"
    expected = _EXPECTED.findall(snippet.text)
    if expected:
        assert done.stdout.splitlines() == expected, snippet.name


def test_there_are_snippets() -> None:
    """The pattern still finds them: a silent change of the fences would test nothing."""
    assert {snippet.page.name for snippet in SNIPPETS} >= {"README.md", "guide.md", "ordering.md", "limits.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    """A link to another page of the project names a file that exists."""
    targets = [link["target"].partition("#")[0] for link in _LINK.finditer(page.read_text(encoding="utf-8"))]
    broken = [target for target in targets if target and "://" not in target and not (page.parent / target).exists()]
    assert not broken, f"{page.relative_to(ROOT)}: {broken}"


def test_limits_page_lists_every_limit_with_its_default() -> None:
    """The table of docs/concepts/limits.md is that of `acprt.Limits`, in the same order."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", ROOT.joinpath("docs/concepts/limits.md").read_text(), re.MULTILINE)
    fields = msgspec.structs.fields(Limits)
    assert rows == [(field.name, _as_in_the_table(field.name, field.default)) for field in fields]


def _as_in_the_table(name: str, value: float) -> str:
    if name.endswith("_seconds"):
        return f"{value:g} s"
    if name.endswith("_bytes"):
        return f"{value / 2**20:g} MiB" if value >= 2**20 else f"{value / 2**10:g} KiB"
    return f"{value:,}"


def _environment() -> dict[str, str]:
    """A reader's environment: acprt can be imported anywhere, and no program is found by its bare name."""
    return os.environ | {"PATH": os.devnull, "PYTHONPATH": str(ROOT)}
