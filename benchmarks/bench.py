"""Measures acprt against its peers and against the limit, in one interleaved run.

    make bench                                         everything that is installed: table, growth and profile
    python benchmarks/bench.py --quick --only w1,w2    a first look at some of it

Nothing here is measured in this process: each sample is a client program of its own that spawns its agent.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a program, the checkout is not on the path

from benchmarks.harness import charts, machine  # noqa: E402
from benchmarks.harness.curves import CURVES, curve_points  # noqa: E402
from benchmarks.harness.peers import GROUPS, Peer, known_peers, missing, versions  # noqa: E402
from benchmarks.harness.profile import profile_sections, take_profile  # noqa: E402
from benchmarks.harness.report import growth_sections, table_sections  # noqa: E402
from benchmarks.harness.results import Results  # noqa: E402
from benchmarks.harness.rounds import Options, Record, run_rounds  # noqa: E402
from benchmarks.harness.workloads import Workload, selected, soak, workloads  # noqa: E402

FULL = Options(rounds=5, seconds=0.6, repeat_noisy=True)
QUICK = Options(rounds=1, seconds=0.2, repeat_noisy=False)

QUICK_SECONDS = 100.0
"""After so long a quick run takes no further sample: on a machine at rest it is through by then."""

PARTS = ("table", "growth", "profile", "soak")


def main() -> int:
    """Run, print, write what was asked for. 1 when a sample failed or acprt was skipped: no number is no pass."""
    args = _arguments()
    parts = _names(args.parts)
    if unknown := set(parts) - set(PARTS):
        raise SystemExit(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    peers, skipped = _present(_chosen_peers(args))
    if not peers:
        print("no peer can run:", skipped, file=sys.stderr)
        return 1
    failed = "acprt" in skipped
    for part in parts:
        run = {"table": _table, "growth": _growth, "profile": _profile, "soak": _soak}[part]
        failed |= run(args, peers, skipped)
    return 1 if failed else 0


def _table(args: argparse.Namespace, peers: list[Peer], skipped: dict[str, str]) -> bool:
    starts = 3 if args.quick else 7
    chosen = selected(workloads(starts=starts), _names(args.only), quick=args.quick)

    def draw(results: Results, folder: Path) -> list[Path]:
        return charts.draw_table(results, chosen, peers, folder)

    return _measured(args, "table", peers, skipped, chosen, table_sections, draw)


def _growth(args: argparse.Namespace, peers: list[Peer], skipped: dict[str, str]) -> bool:
    wanted = [peer for peer in peers if args.peers or peer.name in GROUPS["growth"]]
    curves = tuple(curve for curve in CURVES if not args.only or curve.key in _names(args.only))
    points = curve_points(curves)

    def draw(results: Results, folder: Path) -> list[Path]:
        return charts.draw_growth(results, points, wanted, folder)

    return _measured(args, "growth", wanted, skipped, points, growth_sections, draw)


def _profile(args: argparse.Namespace, _peers: list[Peer], _skipped: dict[str, str]) -> bool:
    began = time.perf_counter()
    shares = take_profile(2.0 if args.quick else 8.0)
    acprt = [peer for peer in known_peers() if peer.name == "acprt"]
    about = _about(acprt, f"CPU samples of acprt's own programs, {time.perf_counter() - began:.0f} s in all")
    sections = profile_sections(shares, about)
    _written(args, "profile", sections, {"shares": shares}, lambda folder: charts.draw_profile(shares, folder))
    return False


def _soak(args: argparse.Namespace, peers: list[Peer], skipped: dict[str, str]) -> bool:
    def draw(results: Results, folder: Path) -> list[Path]:
        return charts.draw_soak(results, peers, folder)

    return _measured(args, "soak", peers, skipped, [soak(args.soak_seconds)], table_sections, draw)


Sections = Callable[[Results, list[Workload], list[Peer], dict[str, str], list[str]], dict[str, str]]


def _measured(
    args: argparse.Namespace,
    part: str,
    peers: list[Peer],
    skipped: dict[str, str],
    chosen: list[Workload],
    sections_of: Sections,
    draw: Callable[[Results, Path], list[Path]],
) -> bool:
    """Run the rounds of one part, print and write it. Whether a sample failed."""
    options = QUICK if args.quick else FULL
    if args.rounds:
        options = msgspec.structs.replace(options, rounds=args.rounds)
    began = time.perf_counter()
    records: list[Record] = []
    stopped = ""
    for record in run_rounds(peers, chosen, options):
        records.append(_told(record, options))
        if args.quick and time.perf_counter() - began > QUICK_SECONDS:
            stopped = f", stopped after {record.workload} of {record.peer}: the rest had no time"
            break
    took = time.perf_counter() - began
    rounds = f"{options.rounds} interleaved round{'s' if options.rounds > 1 else ''}"
    about = _about(peers, f"{rounds}, samples of about {options.seconds:g} s, {took:.0f} s in all{stopped}")
    results = Results(records, chosen)
    sections = sections_of(results, chosen, peers, skipped, about)
    archive = {"skipped": skipped, "verdicts": results.verdicts(), "records": records}
    _written(args, part, sections, archive, lambda folder: draw(results, folder))
    return any(record.error for record in records)


def _written(
    args: argparse.Namespace,
    part: str,
    sections: dict[str, str],
    archive: dict[str, Any],
    draw: Callable[[Path], list[Path]],
) -> None:
    """Print the sections; with `--results` write them, every sample and the charts there as well."""
    text = "\n\n".join(sections.values()) + "\n"
    print(text)
    if args.results is None:
        return
    folder: Path = args.results
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.md").write_text(text)
    drawn: list[Path] = []
    if charts.can_draw():
        drawn = draw(folder)
    else:
        print("no charts: matplotlib is not installed; `make bench-setup` does it", file=sys.stderr)
    shown = {f"chart-{path.stem}": f"![chart: {path.stem}](charts/{path.name})" for path in drawn}
    everything = {"part": part, "sections": sections | shown, **archive}
    (folder / f"{part}.json").write_bytes(msgspec.json.format(msgspec.json.encode(everything)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ratios of acprt to its peers and to the limit.")
    parser.add_argument(
        "--quick", action="store_true", help="one short round of the cheaper rows without stock asyncio: a look"
    )
    parser.add_argument("--parts", default="table", help=f"of {', '.join(PARTS)}; the table by default")
    parser.add_argument("--rounds", type=int, help=f"how often every peer is sampled (default {FULL.rounds})")
    parser.add_argument("--only", default="", help="rows or curves by key, for example w1,w2-64,w5-import or size")
    parser.add_argument("--peers", default="", help=f"by name or group ({', '.join(GROUPS)}); all by default")
    parser.add_argument("--soak-seconds", type=float, default=600.0, help="how long the soak (w11) is")
    parser.add_argument("--incumbent-python", default="", help="where agent-client-protocol is installed")
    parser.add_argument("--results", type=Path, help="write tables, every sample and charts into this folder")
    return parser.parse_args()


def _names(comma_separated: str) -> list[str]:
    return [name for name in comma_separated.split(",") if name]


def _chosen_peers(args: argparse.Namespace) -> list[Peer]:
    every_peer = known_peers(args.incumbent_python)
    names = {one for name in _names(args.peers) for one in GROUPS.get(name, (name,))}
    if unknown := names - {peer.name for peer in every_peer}:
        raise SystemExit(f"no peer is called {', '.join(unknown)}; there are {', '.join(p.name for p in every_peer)}")
    by_default = {peer.name for peer in every_peer} - set(GROUPS["stock"] if args.quick else ())
    return [peer for peer in every_peer if peer.name in (names or by_default)]


def _present(wanted: list[Peer]) -> tuple[list[Peer], dict[str, str]]:
    reasons = {peer.name: missing(peer) for peer in wanted}
    skipped = {name: reason for name, reason in reasons.items() if reason is not None}
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}", file=sys.stderr)
    return [peer for peer in wanted if peer.name not in skipped], skipped


def _told(record: Record, options: Options) -> Record:
    """Show progress, a line per sample."""
    outcome = record.error or ("ok, taken twice" if record.repeated else "ok")
    print(f"round {record.round + 1}/{options.rounds}: {record.workload}, {record.peer}: {outcome}", file=sys.stderr)
    return record


def _about(peers: list[Peer], run: str) -> list[str]:
    commit = machine.commit()
    found = {peer.title: versions(peer) for peer in peers if not peer.name.endswith("-stock")}
    named = (f"{title}: {', '.join(f'{k} {v}' for k, v in known.items())}" for title, known in found.items())
    return [
        f"command: `{shlex.join(['python', 'benchmarks/bench.py', *sys.argv[1:]])}`"
        + (f", commit {commit}" if commit else ""),
        f"machine: {machine.describe()}; {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        f"run: {run}",
        *named,
    ]


if __name__ == "__main__":
    sys.exit(main())
