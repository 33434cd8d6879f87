"""The client side of the workloads for peers without an event loop: the bare blocking loop, and threads.

The same bursts as in `drive.py`, without tasks. A peer's client program brings a `connect` and the session below.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import script
from measure import (
    Measure,
    Sample,
    Sizing,
    Updates,
    arguments,
    median_ms,
    percentiles,
    report,
    resident_bytes,
)

__all__ = ["BlockingSession", "Connect", "client_main"]

PARKED_WITHIN_SECONDS = 60.0


class BlockingSession(Protocol):
    """One connection; every method but `park` returns when the answers it waits for have been read."""

    agent_pid: int

    def initialize(self) -> None: ...
    def new_session(self) -> None: ...
    def prompt(self, text: str) -> None: ...

    def prompts(self, text: str, count: int, in_flight: int) -> None:
        """A sliding window: a new request for each answer."""

    def park(self, text: str, count: int) -> None:
        """Send `count` prompts and hold what belongs to them; do not wait."""
        raise SystemExit(f"{type(self).__name__} leaves this workload out")


Connect = Callable[[Updates, int], AbstractContextManager[BlockingSession]]
"""Spawns an agent with so many more handlers and connects to it."""


def client_main(connect: Connect) -> None:
    """Run the workload named on the command line and print its sample."""
    args = arguments()
    if args.workload == "start":
        report(_starts(connect, args.size))
        return
    if args.workload == "pending":
        report(_pending(connect, args.size))
        return
    updates = Updates()
    with connect(updates, args.handlers) as session:
        session.initialize()
        session.new_session()
        report(_sample(session, updates, args))


def _sample(session: BlockingSession, updates: Updates, args: argparse.Namespace) -> Sample:
    size, seconds, prompt = args.size, args.seconds, session.prompt
    times: list[int] = []

    def one_by_one(text: str) -> Callable[[int], None]:
        def burst(count: int) -> None:
            for _ in range(count):
                prompt(text)

        return burst

    def latency(count: int) -> None:
        times.clear()
        now, text = time.perf_counter_ns, script.PROMPT_TEXT
        for _ in range(count):
            before = now()
            prompt(text)
            times.append(now() - before)

    def pipelined(count: int) -> None:
        session.prompts(script.PROMPT_TEXT, count, size)

    def naps(count: int) -> None:
        for _ in range(count):
            session.prompts(script.nap_text(1), size, size)

    def stream(count: int) -> None:
        updates.count = 0
        prompt(script.updates_text(count))
        updates.answered(count)

    def echo(count: int) -> None:
        big = script.echo_text(size)
        for _ in range(count):
            prompt(big)
            updates.take_echo(big)

    match args.workload:
        case "sequential":
            return _timed(session, one_by_one(script.PROMPT_TEXT), Sizing(50), seconds)
        case "nested":
            return _timed(session, one_by_one(script.CALL_TEXT), Sizing(50), seconds)
        case "latency":
            return _timed(session, latency, Sizing(50), seconds) | percentiles(times)
        case "pipelined":
            return _timed(session, pipelined, Sizing(size * 2, multiple_of=size), seconds)
        case "naps":
            return _timed(session, naps, Sizing(1), seconds)
        case "updates":
            return _timed(session, stream, Sizing(1000), seconds) | updates.facts()
        case "echo":
            sample = _timed(session, echo, Sizing(1), seconds)
            return sample | {"bytes": size * sample["count"]}
        case _:
            raise SystemExit(f"a peer without a loop has no workload {args.workload!r}")


def _timed(session: BlockingSession, burst: Callable[[int], None], sizing: Sizing, seconds: float) -> Sample:
    for count in sizing.warm_up():
        burst(count)
    count = sizing.count(seconds)
    measure = Measure([session.agent_pid])
    burst(count)
    return measure.sample(count)


def _starts(connect: Connect, count: int) -> Sample:
    times: list[float] = []
    for _ in range(count + 1):
        began = time.perf_counter()
        with connect(Updates(), 0) as session:
            session.initialize()
            times.append(time.perf_counter() - began)
    return median_ms(times)


def _pending(connect: Connect, count: int) -> Sample:
    resident = _parked(connect, count, resident_bytes)
    tracemalloc.start()
    traced = _parked(connect, count, lambda: tracemalloc.get_traced_memory()[0])
    return {"count": count, "resident_per_request": resident, "traced_per_request": traced}


def _parked(connect: Connect, count: int, read_bytes: Callable[[], int | None]) -> float | None:
    updates = Updates()
    with connect(updates, 0) as session:
        session.initialize()
        session.new_session()
        for _ in range(100):
            session.prompt(script.PROMPT_TEXT)
        gc.collect()
        before = read_bytes()
        session.park(script.park_text(count), count)
        give_up = time.monotonic() + PARKED_WITHIN_SECONDS
        while not updates.parked and time.monotonic() < give_up:
            time.sleep(0.005)
        gc.collect()
        after = read_bytes()
        os.kill(session.agent_pid, signal.SIGKILL)
    return None if before is None or after is None or not updates.parked else (after - before) / count
