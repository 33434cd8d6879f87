"""Finds runs of words that the generated modules share with the texts of the schemas."""

from __future__ import annotations

import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RUN = 7
"""Words in a row that two people do not write by chance."""


def shared_runs(schemas: Path) -> set[str]:
    """Runs of words that stand in a docstring or comment of `acprt/acp/schema/v1.py` or `v2.py`, and in a description
    of any schema in `schemas`.
    """
    theirs = {run for file in schemas.glob("v*/schema*.json") for text in _descriptions(file) for run in _runs(text)}
    assert theirs, f"{schemas} holds no schemas"
    ours = {run for version in ("v1", "v2") for text in _prose(version) for run in _runs(text)}
    assert ours
    return {" ".join(run) for run in ours & theirs}


def _descriptions(file: Path) -> Iterator[str]:
    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("description"), str):
                yield value["description"]
            for each in value.values():
                yield from walk(each)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)

    return walk(json.loads(file.read_text("utf-8")))


def _prose(version: str) -> Iterator[str]:
    with tokenize.open(ROOT / "acprt" / "acp" / "schema" / f"{version}.py") as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type == tokenize.COMMENT or token.string.startswith('"""'):
                yield token.string


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = re.findall(r"[a-z0-9$_/']+", text.lower())
    return (tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1))
