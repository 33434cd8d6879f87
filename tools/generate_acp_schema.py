"""Writes `acprt/acp/schema/v1.py` and `v2.py` from the JSON Schemas of the Agent Client Protocol.

    python tools/generate_acp_schema.py SCHEMA_DIR [OUT_DIR]

SCHEMA_DIR holds `v1/` and `v2/`, each with `schema.json` (stable) and `schema.unstable.json`, as the protocol's own
repository publishes them. The modules are made from the unstable files; what the stable one lacks is marked. The same
input gives the same output. What the texts leave to their reader stands in `acp_schema/tables.py`; the words of the
docstrings stand in `acp_schema/words.toml`, none is taken from the schemas.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from acp_schema.reader import Reader, unstable_methods, unstable_tags
from acp_schema.shapes import Item
from acp_schema.words import Words
from acp_schema.writer import write_module

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "acprt" / "acp" / "schema"


def generate(version: str, source: Path) -> tuple[list[Item], str]:
    """What one version's module consists of, and its formatted source."""
    unstable, stable = (
        json.loads((source / version / name).read_text("utf-8")) for name in ("schema.unstable.json", "schema.json")
    )
    items = Reader(version, unstable, stable).read()
    both = unstable["$defs"], stable["$defs"]
    return items, formatted(write_module(version, items, unstable_methods(*both), unstable_tags(*both)), version)


def formatted(text: str, version: str) -> str:
    """The text as the repository's ruff has it: imports in use, names in order, lines wrapped."""
    for step in (["check", "--fix-only", "--select", "I,F401,RUF022"], ["format"]):
        command = [sys.executable, "-m", "ruff", *step, "--quiet", "--stdin-filename", f"{TARGET}/{version}.py", "-"]
        text = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main(arguments: list[str]) -> None:
    """Writes both modules."""
    target = Path(arguments[1]) if len(arguments) > 1 else TARGET
    made = {version: generate(version, Path(arguments[0])) for version in ("v1", "v2")}
    if idle := Words.unused({version: items for version, (items, _) in made.items()}):
        sys.exit(f"words.toml speaks of what neither version has: {', '.join(idle)}")
    for version, (_, text) in made.items():
        (target / f"{version}.py").write_text(text, "utf-8")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
