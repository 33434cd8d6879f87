"""Shows what the behaviour catalogue still lacks: ids without an entry, and the tests whose docstrings cite them.

    python tools/catalogue.py            open ids, with the tests that cite them
    python tools/catalogue.py --write    turn each open id that is cited into an entry that names those tests

It must never touch an entry that somebody wrote.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conformance import catalogue  # the suite is not installed: found through the line above

OPEN = " = { todo = true }"


def main() -> int:
    """Print or write; the exit code tells whether ids are still open."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write entries for open ids that tests cite")
    write = parser.parse_args().write

    cited = catalogue.cited_ids()
    lines = catalogue.CATALOGUE.read_text(encoding="utf-8").splitlines()
    still_open = 0
    for index, line in enumerate(lines):
        if not line.endswith(OPEN):
            continue
        one = line.removesuffix(OPEN)
        tests = cited.get(one, [])
        if tests and write:
            lines[index] = f"{one} = {entry(tests)}"
            continue
        still_open += 1
        print(one, *tests, sep="\n    ")
    if write:
        catalogue.CATALOGUE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{still_open} ids are open.")
    return 1 if still_open else 0


def entry(tests: list[str]) -> str:
    """The TOML array that names `tests`: on one line when there is one test, else a line each."""
    if len(tests) == 1:
        return f'["{tests[0]}"]'
    return "[\n" + "".join(f'    "{name}",\n' for name in tests) + "]"


if __name__ == "__main__":
    sys.exit(main())
