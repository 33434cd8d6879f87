"""The catalogue tells the truth: every rule is pinned by tests that exist, or says why acprt does something else."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance import catalogue

_DECISION = re.compile(r"\b(?:DEC|PY)-\d+\b")
_SPECIFICATION = re.compile(r"JSON-RPC 2\.0 \u00a7[\d.]+(?:, \u00a7[\d.]+)*")
_ELSEWHERE = re.compile(
    r"\u00a7"  # the section sign, written so that this very file does not have it
    r"|\bhouse (?:plan|rule)\b|\bissue point\b|\breference (?:input|table)\b|\b(?:api|architecture|style)[.]md\b",
    re.IGNORECASE,
)


def _flat() -> dict[str, Any]:
    return {one: entry for section in catalogue.entries().values() for one, entry in section.items()}


def _tests_of(entry: Any) -> list[str]:
    return entry if isinstance(entry, list) else entry.get("tests", [])


def _is_founded(entry: Any) -> bool:
    table = {"tests": entry} if isinstance(entry, list) else entry
    reason = table.get("diverges")
    return (
        bool(table)
        and table.keys() <= {"tests", "diverges"}
        and ("tests" not in table or bool(table["tests"]))
        and ("diverges" not in table or (isinstance(reason, str) and bool(reason.strip())))
    )


def test_every_id_stands_once_under_its_section() -> None:
    """No rule is forgotten, invented or filed elsewhere; the order is that of the list of ids."""
    assert {section: list(entries) for section, entries in catalogue.entries().items()} == catalogue.ids()


def test_every_entry_has_tests_or_a_reason() -> None:
    """An entry is a list of tests, or a table with `tests`, `diverges` or both; `todo` is none of these."""
    unfounded = [one for one, entry in _flat().items() if not _is_founded(entry)]
    assert not unfounded, f"{len(unfounded)} ids without a test or a reason: {' '.join(unfounded)}"


def test_every_named_test_exists() -> None:
    """A test that was renamed or removed takes its promise with it."""
    known = {name for name, _ in catalogue.tests()}
    missing = [
        f"{one}: {name}"
        for one, entry in _flat().items()
        for name in _tests_of(entry)
        if name.partition("[")[0] not in known
    ]
    assert not missing, "\n".join(missing)


def test_every_cited_id_exists() -> None:
    """An id in a comment or a docstring leads somewhere."""
    known = {one for section in catalogue.ids().values() for one in section}
    pattern = catalogue.id_pattern()
    unknown = [
        f"{page}: {cited}"
        for page, text in catalogue.pages("acprt", "tests", "examples", "benchmarks", "docs")
        for cited in pattern.findall(text)
        if cited not in known
    ]
    assert not unknown, "\n".join(unknown)


def test_every_cited_decision_is_written_down() -> None:
    """A DEC or PY id leads to its one entry in docs/decisions.md."""
    known = catalogue.decisions()
    assert len(known) == len(set(known))
    unknown = [
        f"{page}: {cited}"
        for page, text in catalogue.pages("acprt", "tests", "docs")
        for cited in _DECISION.findall(text)
        if cited not in known
    ]
    assert not unknown, "\n".join(unknown)


def test_nothing_is_cited_that_is_not_here() -> None:
    """A reader finds what a comment points at: no section sign but of the public JSON-RPC 2.0 specification, since no
    page of the project numbers its sections, and no words for pages that are not part of it."""
    astray = [
        f"{page}:{number}: {line.strip()}"
        for page, text in catalogue.pages("acprt", "tests", "docs")
        for number, line in enumerate(text.splitlines(), 1)
        if _ELSEWHERE.search(_SPECIFICATION.sub("", line))
    ]
    assert not astray, "\n".join(astray)
