"""The report in the terminal, while it grows. Colours and the running line are for terminals only."""

from __future__ import annotations

import types
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from acprt.cli.check.verdicts import Check, CheckResult, Report, ShownFrame
from acprt.cli.show_preview import plain

__all__ = ["Display", "listing"]

_MARKS = {"pass": ("✓", "green"), "fail": ("✗", "bold red"), "not applicable": ("–", "dim")}
_FRAMES = 12  # of one check; --json and --html have more
_LINE = 200


class Display:
    """Shows each check when it is done, and on a terminal the one that runs; with `quiet` only the latter."""

    def __init__(self, command: str, count: int, *, quiet: bool, frames: bool) -> None:
        self._console = Console(quiet=quiet, highlight=False, soft_wrap=True)
        # On one terminal both must be the same console, or the running line is written over.
        progress = self._console if self._console.is_terminal and not quiet else Console(stderr=True, highlight=False)
        self._status: Status | None = Status("", console=progress) if progress.is_terminal else None
        self._command = command
        self._count = count
        self._done = 0
        self._frames = frames
        self._group = ""

    def __enter__(self) -> Display:
        if self._status is not None:
            self._status.start()
        self._console.print(f"[dim]checking[/] {_as_it_stands(self._command)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def started(self, check: Check) -> None:
        """A check begins."""
        if self._status is not None:
            self._status.update(f"{self._done + 1}/{self._count} {escape(check.title)}")

    def finished(self, result: CheckResult) -> None:
        """A check is done."""
        self._done += 1
        group = result.id.partition(".")[0]
        if group != self._group:
            self._group = group
            self._console.print(f"\n[bold]{group}[/]")
        mark, style = _MARKS[result.verdict]
        if result.verdict == "fail" and result.level == "should":
            style = "yellow"
        title, detail = escape(result.title), _as_it_stands(result.detail)
        self._console.print(f"  [{style}]{mark}[/] {title}[dim]: {detail}[/]" if result.verdict != "fail" else
                            f"  [{style}]{mark}[/] {title}: {detail}")  # fmt: skip
        if result.verdict == "fail":
            self._console.print(f"      [dim]{result.id}, {result.level}: {escape(result.rule)}[/]")
            if self._frames:
                for frame in result.frames[-_FRAMES:]:
                    self._console.print(_shown(frame), style="dim", markup=False)

    def summary(self, report: Report) -> None:
        """All are done."""
        if self._status is not None:
            self._status.stop()
        must, should = report.count("fail", "must"), report.count("fail", "should")
        agent = _as_it_stands(report.agent or "the agent")
        text = (
            f"\n{agent}, ACP version {report.protocol_version}: {report.count('pass')} passed, {must} failed, "
            f"{should} should be better, {report.count('not applicable')} not applicable, in {report.seconds:.1f} s"
        )
        self._console.print(text, style="red" if must else "green")


def listing(checks: Iterable[Check]) -> str:
    """One line for each check: its id, level, versions, title."""
    lines = []
    for check in checks:
        versions = ",".join(f"v{version}" for version in check.versions)
        lines.append(f"{check.id:32} {check.level:6} {versions:6} {check.title}\n")
    return "".join(lines)


def _as_it_stands(text: str) -> str:
    """Text of an agent: neither markup nor anything that a terminal would obey."""
    return escape(plain(text))


def _shown(frame: ShownFrame) -> str:
    arrow = "→" if frame.sender == "client" else "←"
    line = frame.line if len(frame.line) <= _LINE else frame.line[:_LINE] + "…"
    return f"      {frame.at:8.3f} #{frame.process} {arrow} {plain(line)}"
