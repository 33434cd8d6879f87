"""What every client program measures with: its command line, sample sizes, clocks, and the check of the updates.

Must import the standard library alone (the incumbent's environment has nothing of ours) and costs every peer the same.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import script

__all__ = [
    "Measure",
    "Sample",
    "Sizing",
    "Updates",
    "arguments",
    "median_ms",
    "percentiles",
    "report",
    "resident_bytes",
    "settled_sample",
]

Sample = dict[str, Any]

WARM_UP_SECONDS = 0.15
"""Long enough for caches, lazily built decoders and the allocator; short next to a sample."""

WORKLOADS = [
    "agents",
    "echo",
    "idle",
    "latency",
    "naps",
    "nested",
    "pending",
    "pipelined",
    "proxied",
    "sequential",
    "soak",
    "start",
    "storm",
    "updates",
]


def arguments() -> argparse.Namespace:
    """The command line of every client program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--size", type=int, default=1, help="in flight, bytes, starts, agents or requests")
    parser.add_argument("--handlers", type=int, default=0, help="handlers that the agent registers beside its own")
    parser.add_argument("--seconds", type=float, default=0.6, help="aimed length of the timed part")
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop")
    return parser.parse_args()


def report(sample: Sample) -> None:
    """Hand the sample to the program that ran this one."""
    print(json.dumps(sample), flush=True)


class Sizing:
    """Warms up with growing bursts and sizes the sample by how fast the last of them was."""

    def __init__(self, first: int, multiple_of: int = 1) -> None:
        self._first = first
        self._multiple_of = multiple_of
        self._rate = 0.0

    def warm_up(self) -> Iterator[int]:
        """Yields the count of each warm-up burst; at least two, as the first is always slow."""
        began, count, bursts = time.perf_counter(), self._first, 0
        while bursts < 2 or time.perf_counter() - began < WARM_UP_SECONDS:
            burst_began = time.perf_counter()
            yield count
            self._rate = count / (time.perf_counter() - burst_began)
            bursts += 1
            if time.perf_counter() - burst_began < WARM_UP_SECONDS:
                count *= 2

    def count(self, seconds: float) -> int:
        """How many make a sample of `seconds`."""
        return max(int(self._rate * seconds) // self._multiple_of, 1) * self._multiple_of


class Measure:
    """Wall time and the CPU time of the client and of its agents between its making and `sample()`."""

    def __init__(self, agent_pids: Iterable[int]) -> None:
        gc.collect()
        # Linux: the CPU clock of another process, all its threads, in ns
        self._agent_clocks = [(~pid << 3) | 2 for pid in agent_pids]
        self._agent_cpu = self._read_agents()
        self._client_cpu = _read_client()
        self._wall = time.perf_counter()

    def sample(self, count: int) -> Sample:
        """Seconds of `count` operations; the agent's CPU is None where the system does not tell it."""
        wall = time.perf_counter() - self._wall
        client_cpu = _read_client() - self._client_cpu
        agent_cpu = self._read_agents()
        spent = None if agent_cpu is None or self._agent_cpu is None else agent_cpu - self._agent_cpu
        return {"count": count, "seconds": wall, "client_cpu": client_cpu, "agent_cpu": spent}

    def _read_agents(self) -> float | None:
        return sum(map(time.clock_gettime, self._agent_clocks)) if sys.platform == "linux" else None


def _read_client() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Updates:
    """What the client's update handler does with a text: check the order, keep the count, notice the special ones."""

    def __init__(self) -> None:
        self.count = 0
        self.echoed = ""
        self.parked = False
        self.on_parked: Callable[[], None] = lambda: None
        self.handled_after_answer = 0
        self.out_of_order = 0

    def received(self, text: str) -> None:
        if text == script.UPDATE_TEXTS[self.count & script.UPDATE_MASK]:
            self.count += 1
        elif text == script.PARKED:
            self.parked = True
            self.on_parked()
        elif text.startswith(script.ECHO):
            self.echoed = text
        else:
            self.count += 1
            self.out_of_order += 1

    def answered(self, expected: int) -> None:
        """The answer came: what of the updates in front of it was not handled yet breaks the ordering promise."""
        self.handled_after_answer += expected - self.count

    def take_echo(self, text: str) -> None:
        """The answer came: the echo must have been handled, whole."""
        if self.echoed != text:
            raise AssertionError(f"echo of {len(text)} bytes was {len(self.echoed)} bytes when its answer came")
        self.echoed = ""

    def facts(self) -> Sample:
        return {"handled_after_answer": self.handled_after_answer, "out_of_order": self.out_of_order}


def percentiles(nanoseconds: list[int]) -> Sample:
    """Median and 99th percentile of round trips, in microseconds."""
    ordered = sorted(nanoseconds)
    return {"p50_us": ordered[len(ordered) // 2] / 1000, "p99_us": ordered[len(ordered) * 99 // 100] / 1000}


def median_ms(starts: list[float]) -> Sample:
    """The median start in milliseconds, the first (which warmed the file cache) left out."""
    ordered = sorted(starts[1:])
    return {"count": len(ordered), "ms": ordered[len(ordered) // 2] * 1000}


def resident_bytes(pid: int | None = None) -> int | None:
    """Memory of a process (ours by default) that is really there; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    with open(f"/proc/{pid or 'self'}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def settled_sample(count: int, seconds: float, memory: list[tuple[float, int, int]]) -> Sample:
    """What a soak tells: both sides' memory over time, and by how much the last quarter's exceeds the second's.

    `memory` has (seconds, client bytes, agent bytes). The first quarter is left out: caches and allocators fill there.
    """
    quarter = max(len(memory) // 4, 1)
    early, late = memory[quarter : quarter * 2] or memory, memory[-quarter:]

    def median_of(points: list[tuple[float, int, int]]) -> float:
        totals = sorted(client + agent for _, client, agent in points)
        return totals[len(totals) // 2]

    return {"count": count, "seconds": seconds, "memory": memory, "growth": median_of(late) - median_of(early)}
