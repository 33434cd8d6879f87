"""The printed tables, as markdown that also reads well in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from benchmarks.harness.peers import Peer
from benchmarks.harness.results import Results, Spread, Verdict
from benchmarks.harness.workloads import Workload

__all__ = ["report"]


def report(
    results: Results, chosen: list[Workload], peers: list[Peer], skipped: dict[str, str], about: list[str]
) -> str:
    """Ratios against the goals first, then absolute medians, then CPU, then how far to trust them."""
    parts = [
        "\n".join(f"- {line}" for line in about),
        _ratio_table(results, chosen),
        _absolute_table(results, chosen, peers),
        _cpu_table(results, chosen, peers),
        _trust(results, skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ratio_table(results: Results, chosen: list[Workload]) -> str:
    by_place = {(v.workload, v.goal.against): v for v in results.verdicts()}
    head = ["acprt on uvloop", "÷ limit", "goal", "", "÷ incumbent", "goal", ""]
    rows = []
    for workload in chosen:
        cells = [workload.title]
        for against in ("limit", "incumbent"):
            verdict = by_place.get((workload.key, against)) or (
                by_place.get((workload.key, "")) if against == "limit" else None
            )
            cells += _verdict_cells(workload, verdict, results.ratios(workload.key, "acprt", against))
        rows.append(cells)
    note = "Ratios are taken within each round; shown are the median and, in brackets, the range over the rounds."
    return f"{_table(head, rows)}\n\n{note}"


def _verdict_cells(workload: Workload, verdict: Verdict | None, ratio: Spread | None) -> list[str]:
    if verdict is None:
        return [_ratio(ratio), "", ""]
    sign = "≥" if workload.more_is_better else "≤"
    if verdict.goal.against:
        return [_ratio(verdict.measured), f"{sign} {verdict.goal.bound:g}", verdict.word]
    value = f"{_number(verdict.measured.median)} {workload.unit}; {_ratio(ratio)}" if verdict.measured else "–"
    return [value, f"{sign} {verdict.goal.bound:,.0f} {workload.unit}", verdict.word]


def _absolute_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    head = ["median (spread of the rounds)", "", *(peer.title for peer in peers)]
    rows = [
        [workload.title, workload.unit, *(_value(results.values(workload.key, peer.name)) for peer in peers)]
        for workload in chosen
    ]
    tails = _tail_latencies(results, chosen, peers)
    return _table(head, rows + tails)


def _tail_latencies(results: Results, chosen: list[Workload], peers: list[Peer]) -> list[list[str]]:
    if not any(workload.key == "w1-p50" for workload in chosen):
        return []
    row = ["sequential round trip, any core, 99th percentile", "µs"]
    for peer in peers:
        tails = tuple(float(sample["p99_us"]) for sample in results.samples("w1-p50", peer.name))
        row.append(_value(Spread(tails) if tails else None))
    return [row]


def _cpu_table(results: Results, chosen: list[Workload], peers: list[Peer]) -> str:
    rows = []
    for workload in chosen:
        spent = [results.cpu(workload.key, peer.name) for peer in peers]
        if any(spent):
            rows.append([workload.title, *(_cpu(cell) for cell in spent)])
    return _table(["CPU per message, client / agent, µs", *(peer.title for peer in peers)], rows) if rows else ""


def _cpu(cell: tuple[Spread, Spread | None] | None) -> str:
    if cell is None:
        return "–"
    client, agent = cell
    return f"{_number(client.median)} / {_number(agent.median) if agent else '?'}"


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


def _ratio(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    low, high = min(spread.values), max(spread.values)
    digits = 1 if spread.median >= 3 else 2
    return f"{spread.median:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def _value(spread: Spread | None) -> str:
    return "–" if spread is None else f"{_number(spread.median)} ({spread.percent:.0f} %)"


def _number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    padded = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])])
