"""What is measured, in which unit, and what acprt has to reach. Goals are ratios: absolute numbers are for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["Goal", "Workload", "selected", "workloads"]

Sample = dict[str, Any]
MIB = 1024 * 1024


class Goal(msgspec.Struct, frozen=True):
    """A bound on acprt's value divided by `against`'s, or on the value itself when `against` is empty."""

    against: str
    bound: float


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table. `arguments` go to a peer's client program; `import` has none and runs no client."""

    key: str
    title: str
    unit: str
    arguments: tuple[str, ...]
    value: Callable[[Sample], float]
    more_is_better: bool = True
    pinned: bool = False
    goals: tuple[Goal, ...] = ()
    not_for: tuple[str, ...] = ()

    def reaches(self, value: float, bound: float) -> bool:
        return value >= bound if self.more_is_better else value <= bound


def workloads(*, starts: int) -> list[Workload]:
    """All of them, in the order they are run and printed; `starts` agents are started per cold-start sample."""
    return [
        Workload(
            key="w1",
            title="sequential round trips, both processes on one core",
            unit="req/s",
            arguments=("sequential",),
            value=_rate,
            pinned=True,
            goals=(Goal("limit", 0.55), Goal("incumbent", 5.0)),
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
            key="w2-64",
            title="64 requests in flight",
            unit="req/s",
            arguments=("pipelined", "--size", "64"),
            value=_rate,
            goals=(Goal("limit", 0.45), Goal("incumbent", 3.5)),
        ),
        Workload(
            key="w2-1000",
            title="1,000 requests in flight",
            unit="req/s",
            arguments=("pipelined", "--size", "1000"),
            value=_rate,
            goals=(Goal("limit", 0.45), Goal("incumbent", 8.0)),
        ),
        Workload(
            key="w3",
            title="notification stream, typed handler",
            unit="msg/s",
            arguments=("updates",),
            value=_rate,
            goals=(Goal("limit", 0.50), Goal("incumbent", 10.0)),
        ),
        Workload(
            key="w4-1m",
            title="1 MiB echo",
            unit="MB/s",
            arguments=("echo", "--size", str(MIB)),
            value=_megabytes,
            goals=(Goal("limit", 0.75), Goal("incumbent", 1.3)),
        ),
        Workload(
            key="w4-16m",
            title="16 MiB echo",
            unit="MB/s",
            arguments=("echo", "--size", str(16 * MIB)),
            value=_megabytes,
            goals=(Goal("limit", 0.95), Goal("incumbent", 1.3)),
        ),
        Workload(
            key="w5",
            title="cold start: spawn to first answer",
            unit="ms",
            arguments=("start", "--size", str(starts)),
            value=lambda sample: float(sample["ms"]),
            more_is_better=False,
            goals=(Goal("limit", 1.3), Goal("incumbent", 0.2)),
        ),
        Workload(
            key="w5-import",
            title="import (limit: asyncio, msgspec and uvloop)",
            unit="ms",
            arguments=(),
            value=lambda sample: float(sample["ms"]),
            more_is_better=False,
            goals=(Goal("limit", 1.25), Goal("incumbent", 0.2)),
            not_for=("acprt-stock", "incumbent-stock"),
        ),
        Workload(
            key="w6",
            title="bytes per pending request, its task included",
            unit="B",
            arguments=("pending", "--size", "10000"),
            value=_bytes_per_request,
            more_is_better=False,
            goals=(Goal("", 1600.0), Goal("incumbent", 0.4)),
            not_for=("blocking",),
        ),
    ]


def selected(all_of_them: list[Workload], only: list[str]) -> list[Workload]:
    """Those whose key is in `only` or begins with a name in it (`w2` is both pipelines); all when it is empty."""
    chosen = [w for w in all_of_them if not only or any(w.key == name or w.key.startswith(f"{name}-") for name in only)]
    if not chosen:
        raise SystemExit(f"no workload is called {', '.join(only)}; there are {', '.join(w.key for w in all_of_them)}")
    return chosen


def _rate(sample: Sample) -> float:
    return float(sample["count"] / sample["seconds"])


def _megabytes(sample: Sample) -> float:
    """Each echoed byte is counted once though it crosses both pipes."""
    return float(sample["bytes"] / sample["seconds"] / 1e6)


def _bytes_per_request(sample: Sample) -> float:
    resident = sample["resident_per_request"]
    return float(sample["traced_per_request"] if resident is None else resident)
