"""Writes the newest results into docs/performance.md: `make bench-page` after `make bench`.

A section of a result replaces what stands between `<!-- bench:PART.SECTION -->` and `<!-- /bench -->` on the page;
charts are sections that show a picture, which is copied beside it. All else there is written by hand and stays.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"

_BLOCK = re.compile(r"(<!-- bench:(?P<part>\w+)\.(?P<section>[\w-]+) -->).*?(<!-- /bench -->)", re.DOTALL)
_CHART = re.compile(r"!\[[^\]]*\]\((?P<path>charts/(?P<name>[\w.-]+\.svg))\)")


def main(results: Path = RESULTS, page: Path = PAGE) -> int:
    """Replace what has a result, keep what has none and name it."""
    text = page.read_text(encoding="utf-8")
    kept: list[str] = []

    def filled(block: re.Match[str]) -> str:
        sections = _sections(results / f"{block['part']}.json")
        section = sections.get(block["section"])
        if section is None:
            kept.append(f"{block['part']}.{block['section']}")
            return block[0]
        return f"{block[1]}\n\n{section}\n\n{block[4]}"

    text = _BLOCK.sub(filled, text)
    page.write_text(text, encoding="utf-8")
    for chart in _CHART.finditer(text):
        drawn, shown = results / chart["name"], page.parent / chart["path"]
        if drawn.exists():
            shown.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(drawn, shown)
    for name in kept:
        print(f"no newer result, kept as it was: {name}", file=sys.stderr)
    return 0


def _sections(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    sections: dict[str, str] = json.loads(path.read_bytes())["sections"]
    return sections


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
