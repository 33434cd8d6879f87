"""Measures the runtime against the incumbent, a bare uvloop loop and a blocking loop, in one interleaved run.

    make bench-core                                  the whole table
    python benchmarks/core.py --quick --only w1,w2   a first look at some of it

Nothing here is measured in this process: each sample is a client program of its own that spawns its agent.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a program, the checkout is not on the path

from benchmarks.harness import machine  # noqa: E402
from benchmarks.harness.peers import INCUMBENT_PYTHON, Peer, known_peers, missing, versions  # noqa: E402
from benchmarks.harness.report import report  # noqa: E402
from benchmarks.harness.results import Results  # noqa: E402
from benchmarks.harness.rounds import Options, Record, run_rounds  # noqa: E402
from benchmarks.harness.workloads import selected, workloads  # noqa: E402

FULL = Options(rounds=5, seconds=0.6, repeat_noisy=True)
QUICK = Options(rounds=2, seconds=0.25, repeat_noisy=False)


def main() -> int:
    """Run, print, write what was asked for. 1 when a sample failed or acprt was skipped: no number is no pass."""
    args = _arguments()
    options = QUICK if args.quick else FULL
    if args.rounds:
        options = msgspec.structs.replace(options, rounds=args.rounds)
    chosen = selected(workloads(starts=3 if args.quick else 7), _names(args.only))
    peers, skipped = _present(_chosen_peers(args))
    if not peers:
        print("no peer can run:", skipped, file=sys.stderr)
        return 1
    began = time.perf_counter()
    records = [_told(record, options) for record in run_rounds(peers, chosen, options)]
    about = _about(peers, options, time.perf_counter() - began)
    results = Results(records, chosen)
    text = report(results, chosen, peers, skipped, about)
    print(text)
    for path in (args.markdown, args.json):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
    if args.markdown:
        args.markdown.write_text(text)
    if args.json:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(_archive(results, about, skipped))))
    return 1 if "acprt" in skipped or any(record.error for record in records) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ratios of acprt to its peers and to the limit.")
    parser.add_argument(
        "--quick", action="store_true", help="two short rounds, no noisy sample repeated: a look, not a measurement"
    )
    parser.add_argument("--rounds", type=int, help=f"how often every peer is sampled (default {FULL.rounds})")
    parser.add_argument("--only", default="", help="workloads by key, for example w1,w2-64,w5-import")
    parser.add_argument("--peers", default="", help="acprt, incumbent, limit, blocking; all by default")
    parser.add_argument("--stock", action="store_true", help="add acprt and the incumbent on stock asyncio")
    parser.add_argument("--incumbent-python", default=str(INCUMBENT_PYTHON), help="where the incumbent is installed")
    parser.add_argument("--json", type=Path, help="write every sample and verdict there")
    parser.add_argument("--markdown", type=Path, help="write the printed tables there")
    return parser.parse_args()


def _names(comma_separated: str) -> list[str]:
    return [name for name in comma_separated.split(",") if name]


def _chosen_peers(args: argparse.Namespace) -> list[Peer]:
    every_peer = known_peers(args.incumbent_python, stock=args.stock)
    names = _names(args.peers)
    if unknown := set(names) - {peer.name for peer in every_peer}:
        raise SystemExit(f"no peer is called {', '.join(unknown)}; there are {', '.join(p.name for p in every_peer)}")
    return [peer for peer in every_peer if not names or peer.name.removesuffix("-stock") in names]


def _present(wanted: list[Peer]) -> tuple[list[Peer], dict[str, str]]:
    reasons = {peer.name: missing(peer) for peer in wanted}
    skipped = {name: reason for name, reason in reasons.items() if reason is not None}
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}", file=sys.stderr)
    return [peer for peer in wanted if peer.name not in skipped], skipped


def _told(record: Record, options: Options) -> Record:
    """Show progress as one line that grows."""
    outcome = record.error or ("ok, taken twice" if record.repeated else "ok")
    print(f"round {record.round + 1}/{options.rounds}: {record.workload}, {record.peer}: {outcome}", file=sys.stderr)
    return record


def _about(peers: list[Peer], options: Options, took: float) -> list[str]:
    commit = machine.commit()
    found = {peer.title: versions(peer) for peer in peers if not peer.name.endswith("-stock")}
    named = (f"{title}: {', '.join(f'{k} {v}' for k, v in known.items())}" for title, known in found.items())
    return [
        f"command: `{shlex.join(['python', 'benchmarks/core.py', *sys.argv[1:]])}`"
        + (f", commit {commit}" if commit else ""),
        f"machine: {machine.describe()}; {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        f"run: {options.rounds} interleaved rounds, samples of about {options.seconds:g} s, {took:.0f} s in all",
        *named,
    ]


def _archive(results: Results, about: list[str], skipped: dict[str, str]) -> dict[str, Any]:
    return {"about": about, "skipped": skipped, "verdicts": results.verdicts(), "records": results.records}


if __name__ == "__main__":
    sys.exit(main())
