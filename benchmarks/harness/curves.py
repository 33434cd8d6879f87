"""Growth: the same work at several sizes. What a message costs should not depend on how many there are."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from benchmarks.harness.workloads import Sample, Workload

__all__ = ["CURVES", "Curve", "curve_points"]

KIB, MIB = 1024, 1024 * 1024


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One chart: what grows, and what is shown for each size. `flat` says what should not grow with it."""

    key: str
    title: str
    x_label: str
    y_label: str
    sizes: tuple[int, ...]
    arguments: Callable[[int], tuple[str, ...]]
    value: Callable[[Sample], float | None]
    flat: str
    pinned: bool = False
    only_for: tuple[str, ...] = ()


def _cpu(sample: Sample) -> float | None:
    """Microseconds of both sides' CPU per message."""
    if sample.get("agent_cpu") is None:
        return None
    return float((sample["client_cpu"] + sample["agent_cpu"]) / sample["count"] * 1e6)


def _client_cpu(sample: Sample) -> float:
    return float(sample["client_cpu"] / sample["count"] * 1e6)


def _per_kib(sample: Sample) -> float | None:
    cpu = _cpu(sample)
    return None if cpu is None else cpu / (sample["bytes"] / sample["count"] / KIB)


CURVES = (
    Curve(
        key="size",
        title="Message size: CPU of both sides per KiB of an echoed text",
        x_label="bytes of text",
        y_label="µs per KiB",
        sizes=(100, KIB, 10 * KIB, 100 * KIB, MIB, 4 * MIB, 16 * MIB),
        arguments=lambda size: ("echo", "--size", str(size)),
        value=_per_kib,
        flat="falls until the cost of the message itself no longer shows, then stays: nothing is quadratic",
    ),
    Curve(
        key="in-flight",
        title="Requests in flight: CPU of both sides per request",
        x_label="requests in flight",
        y_label="µs per request",
        sizes=(1, 10, 100, 1_000, 10_000),
        arguments=lambda size: ("pipelined", "--size", str(size)),
        value=_cpu,
        flat="falls while messages are joined into fewer reads and writes, then stays",
    ),
    Curve(
        key="connections",
        title="Connections of one client, 64 requests in flight on each: its CPU per request",
        x_label="connections",
        y_label="µs per request, client",
        sizes=(1, 10, 50, 100, 200),
        arguments=lambda size: ("agents", "--size", str(size)),
        value=_client_cpu,
        flat="stays",
        only_for=("acprt", "limit"),
    ),
    Curve(
        key="handlers",
        title="Handlers registered at the agent: CPU of both sides per sequential request",
        x_label="handlers",
        y_label="µs per request",
        sizes=(1, 10, 100, 1_000),
        arguments=lambda size: ("sequential", "--handlers", str(size)),
        value=_cpu,
        flat="stays",
        pinned=True,
    ),
)


def curve_points(curves: tuple[Curve, ...] = CURVES) -> list[Workload]:
    """Every point of every curve, as a workload of a run."""
    return [
        Workload(
            key=f"{curve.key}-{size}",
            title=f"{curve.x_label} {size}",
            unit=curve.y_label,
            arguments=curve.arguments(size),
            value=curve.value,
            more_is_better=False,
            pinned=curve.pinned,
            only_for=curve.only_for,
            curve=curve.key,
            size=size,
        )
        for curve in curves
        for size in curve.sizes
    ]
