"""From samples to numbers: medians, spreads, and ratios that are taken within a round before their median is."""

from __future__ import annotations

from statistics import median

import msgspec

from benchmarks.harness.rounds import Record
from benchmarks.harness.workloads import Goal, Sample, Workload

__all__ = ["Results", "Spread", "Verdict"]

NOT_PEERS = {"acprt", "limit", "blocking", "limit-stock", "acprt-stock", "acprt-acp", "acprt-session"}
"""What acprt is not asked to be ahead of: the limits, and itself under another hat."""

UNTYPED_PEERS = {"pylsp", "vscode-jsonrpc"}
"""They hand over what the JSON reader made, so some rows ask less of them."""


class Spread(msgspec.Struct, frozen=True):
    """A median and what it was taken of."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def percent(self) -> float:
        """From the lowest to the highest, in percent of the median."""
        return abs((max(self.values) - min(self.values)) / self.median) * 100 if self.median else 0.0

    def straddles(self, bound: float) -> bool:
        return min(self.values) < bound < max(self.values)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one goal. `word` is pass, FAIL, or why neither can be said."""

    workload: str
    goal: Goal
    measured: Spread | None
    word: str


class Results:
    """All records of a run."""

    def __init__(self, records: list[Record], chosen: list[Workload]) -> None:
        self.records = records
        self._workloads = {workload.key: workload for workload in chosen}
        self._samples = {(r.workload, r.peer, r.round): r.sample for r in records if r.sample is not None}
        self._rounds = sorted({r.round for r in records})

    def samples(self, workload: str, peer: str) -> list[Sample]:
        found = (self._sample(workload, peer, number) for number in self._rounds)
        return [sample for sample in found if sample is not None]

    def values(self, workload: str, peer: str) -> Spread | None:
        found = (self._value(workload, peer, number) for number in self._rounds)
        measured = tuple(value for value in found if value is not None)
        return Spread(measured) if measured else None

    def ratios(self, workload: str, peer: str, against: str) -> Spread | None:
        """`peer` divided by `against`, of the rounds that have both."""
        ratios: list[float] = []
        for number in self._rounds:
            ours, theirs = self._value(workload, peer, number), self._value(workload, against, number)
            if ours is not None and theirs:
                ratios.append(ours / theirs)
        return Spread(tuple(ratios)) if ratios else None

    def cpu(self, workload: str, peer: str) -> tuple[Spread, Spread | None] | None:
        """Microseconds of CPU per message, client and agent; None for what is not counted in messages."""
        samples = [s for s in self.samples(workload, peer) if s.get("client_cpu") is not None]
        if not samples:
            return None
        client = Spread(tuple(s["client_cpu"] / s["count"] * 1e6 for s in samples))
        agents = tuple(s["agent_cpu"] / s["count"] * 1e6 for s in samples if s.get("agent_cpu") is not None)
        return client, Spread(agents) if agents else None

    def verdicts(self) -> list[Verdict]:
        """Every goal of every workload, judged by the median; a bound inside the range is marked as not settled."""
        found: list[Verdict] = []
        for workload in self._workloads.values():
            for goal in workload.goals:
                measured = (
                    self.ratios(workload.key, "acprt", goal.against)
                    if goal.against
                    else self.values(workload.key, "acprt")
                )
                word = "not measured"
                if measured is not None:
                    word = "pass" if workload.reaches(measured.median, goal.bound) else "FAIL"
                    word += ", within noise" if measured.straddles(goal.bound) else ""
                found.append(Verdict(workload=workload.key, goal=goal, measured=measured, word=word))
        return found

    def closest_peer(self, workload: str) -> tuple[str, Spread] | None:
        """The peer of another project that comes closest to acprt, and acprt divided by it."""
        others = {r.peer for r in self.records} - NOT_PEERS
        if not self._workloads[workload].ahead_of_untyped:
            others -= UNTYPED_PEERS
        ratios = {peer: spread for peer in sorted(others) if (spread := self.ratios(workload, "acprt", peer))}
        if not ratios:
            return None
        more_is_better = self._workloads[workload].more_is_better
        closest = (min if more_is_better else max)(ratios, key=lambda peer: ratios[peer].median)
        return closest, ratios[closest]

    def broken_promises(self) -> list[str]:
        """Peers whose updates were out of order, or not all handled when the answer to their request arrived."""
        counts: dict[str, int] = {}
        for record in self.records:
            for fact in ("handled_after_answer", "out_of_order"):
                what = f"{record.peer}: updates {fact.replace('_', ' ')}"
                counts[what] = counts.get(what, 0) + int((record.sample or {}).get(fact, 0))
        return [f"{what}: {count}" for what, count in counts.items() if count]

    def _sample(self, workload: str, peer: str, number: int) -> Sample | None:
        source = self._workloads[workload].sample_of or workload
        return self._samples.get((source, peer, number))

    def _value(self, workload: str, peer: str, number: int) -> float | None:
        sample = self._sample(workload, peer, number)
        return None if sample is None else self._workloads[workload].value(sample)
