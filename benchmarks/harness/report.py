"""The printed tables, as markdown that also reads well in a terminal. Each has a name, by which a page takes it."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from benchmarks.harness.curves import CURVES
from benchmarks.harness.peers import Peer
from benchmarks.harness.results import Results, Spread, Verdict
from benchmarks.harness.workloads import Workload

__all__ = ["growth_sections", "number", "table", "table_sections"]


def table_sections(
    results: Results, chosen: list[Workload], peers: list[Peer], skipped: dict[str, str], about: list[str]
) -> dict[str, str]:
    """What was run, the goals, ratios, absolute medians, CPU per message, and how far to trust them."""
    sections = {
        "about": "\n".join(f"- {line}" for line in about),
        "goals": _goals_table(results, chosen, peers),
        "ratios": _ratio_table(results, chosen, peers),
        "absolute": _absolute_table(results, chosen, peers),
        "cpu": _cpu_table(results, chosen, peers),
        "trust": _trust(results, skipped),
    }
    return {name: text for name, text in sections.items() if text}


def growth_sections(
    results: Results, points: list[Workload], peers: list[Peer], skipped: dict[str, str], about: list[str]
) -> dict[str, str]:
    """One table per curve: a row per size, a column per peer."""
    sections = {"about": "\n".join(f"- {line}" for line in about)}
    for curve in CURVES:
        of_curve = [point for point in points if point.curve == curve.key]
        shown = [peer for peer in peers if any(results.values(point.key, peer.name) for point in of_curve)]
        rows = [
            [f"{point.size:,}", *(_value(results.values(point.key, peer.name)) for peer in shown)] for point in of_curve
        ]
        if shown:
            head = [f"{curve.x_label} → {curve.y_label}", *(peer.title for peer in shown)]
            sections[curve.key] = f"{curve.title}: {curve.flat}.\n\n{table(head, rows)}"
    sections["trust"] = _trust(results, skipped)
    return sections


def _goals_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    titles = {peer.name: peer.title for peer in peers}
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts():
        verdicts.setdefault(verdict.workload, []).append(verdict)
    rows = []
    for workload in chosen:
        rows += [_goal_row(workload, verdict, titles) for verdict in verdicts.get(workload.key, [])]
        closest = results.closest_peer(workload.key)
        if closest is not None and any(verdict.goal.against for verdict in verdicts.get(workload.key, [])):
            peer, ratio = closest
            word = "pass" if workload.reaches(ratio.median, 1.0) else "FAIL"
            rows.append(
                [workload.title, f"{titles[peer]} (the closest peer)", _bound(workload, 1.0), _ratio(ratio), word]
            )
    head = ["acprt", "divided by", "goal", "median (range)", ""]
    return table(head, rows) if rows else ""


def _goal_row(workload: Workload, verdict: Verdict, titles: dict[str, str]) -> list[str]:
    goal = verdict.goal
    if goal.against:
        against = titles.get(goal.against, goal.against)
        return [workload.title, against, _bound(workload, goal.bound), _ratio(verdict.measured), verdict.word]
    value = f"{_ratio(verdict.measured)} {workload.unit}" if verdict.measured else "–"
    if verdict.measured and verdict.measured.median >= 100:
        value = f"{number(verdict.measured.median)} {workload.unit}"
    return [workload.title, "", f"{_bound(workload, goal.bound)} {workload.unit}", value, verdict.word]


def _bound(workload: Workload, bound: float) -> str:
    return f"{'≥' if workload.more_is_better else '≤'} {bound:,g}"


def _ratio_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    others = [peer for peer in peers if peer.name != "acprt"]
    names = {peer.name for peer in peers}
    stock = {"acprt-stock", "limit-stock"} <= names
    rows = []
    for workload in chosen:
        cells = [_ratio(results.ratios(workload.key, "acprt", peer.name), bare=True) for peer in others]
        if stock:
            cells.append(_ratio(results.ratios(workload.key, "acprt-stock", "limit-stock"), bare=True))
        if any(cell != "–" for cell in cells):
            rows.append([workload.title, "more" if workload.more_is_better else "less", *cells])
    head = ["acprt divided by …", "better is", *(peer.title for peer in others)]
    if stock:
        head.append("stock: acprt ÷ limit")
    return table(head, rows) if rows else ""


def _absolute_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    head = ["median (spread of the rounds)", "", *(peer.title for peer in peers)]
    rows = [
        [workload.title, workload.unit, *(_value(results.values(workload.key, peer.name)) for peer in peers)]
        for workload in chosen
    ]
    return table(head, rows)


def _cpu_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    rows = []
    for workload in chosen:
        spent = [None if workload.sample_of else results.cpu(workload.key, peer.name) for peer in peers]
        if any(spent):
            rows.append([workload.title, *(_cpu(cell) for cell in spent)])
    return table(["CPU per message, client / agent, µs", *(peer.title for peer in peers)], rows) if rows else ""


def _cpu(cell: tuple[Spread, Spread | None] | None) -> str:
    if cell is None:
        return "–"
    client, agent = cell
    return f"{number(client.median)} / {number(agent.median) if agent else '?'}"


def _trust(results: Results, skipped: dict[str, str]) -> str:
    shares = [r.foreign_share for r in results.records if r.foreign_share is not None and r.sample is not None]
    lines = [f"- skipped: {peer}: {reason}" for peer, reason in skipped.items()]
    lines += [f"- FAILED: {error}" for error in dict.fromkeys(r.error for r in results.records if r.error)]
    lines += [f"- BROKEN ORDER: {promise}" for promise in results.broken_promises()]
    if shares:
        repeated = sum(r.repeated for r in results.records)
        lines.append(
            f"- noise: others used {median(shares):.1%} of the cores in the median sample, {max(shares):.1%} in the"
            f" worst one kept; {repeated} of {len(results.records)} samples were taken twice"
        )
    else:
        lines.append("- noise: this system does not tell what others used; trust the spread alone")
    return "\n".join(lines)


def _ratio(spread: Spread | None, *, bare: bool = False) -> str:
    if spread is None:
        return "–"
    low, high = min(spread.values), max(spread.values)
    digits = 1 if spread.median >= 3 else 2
    shown = f"{spread.median:.{digits}f}"
    return shown if bare else f"{shown} ({low:.{digits}f}–{high:.{digits}f})"


def _value(spread: Spread | None) -> str:
    return "–" if spread is None else f"{number(spread.median)} ({spread.percent:.0f} %)"


def number(value: float) -> str:
    """Three digits or so, thousands as k."""
    size = abs(value)
    if size >= 10_000:
        return f"{value / 1000:,.0f}k"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A markdown table, padded."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])])
