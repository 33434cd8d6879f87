"""What is measured, in which unit, and what acprt has to reach. Goals are ratios: absolute numbers are for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.harness.peers import Peer

__all__ = ["Goal", "Sample", "Workload", "selected", "soak", "workloads"]

Sample = dict[str, Any]
MIB = 1024 * 1024


class Goal(msgspec.Struct, frozen=True):
    """A bound on acprt's value divided by `against`'s, or on the value itself when `against` is empty."""

    against: str
    bound: float


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table. `arguments` go to a peer's client program, the first is the name of its workload there.

    `ahead_of_untyped` is False where peers that do not decode to types do less work than acprt is asked for.
    `import` runs no client. A row with `sample_of` shows another number of that row's samples and runs nothing.
    `only_for` names the peers that are sampled; empty: all that can. `curve` and `size` make it a point of a curve.
    """

    key: str
    title: str
    unit: str
    arguments: tuple[str, ...] = ()
    value: Callable[[Sample], float | None]
    more_is_better: bool = True
    pinned: bool = False
    ahead_of_untyped: bool = True
    goals: tuple[Goal, ...] = ()
    sample_of: str = ""
    only_for: tuple[str, ...] = ()
    not_quick: bool = False
    seconds: float | None = None
    curve: str = ""
    size: int = 0

    def reaches(self, value: float, bound: float) -> bool:
        return value >= bound if self.more_is_better else value <= bound

    def can_be_done_by(self, peer: Peer) -> bool:
        needs = {self.arguments[0], *(["handlers"] if "--handlers" in self.arguments else [])}
        return not needs & set(peer.lacks) and (not self.only_for or peer.name in self.only_for)


def workloads(*, starts: int) -> list[Workload]:
    """All rows, in the order they are run and printed; `starts` agents are started per cold-start sample."""
    return [
        Workload(
            key="w1",
            title="sequential round trips, both processes on one core",
            unit="req/s",
            arguments=("sequential",),
            value=_rate,
            pinned=True,
            goals=(Goal("limit", 0.68), Goal("incumbent", 6.0)),
        ),
        Workload(
            key="w1-p50",
            title="sequential round trip, any core, median",
            unit="µs",
            arguments=("latency",),
            value=lambda sample: float(sample["p50_us"]),
            more_is_better=False,
        ),
        Workload(
            key="w1-p99",
            title="sequential round trip, any core, 99th percentile",
            unit="µs",
            sample_of="w1-p50",
            value=lambda sample: float(sample["p99_us"]),
            more_is_better=False,
        ),
        Workload(
            key="w2-64",
            title="64 requests in flight",
            unit="req/s",
            arguments=("pipelined", "--size", "64"),
            value=_rate,
            goals=(Goal("limit", 0.58), Goal("incumbent", 4.2)),
        ),
        Workload(
            key="w2-1000",
            title="1,000 requests in flight",
            unit="req/s",
            arguments=("pipelined", "--size", "1000"),
            value=_rate,
            goals=(Goal("limit", 0.55), Goal("incumbent", 10.0)),
            not_quick=True,
        ),
        Workload(
            key="w3",
            title="notification stream, typed handler",
            unit="msg/s",
            arguments=("updates",),
            value=_rate,
            goals=(Goal("limit", 0.62), Goal("incumbent", 13.0), Goal("pylsp", 2.0)),
            ahead_of_untyped=False,
        ),
        Workload(
            key="w4-1m",
            title="1 MiB echo",
            unit="MB/s",
            arguments=("echo", "--size", str(MIB)),
            value=_megabytes,
            goals=(Goal("limit", 0.85), Goal("incumbent", 1.5)),
        ),
        Workload(
            key="w4-16m",
            title="16 MiB echo",
            unit="MB/s",
            arguments=("echo", "--size", str(16 * MIB)),
            value=_megabytes,
            goals=(Goal("limit", 0.95), Goal("incumbent", 1.35)),
            not_quick=True,
        ),
        Workload(
            key="w5",
            title="cold start: spawn to first answer",
            unit="ms",
            arguments=("start", "--size", str(starts)),
            value=_ms,
            more_is_better=False,
            goals=(Goal("limit", 1.2), Goal("incumbent", 0.18)),
            ahead_of_untyped=False,
        ),
        Workload(
            key="w5-import",
            title="import (limit: asyncio, msgspec and uvloop)",
            unit="ms",
            arguments=("import",),
            value=_ms,
            more_is_better=False,
            goals=(Goal("limit", 1.25), Goal("incumbent", 0.2)),
            ahead_of_untyped=False,
            not_quick=True,
        ),
        Workload(
            key="w6",
            title="bytes per pending request, its task included",
            unit="B",
            arguments=("pending", "--size", "10000"),
            value=_bytes_per_request,
            more_is_better=False,
            goals=(Goal("", 1200.0), Goal("incumbent", 0.3)),
            not_quick=True,
        ),
        Workload(
            key="w6-idle",
            title="bytes per idle connection, in the client",
            unit="B",
            arguments=("idle", "--size", "20"),
            value=lambda sample: sample["resident_per_connection"],
            more_is_better=False,
            not_quick=True,
        ),
        Workload(
            key="w7",
            title="1,000 handlers that wait 1 ms, at once",
            unit="ms",
            arguments=("naps", "--size", "1000"),
            value=lambda sample: float(sample["seconds"] / sample["count"] * 1000),
            more_is_better=False,
            goals=(Goal("limit", 2.5), Goal("incumbent", 0.16)),
        ),
        Workload(
            key="w8",
            title="round trips with a nested one, on one core",
            unit="req/s",
            arguments=("nested",),
            value=_rate,
            pinned=True,
            goals=(Goal("limit", 0.68), Goal("incumbent", 6.0)),
        ),
        Workload(
            key="w9",
            title="50 agents, 64 requests in flight each",
            unit="req/s",
            arguments=("agents", "--size", "50"),
            value=_rate,
            only_for=("acprt", "incumbent", "limit"),
            not_quick=True,
        ),
        Workload(
            key="w9-share",
            title="the same, divided by one agent's throughput",
            unit="×",
            sample_of="w9",
            value=lambda sample: float(sample["share_of_one"]),
            goals=(Goal("", 0.6),),
        ),
        Workload(
            key="w9-growth",
            title="the same, client CPU per message divided by that with one agent",
            unit="×",
            sample_of="w9",
            value=lambda sample: float(sample["client_cpu_growth"]),
            more_is_better=False,
        ),
        Workload(
            key="w10",
            title="1,000 held requests, all cancelled",
            unit="req/s",
            arguments=("storm", "--size", "1000"),
            value=_rate,
            not_quick=True,
        ),
        Workload(
            key="w12",
            title="a raw proxy, 64 in flight: its CPU divided by that of client and agent without it",
            unit="×",
            arguments=("proxied", "--size", "64"),
            value=lambda sample: sample["cpu_share"],
            more_is_better=False,
            goals=(Goal("", 0.6),),
        ),
        Workload(
            key="w12-one",
            title="a raw proxy, sequential, on one core: time it adds divided by the time without it",
            unit="×",
            arguments=("proxied", "--size", "1"),
            value=lambda sample: float(sample["added_share"]),
            more_is_better=False,
            pinned=True,
        ),
    ]


def soak(seconds: float) -> Workload:
    """A fixed rate for so long; the row that no table has, as it takes ten minutes."""
    return Workload(
        key="w11",
        title="growth of both sides' memory, from the second quarter of the time to the last",
        unit="B",
        arguments=("soak",),
        value=lambda sample: float(sample["growth"]),
        more_is_better=False,
        seconds=seconds,
    )


def selected(all_of_them: list[Workload], only: list[str], *, quick: bool) -> list[Workload]:
    """Those whose key is in `only` or begins with a name in it (`w2` is both pipelines); a quick run has fewer."""
    if only:
        chosen = [w for w in all_of_them if any(w.key == name or w.key.startswith(f"{name}-") for name in only)]
        sources = {w.sample_of for w in chosen if w.sample_of}
        chosen = [w for w in all_of_them if w in chosen or w.key in sources]
    else:
        chosen = [w for w in all_of_them if not (quick and w.not_quick)]
        run = {w.key for w in chosen}
        chosen = [w for w in chosen if not w.sample_of or w.sample_of in run]
    if not chosen:
        raise SystemExit(f"no workload is called {', '.join(only)}; there are {', '.join(w.key for w in all_of_them)}")
    return chosen


def _rate(sample: Sample) -> float:
    return float(sample["count"] / sample["seconds"])


def _megabytes(sample: Sample) -> float:
    """Each echoed byte is counted once though it crosses both pipes."""
    return float(sample["bytes"] / sample["seconds"] / 1e6)


def _ms(sample: Sample) -> float:
    return float(sample["ms"])


def _bytes_per_request(sample: Sample) -> float:
    resident = sample["resident_per_request"]
    return float(sample["traced_per_request"] if resident is None else resident)
