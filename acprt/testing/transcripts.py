"""Golden transcripts: what passed on a connection, as text that is the same in every run, compared with a file."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from acprt.trace import TraceEvent

__all__ = ["Transcript"]

_UPDATE = "ACPRT_UPDATE_GOLDEN"

_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


class Transcript:
    """A trace sink: `endpoint.trace(transcript)` before the connection opens. Lines are as that endpoint sees them,
    `→` what it sent and `←` what came.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[str, bytes]] = []

    def __call__(self, event: TraceEvent) -> None:
        """Remember one line."""
        if event.direction in ("in", "out"):
            self._lines.append(("→" if event.direction == "out" else "←", event.line))

    def text(self, replace: Mapping[str, str] | None = None) -> str:
        """All of it, normalised: what changes from run to run has a name instead.

        UUIDs become `<uuid-1>`, `<uuid-2>` …, the same one everywhere; times become `<time>`. `replace` maps further
        texts to what stands for them, such as a temporary folder to `<folder>`. JSON is written in one way.
        """
        names: dict[str, str] = {}
        lines = []
        for arrow, line in self._lines:
            text = _rewritten(line)
            for found, name in sorted((replace or {}).items(), key=lambda item: -len(item[0])):
                text = text.replace(found, name)
            text = _UUID.sub(lambda match: names.setdefault(match[0].lower(), f"<uuid-{len(names) + 1}>"), text)
            lines.append(f"{arrow} {_TIME.sub('<time>', text)}\n")
        return "".join(lines)

    def assert_golden(self, path: str | os.PathLike[str], replace: Mapping[str, str] | None = None) -> None:
        """Compare `text(replace)` with the file at `path`; AssertionError shows the difference.

        With ACPRT_UPDATE_GOLDEN=1 in the environment the file is written instead.
        """
        file, now = Path(path), self.text(replace)
        if os.environ.get(_UPDATE) == "1":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(now, encoding="utf-8")
            return
        if not file.exists():
            raise AssertionError(f"there is no {file} yet: run once with {_UPDATE}=1 and read what it wrote")
        golden = file.read_text(encoding="utf-8")
        if now != golden:
            lines = difflib.unified_diff(
                golden.splitlines(keepends=True), now.splitlines(keepends=True), str(file), "this run"
            )
            raise AssertionError(
                f"the transcript has changed; if that is right, run once with {_UPDATE}=1\n{''.join(lines)}"
            )


def _rewritten(line: bytes) -> str:
    try:
        return msgspec.json.encode(msgspec.json.decode(line)).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return line.decode("utf-8", "backslashreplace")
