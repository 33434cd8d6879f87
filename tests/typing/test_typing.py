"""What users of `mypy --strict` get: a program that must be accepted, and lines that must be rejected."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ACCEPTED = ("accepted.py", "accepted_acp.py", "accepted_claude.py")
REJECTED = ("rejected.py", "rejected_acp.py", "rejected_claude.py")
ROOT = HERE.parents[1]

_IGNORE = re.compile(r"  # type: ignore\[(?P<codes>[\w, -]+)\].*$")
_ERROR = re.compile(r"^.*?:(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says of each file, outside of this project's own configuration and without a single ignore."""
    folder = tmp_path_factory.mktemp("typing")
    for name in ACCEPTED + REJECTED:
        lines = (HERE / name).read_text(encoding="utf-8").splitlines()
        (folder / name).write_text("\n".join(_IGNORE.sub("", line) for line in lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--python-version=3.11",
        "--no-error-summary",
    ]
    done = subprocess.run(
        [*command, f"--cache-dir={folder / 'cache'}", "--hide-error-context", *ACCEPTED, *REJECTED],
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said: dict[str, list[str]] = {name: [] for name in ACCEPTED + REJECTED}
    for line in done.stdout.splitlines():
        if ": error: " in line:
            said.setdefault(line.partition(":")[0], []).append(line)
    return said


@pytest.mark.timeout(300)
class TestStrictUsers:
    """The promise of `py.typed` for whoever checks types."""

    @pytest.mark.parametrize("name", ACCEPTED)
    def test_program_is_accepted_as_it_is(self, checked, name):
        """HC-10, SR-08: reply types come out of block_task, map and callbacks; decorators keep signatures."""
        assert checked[name] == []

    @pytest.mark.parametrize("name", REJECTED)
    def test_wrong_lines_are_rejected_by_the_errors_they_name(self, checked, name):
        """HC-10, SR-08: and no other line is."""
        expected = set()
        for number, line in enumerate((HERE / name).read_text(encoding="utf-8").splitlines(), start=1):
            if (found := _IGNORE.search(line)) is not None:
                expected |= {(number, code.strip()) for code in found["codes"].split(",")}
        said = {(int(found["line"]), found["code"]) for line in checked[name] if (found := _ERROR.match(line))}
        assert said == expected

    def test_package_itself_has_no_errors(self, checked):
        """Users check our types with theirs: nothing of the package may show up in their output."""
        assert checked.keys() == {*ACCEPTED, *REJECTED}
