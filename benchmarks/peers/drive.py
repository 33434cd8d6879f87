"""The client side of every workload, the same code for every asyncio peer.

A peer's client program brings a `connect` that spawns its agent the way its users do; the rest is here. Must do per
message nothing but the peer's own call, because what it costs is added to every peer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import signal
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import script
from measure import Measure, Sample, Sizing, Updates, arguments, median_ms, percentiles, report

__all__ = ["Connect", "Session", "client_main"]

WAIT_SECONDS = 60.0
"""Past this a workload has hung: better a named failure than a run that never ends."""


class Session(Protocol):
    """One connection to a spawned agent. `prompt` may return any awaitable: the bare loop returns a future."""

    agent_pid: int

    async def initialize(self) -> Any: ...
    async def new_session(self) -> Any: ...
    def prompt(self, text: str) -> Awaitable[Any]: ...


Connect = Callable[[str, script.OnUpdate], AbstractAsyncContextManager[Session]]
"""Given the loop's name (for the agent) and the update handler, spawns an agent and connects to it."""

Burst = Callable[[int], Awaitable[None]]


def client_main(connect: Connect) -> None:
    """Run the workload named on the command line, on the loop named there, and print its sample."""
    args = arguments()
    with asyncio.Runner(loop_factory=loop_factory(args.loop)) as runner:
        runner.run(asyncio.wait_for(_run(connect, args), WAIT_SECONDS))


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the loop of that name; None is stock asyncio."""
    if name != "uvloop":
        return None
    import uvloop  # not needed, so not paid for, by a stock run

    return uvloop.new_event_loop


async def _run(connect: Connect, args: argparse.Namespace) -> None:
    if args.workload == "start":
        report(await _starts(connect, args))
        return
    if args.workload == "pending":
        report(await _pending(connect, args))
        return
    updates = Updates()
    async with connect(args.loop, updates.received) as session:
        await session.initialize()
        await session.new_session()
        match args.workload:
            case "sequential":
                sample = await _sequential(session, args.seconds)
            case "latency":
                sample = await _latency(session, args.seconds)
            case "pipelined":
                sample = await _pipelined(session, args.size, args.seconds)
            case "updates":
                sample = await _updates(session, updates, args.seconds)
            case _:
                sample = await _echo(session, updates, args.size, args.seconds)
        report(sample)


async def _sequential(session: Session, seconds: float) -> Sample:
    async def burst(count: int) -> None:
        prompt, text = session.prompt, script.PROMPT_TEXT
        for _ in range(count):
            await prompt(text)

    return await _timed(session, burst, Sizing(50), seconds)


async def _latency(session: Session, seconds: float) -> Sample:
    times: list[int] = []

    async def burst(count: int) -> None:
        times.clear()
        prompt, text, now = session.prompt, script.PROMPT_TEXT, time.perf_counter_ns
        for _ in range(count):
            before = now()
            await prompt(text)
            times.append(now() - before)

    sample = await _timed(session, burst, Sizing(50), seconds)
    return sample | percentiles(times)


async def _pipelined(session: Session, in_flight: int, seconds: float) -> Sample:
    async def worker(count: int) -> None:
        prompt, text = session.prompt, script.PROMPT_TEXT
        for _ in range(count):
            await prompt(text)

    async def burst(count: int) -> None:
        await asyncio.gather(*(worker(count // in_flight) for _ in range(in_flight)))

    return await _timed(session, burst, Sizing(in_flight * 2, multiple_of=in_flight), seconds)


async def _updates(session: Session, updates: Updates, seconds: float) -> Sample:
    async def burst(count: int) -> None:
        updates.count = 0
        await session.prompt(script.updates_text(count))
        updates.answered(count)
        while updates.count < count:
            await asyncio.sleep(0.001)

    sample = await _timed(session, burst, Sizing(1000), seconds)
    return sample | updates.facts()


async def _echo(session: Session, updates: Updates, size: int, seconds: float) -> Sample:
    text = script.echo_text(size)

    async def burst(count: int) -> None:
        for _ in range(count):
            await session.prompt(text)
            updates.take_echo(text)

    sample = await _timed(session, burst, Sizing(1), seconds)
    return sample | {"bytes": size * sample["count"]}


async def _timed(session: Session, burst: Burst, sizing: Sizing, seconds: float) -> Sample:
    for count in sizing.warm_up():
        await burst(count)
    count = sizing.count(seconds)
    measure = Measure(session.agent_pid)
    await burst(count)
    return measure.sample(count)


async def _starts(connect: Connect, args: argparse.Namespace) -> Sample:
    """From before the spawn to the first answer, in a client that is already running."""
    starts: list[float] = []
    for _ in range(args.size + 1):
        began = time.perf_counter()
        async with connect(args.loop, lambda _text: None) as session:
            await session.initialize()
            starts.append(time.perf_counter() - began)
    return median_ms(starts)


async def _pending(connect: Connect, args: argparse.Namespace) -> Sample:
    """What requests hold while nobody answers them, each awaited by a task of its own, all of them written.

    Twice: resident memory first, in a process that did nothing else yet; then what the allocator itself was asked for.
    """
    resident = await _parked(connect, args, _resident_bytes)
    tracemalloc.start()
    traced = await _parked(connect, args, lambda: tracemalloc.get_traced_memory()[0])
    return {"count": args.size, "resident_per_request": resident, "traced_per_request": traced}


async def _parked(connect: Connect, args: argparse.Namespace, read_bytes: Callable[[], int | None]) -> float | None:
    updates, count = Updates(), args.size
    text = script.park_text(count)

    async def wait_for_answer() -> None:
        await session.prompt(text)

    async with connect(args.loop, updates.received) as session:
        await session.initialize()
        await session.new_session()
        for _ in range(100):
            await session.prompt(script.PROMPT_TEXT)
        gc.collect()
        before = read_bytes()
        tasks = [asyncio.create_task(wait_for_answer()) for _ in range(count)]
        while not updates.parked:
            await asyncio.sleep(0.005)
        gc.collect()
        after = read_bytes()
        os.kill(session.agent_pid, signal.SIGKILL)  # what thousands of abandoned requests cost at the end is not asked
        await asyncio.gather(*tasks, return_exceptions=True)
    return None if before is None or after is None else (after - before) / count


def _resident_bytes() -> int | None:
    if sys.platform != "linux":
        return None
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
