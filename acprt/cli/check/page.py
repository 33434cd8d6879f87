"""The report as one page of HTML: no scripts, nothing loaded from elsewhere, light and dark as the reader has it."""

from __future__ import annotations

import shlex
from html import escape
from itertools import groupby

from acprt.cli.check.verdicts import CheckResult, Report

__all__ = ["as_page"]

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: light-dark(#57606a, #9aa4ae);
  --pass: light-dark(#1a7f37, #3fb950); --fail: light-dark(#cf222e, #ff7b72); --should: light-dark(#9a6700, #e3b341); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3); }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; text-transform: capitalize; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
p.counts b { margin-right: .2em; } p.counts span { margin-right: 1.4em; }
details { border-top: 1px solid var(--line); padding: .4rem .2rem; }
summary { cursor: pointer; } summary:focus-visible { outline: 2px solid #58a6ff; }
.detail, .rule, dt { color: var(--dim); } .mark { display: inline-block; width: 1.4em; font-weight: bold; }
.pass .mark, b.pass { color: var(--pass); } .fail .mark, b.fail { color: var(--fail); }
.should .mark, b.should { color: var(--should); }
pre { overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line);
  padding-left: .8rem; } .client { color: light-dark(#0550ae, #79c0ff); }
"""

_MARKS = {"pass": "✓", "fail": "✗", "not applicable": "–"}


def as_page(report: Report) -> str:
    """The whole page."""
    name = escape(report.agent or shlex.join(report.command))
    groups = groupby(report.results, key=lambda result: result.id.partition(".")[0])
    body = "".join(f"<h2>{escape(group)}</h2>" + "".join(map(_result, results)) for group, results in groups)
    counts = "".join(
        f'<span><b class="{kind}">{count}</b>{text}</span>'
        for kind, count, text in (
            ("pass", report.count("pass"), "passed"),
            ("fail", report.count("fail", "must"), "failed"),
            ("should", report.count("fail", "should"), "should be better"),
            ("", report.count("not applicable"), "not applicable"),
        )
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>acprt check: {name}</title><style>{_STYLE}</style>"
        f"<h1>{name}</h1><p><code>{escape(shlex.join(report.command))}</code><br>ACP version "
        f"{report.protocol_version}, checked in {report.seconds:.1f} s, {report.stderr_bytes:,} bytes on stderr</p>"
        f'<p class="counts">{counts}</p>{body}</html>\n'
    )


def _result(result: CheckResult) -> str:
    kind = {"pass": "pass", "fail": "fail" if result.level == "must" else "should"}.get(result.verdict, "")
    is_open = " open" if kind == "fail" else ""
    return (
        f'<details id="{escape(result.id)}" class="{kind}"{is_open}><summary><span class="mark" '
        f'title="{result.verdict}">{_MARKS[result.verdict]}</span>{escape(result.title)}: '
        f'<span class="detail">{escape(result.detail)}</span></summary>'
        f'<p class="rule"><code>{escape(result.id)}</code> {result.level}: {escape(result.rule)} '
        f"({result.seconds:.2f} s)</p>{_frames(result)}</details>"
    )


def _frames(result: CheckResult) -> str:
    if not result.frames:
        return ""
    lines = []
    for number, frame in enumerate(result.frames):
        if result.frames_left_out and number == len(result.frames) // 2:
            lines.append(f"… {result.frames_left_out} lines left out")
        arrow = "→" if frame.sender == "client" else "←"
        line = f"{frame.at:9.3f} #{frame.process} {arrow} {escape(frame.line)}"
        lines.append(f'<span class="{frame.sender}">{line}</span>')
    return "<pre>" + "\n".join(lines) + "</pre>"
