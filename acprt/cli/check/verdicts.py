"""What a check is and what comes of it: plain data, as `--json` prints it.

A check passes by returning what it saw, fails by raising `Failed`, and does not apply by raising `NotApplicable`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from acprt.cli.check.subject import Subject

__all__ = ["Check", "CheckResult", "Failed", "Level", "NotApplicable", "Report", "ShownFrame", "Verdict", "check"]

Level = Literal["must", "should"]
"""`must`: a rule of ACP or of JSON-RPC. `should`: what they recommend, or what clients rely on in practice."""

Verdict = Literal["pass", "fail", "not applicable"]

Run = Callable[["Subject"], Awaitable[str]]


class Failed(Exception):
    """The agent breaks the rule; the text says how."""


class NotApplicable(Exception):
    """The agent does not offer what the rule is about, or it could not be brought about; the text says which."""


class Check(msgspec.Struct, frozen=True):
    """One rule, and how it is tried. `run` returns what was seen, in words."""

    id: str
    title: str
    rule: str
    level: Level
    versions: tuple[int, ...]
    run: Run


class ShownFrame(msgspec.Struct, frozen=True):
    """A line that passed: seconds since the first start, which of the started agents, who wrote it, what. Long lines
    are cut; `size` is that of the whole line in bytes.
    """

    at: float
    process: int
    sender: Literal["client", "agent"]
    size: int
    line: str


class CheckResult(msgspec.Struct, frozen=True):
    """How one check went. `detail` says what was seen, `seconds` how long it took."""

    id: str
    title: str
    verdict: Verdict
    level: Level
    rule: str
    detail: str
    seconds: float
    frames: list[ShownFrame]
    frames_left_out: int


class Report(msgspec.Struct, frozen=True):
    """All of them, and whom they are about. `agent` is what it calls itself, `stderr_bytes` what it wrote there."""

    command: list[str]
    protocol_version: int
    agent: str | None
    seconds: float
    stderr_bytes: int
    results: list[CheckResult]

    def count(self, verdict: Verdict, level: Level | None = None) -> int:
        """How many ended with `verdict`, of that level or of any."""
        return sum(result.verdict == verdict and level in (None, result.level) for result in self.results)


def check(
    id: str, title: str, *, rule: str, level: Level = "must", versions: tuple[int, ...] = (1, 2)
) -> Callable[[Run], Check]:
    """Make a coroutine function a check."""

    def made(run: Run) -> Check:
        return Check(id, title, rule, level, versions, run)

    return made
