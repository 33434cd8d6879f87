"""The charts, as SVG by matplotlib. The same numbers must give the same bytes: those a page shows are committed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.harness.curves import CURVES
from benchmarks.harness.peers import Peer
from benchmarks.harness.results import Results
from benchmarks.harness.workloads import Workload

__all__ = ["can_draw", "draw_growth", "draw_profile", "draw_soak", "draw_table"]

COLOURS = {
    "acprt": "#1f6feb",
    "acprt-acp": "#5b9bf8",
    "acprt-session": "#9cc3fb",
    "acprt-stock": "#0b3d91",
    "limit": "#444444",
    "limit-stock": "#777777",
    "blocking": "#aaaaaa",
}
OTHERS = ("#d9730d", "#9b51e0", "#2d9d78", "#c43d5b", "#8a6d3b", "#7a8694", "#b08900", "#5f9ea0")


def can_draw() -> bool:
    """Whether matplotlib is installed (`make bench-setup` does it)."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw_table(results: Results, chosen: list[Workload], peers: list[Peer], folder: Path) -> list[Path]:
    """One panel per row of the table: a bar per peer, the best on top."""
    plt = _pyplot()
    shown = [w for w in chosen if sum(results.values(w.key, peer.name) is not None for peer in peers) > 1]
    if not shown:
        return []
    columns = min(3, len(shown))
    height = 0.55 + 0.2 * len(peers)
    rows = -(-len(shown) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, height * rows), squeeze=False)
    for axis, workload in zip(axes.flat, shown, strict=False):
        _bars(axis, results, workload, peers)
    for axis in list(axes.flat)[len(shown) :]:
        axis.set_visible(False)
    return [_saved(plt, figure, folder / "table.svg")]


def draw_growth(results: Results, points: list[Workload], peers: list[Peer], folder: Path) -> list[Path]:
    """One chart per curve: both axes logarithmic, a line per peer, the range of the rounds behind it."""
    plt = _pyplot()
    drawn: list[Path] = []
    for curve in CURVES:
        figure, axis = plt.subplots(figsize=(6.0, 3.4))
        for peer in peers:
            of_peer = [(p.size, s) for p in points if p.curve == curve.key and (s := results.values(p.key, peer.name))]
            if of_peer:
                sizes = [size for size, _ in of_peer]
                colour = _colour(peer, peers)
                axis.plot(sizes, [s.median for _, s in of_peer], "o-", color=colour, label=peer.title, markersize=4)
                low, high = [min(s.values) for _, s in of_peer], [max(s.values) for _, s in of_peer]
                axis.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
        if axis.lines:
            axis.set(xscale="log", yscale="log", xlabel=curve.x_label, ylabel=curve.y_label)
            for scale in (axis.xaxis, axis.yaxis):
                scale.set_major_formatter(lambda value, _place: f"{value:,g}")
            axis.set_title(curve.title, fontsize=9)
            axis.legend(fontsize=8, frameon=False)
            drawn.append(_saved(plt, figure, folder / f"growth-{curve.key}.svg"))
        else:
            plt.close(figure)
    return drawn


def draw_profile(shares: dict[str, dict[str, float]], folder: Path) -> list[Path]:
    """One bar per program and workload, cut into the rooms that took the time; `shares` sum to 1."""
    plt = _pyplot()
    total = Counter[str]()
    for by_room in shares.values():
        total.update(by_room)
    rooms = [room for room, _ in total.most_common()]
    figure, axis = plt.subplots(figsize=(7.5, 0.6 + 0.42 * len(shares)))
    names = list(shares)
    left = [0.0] * len(names)
    colours = plt.get_cmap("tab20").colors
    for index, room in enumerate(rooms):
        widths = [shares[name].get(room, 0.0) * 100 for name in names]
        axis.barh(names, widths, left=left, label=room, color=colours[index % len(colours)])
        left = [begin + width for begin, width in zip(left, widths, strict=True)]
    axis.invert_yaxis()
    axis.set_xlabel("% of CPU samples")
    axis.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return [_saved(plt, figure, folder / "profile.svg")]


def draw_soak(results: Results, peers: list[Peer], folder: Path) -> list[Path]:
    """Memory of client and agent over time, one line per peer; that of the last round."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(6.0, 3.4))
    for peer in peers:
        for sample in results.samples("w11", peer.name)[-1:]:
            seconds = [point[0] for point in sample["memory"]]
            mebibytes = [(point[1] + point[2]) / 2**20 for point in sample["memory"]]
            axis.plot(seconds, mebibytes, color=_colour(peer, peers), label=peer.title)
    if not axis.lines:
        plt.close(figure)
        return []
    axis.set(xlabel="seconds", ylabel="MiB, client and agent", ylim=(0, None))
    axis.legend(fontsize=8, frameon=False)
    return [_saved(plt, figure, folder / "soak.svg")]


def _bars(axis: Any, results: Results, workload: Workload, peers: list[Peer]) -> None:
    measured = [(spread, peer) for peer in peers if (spread := results.values(workload.key, peer.name)) is not None]
    measured.sort(key=lambda pair: pair[0].median, reverse=workload.more_is_better)
    medians = [spread.median for spread, _ in measured]
    axis.barh([peer.title for _, peer in measured], medians, color=[_colour(peer, peers) for _, peer in measured])
    axis.invert_yaxis()
    axis.set_title(f"{workload.title}\n{workload.unit}", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_xticks([])  # every bar says its number
    for row, value in enumerate(medians):
        axis.text(value, row, f" {value:,.3g}" if abs(value) < 1000 else f" {value:,.0f}", va="center", fontsize=7)
    axis.margins(x=0.25)


def _colour(peer: Peer, peers: list[Peer]) -> str:
    if peer.name in COLOURS:
        return COLOURS[peer.name]
    strangers = [p.name for p in peers if p.name not in COLOURS]
    return OTHERS[strangers.index(peer.name) % len(OTHERS)]


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {
        "svg.hashsalt": "acprt",  # ids in the file are drawn from it
        "svg.fonttype": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    import matplotlib.pyplot as plt

    return plt


def _saved(plt: Any, figure: Any, path: Path) -> Path:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return path
