"""The client side of every workload, the same code for every asyncio peer.

A peer's client program brings a `connect` that spawns its agent the way its users do; the rest is here. Must do per
message nothing but the peer's own call, because what it costs is added to every peer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import script
from loops import loop_factory
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
    settled_sample,
)

__all__ = ["Connect", "Session", "Wanted", "agent_command", "client_main"]

WAIT_SECONDS = 100.0
"""Past this a workload has hung: better a named failure than a run that never ends."""

IN_FLIGHT_PER_AGENT = 64
"""How many requests each of several agents has to answer at a time: for one agent this is the workload of that name."""

PROXIED_TURNS = 3
"""How often direct and proxied requests take turns in a sample."""

SOAK_RATE = 200
"""Prompts a second of a soak, each with `SOAK_UPDATES` updates before its answer: far below what any peer can do."""

SOAK_UPDATES = 5


class Wanted(NamedTuple):
    """What a `connect` is asked for: the agent's loop, who gets the updates, and in which surroundings."""

    loop: str
    on_update: script.OnUpdate
    handlers: int = 0
    proxied: bool = False


class Session(Protocol):
    """One connection to a spawned agent. `prompt` may return any awaitable: the bare loop returns a future."""

    agent_pid: int

    async def initialize(self) -> Any: ...
    async def new_session(self) -> Any: ...
    def prompt(self, text: str) -> Awaitable[Any]: ...

    async def storm(self, count: int, held: asyncio.Event) -> None:
        """Send `count` prompts that the agent holds; when `held` is set, cancel all and wait until they have ended."""
        raise SystemExit(f"{type(self).__name__} leaves this workload out")


Connect = Callable[[Wanted], AbstractAsyncContextManager[Session]]
"""Spawns an agent, or a proxy with an agent behind it, and connects to it."""

Burst = Callable[[int], Awaitable[None]]


def client_main(connect: Connect) -> None:
    """Run the workload named on the command line, on the loop named there, and print its sample."""
    args = arguments()
    with asyncio.Runner(loop_factory=loop_factory(args.loop)) as runner:
        runner.run(asyncio.wait_for(_run(connect, args), WAIT_SECONDS + args.seconds * 2))


def agent_command(program: Path, wanted: Wanted) -> list[str]:
    """The command line of every Python agent: its loop, and how many more handlers it registers.

    With AGENT_SAMPLES in the environment its CPU time is sampled, and the counts are written to the file named there.
    """
    samples = os.environ.get("AGENT_SAMPLES")
    sampled = [str(Path(__file__).with_name("sampled.py")), samples] if samples else []
    return [sys.executable, *sampled, str(program), wanted.loop, str(wanted.handlers)]


async def _run(connect: Connect, args: argparse.Namespace) -> None:
    match args.workload:
        case "start":
            sample = await _starts(connect, args)
        case "pending":
            sample = await _pending(connect, args)
        case "idle":
            sample = await _idle(connect, args)
        case "agents":
            sample = await _agents(connect, args)
        case "proxied":
            sample = await _proxied(connect, args)
        case _:
            updates = Updates()
            async with _session(connect, Wanted(args.loop, updates.received, args.handlers)) as session:
                sample = await _with_one_agent(session, updates, args)
    report(sample)


@asynccontextmanager
async def _session(connect: Connect, wanted: Wanted) -> AsyncIterator[Session]:
    async with connect(wanted) as session:
        await session.initialize()
        await session.new_session()
        yield session


async def _with_one_agent(session: Session, updates: Updates, args: argparse.Namespace) -> Sample:
    match args.workload:
        case "sequential":
            return await _sequential(session, script.PROMPT_TEXT, args.seconds)
        case "nested":
            return await _sequential(session, script.CALL_TEXT, args.seconds)
        case "latency":
            return await _latency(session, args.seconds)
        case "pipelined":
            return await _pipelined(session, args.size, args.seconds)
        case "updates":
            return await _updates(session, updates, args.seconds)
        case "naps":
            return await _naps(session, args.size, args.seconds)
        case "storm":
            return await _storm(session, updates, args.size, args.seconds)
        case "soak":
            return await _soak(session, updates, args.seconds)
        case _:
            return await _echo(session, updates, args.size, args.seconds)


async def _sequential(session: Session, text: str, seconds: float) -> Sample:
    async def burst(count: int) -> None:
        prompt = session.prompt
        for _ in range(count):
            await prompt(text)

    return await _timed([session], burst, Sizing(50), seconds)


async def _latency(session: Session, seconds: float) -> Sample:
    times: list[int] = []

    async def burst(count: int) -> None:
        times.clear()
        prompt, text, now = session.prompt, script.PROMPT_TEXT, time.perf_counter_ns
        for _ in range(count):
            before = now()
            await prompt(text)
            times.append(now() - before)

    sample = await _timed([session], burst, Sizing(50), seconds)
    return sample | percentiles(times)


async def _pipelined(session: Session, in_flight: int, seconds: float) -> Sample:
    async def burst(count: int) -> None:
        await _workers(session, in_flight, count // in_flight)

    return await _timed([session], burst, Sizing(in_flight * 2, multiple_of=in_flight), seconds)


async def _workers(session: Session, how_many: int, prompts_each: int) -> None:
    async def worker() -> None:
        prompt, text = session.prompt, script.PROMPT_TEXT
        for _ in range(prompts_each):
            await prompt(text)

    await asyncio.gather(*(worker() for _ in range(how_many)))


async def _updates(session: Session, updates: Updates, seconds: float) -> Sample:
    async def burst(count: int) -> None:
        updates.count = 0
        await session.prompt(script.updates_text(count))
        updates.answered(count)
        while updates.count < count:
            await asyncio.sleep(0.001)

    sample = await _timed([session], burst, Sizing(1000), seconds)
    return sample | updates.facts()


async def _echo(session: Session, updates: Updates, size: int, seconds: float) -> Sample:
    text = script.echo_text(size)

    async def burst(count: int) -> None:
        for _ in range(count):
            await session.prompt(text)
            updates.take_echo(text)

    sample = await _timed([session], burst, Sizing(1), seconds)
    return sample | {"bytes": size * sample["count"]}


async def _naps(session: Session, at_once: int, seconds: float) -> Sample:
    """Counts in bursts: in each, `at_once` handlers wait a millisecond at the same time."""
    text = script.nap_text(1)

    async def nap() -> None:
        await session.prompt(text)

    async def burst(count: int) -> None:
        for _ in range(count):
            await asyncio.gather(*(nap() for _ in range(at_once)))

    return await _timed([session], burst, Sizing(1), seconds)


async def _storm(session: Session, updates: Updates, at_once: int, seconds: float) -> Sample:
    """Counts cancelled requests; the round trip at the end of a burst shows that the agent is through with them."""
    held = asyncio.Event()
    updates.on_parked = held.set

    async def burst(count: int) -> None:
        for _ in range(count // at_once):
            held.clear()
            await session.storm(at_once, held)
            await session.prompt(script.PROMPT_TEXT)

    return await _timed([session], burst, Sizing(at_once, multiple_of=at_once), seconds)


async def _soak(session: Session, updates: Updates, seconds: float) -> Sample:
    """A fixed rate, for as long as it is told; memory of both sides is read 120 times on the way."""
    memory: list[tuple[float, int, int]] = []
    text, sent, began = script.updates_text(SOAK_UPDATES), 0, time.monotonic()
    next_look = 0.0
    while (passed := time.monotonic() - began) < seconds:
        if passed >= next_look:
            memory.append((passed, resident_bytes() or 0, resident_bytes(session.agent_pid) or 0))
            next_look += seconds / 120
        updates.count = 0
        await session.prompt(text)
        updates.answered(SOAK_UPDATES)
        sent += 1
        await asyncio.sleep(max(0.0, began + sent / SOAK_RATE - time.monotonic()))
    return settled_sample(sent, time.monotonic() - began, memory) | updates.facts()


async def _timed(sessions: list[Session], burst: Burst, sizing: Sizing, seconds: float) -> Sample:
    for count in sizing.warm_up():
        await burst(count)
    count = sizing.count(seconds)
    measure = Measure(session.agent_pid for session in sessions)
    await burst(count)
    return measure.sample(count)


async def _agents(connect: Connect, args: argparse.Namespace) -> Sample:
    """One agent first, then `size` of them driven at once, each with the same number of requests in flight."""
    async with _many(connect, args.loop, 1) as sessions:
        alone = await _all_driven(sessions, args.seconds / 2)
    async with _many(connect, args.loop, args.size) as sessions:
        sample = await _all_driven(sessions, args.seconds)
    rate, rate_alone = sample["count"] / sample["seconds"], alone["count"] / alone["seconds"]
    cpu, cpu_alone = sample["client_cpu"] / sample["count"], alone["client_cpu"] / alone["count"]
    return sample | {"share_of_one": rate / rate_alone, "client_cpu_growth": cpu / cpu_alone}


async def _all_driven(sessions: list[Session], seconds: float) -> Sample:
    together = len(sessions) * IN_FLIGHT_PER_AGENT

    async def burst(count: int) -> None:
        each = count // together
        await asyncio.gather(*(_workers(session, IN_FLIGHT_PER_AGENT, each) for session in sessions))

    return await _timed(sessions, burst, Sizing(together * 2, multiple_of=together), seconds)


@asynccontextmanager
async def _many(connect: Connect, loop: str, how_many: int) -> AsyncIterator[list[Session]]:
    """Agents started at once, each in a task that enters and leaves its connection as a user's would."""
    sessions: list[Session] = []
    all_there, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with _session(connect, Wanted(loop, lambda _text: None)) as session:
            sessions.append(session)
            if len(sessions) == how_many:
                all_there.set()
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(how_many):
            group.create_task(hold())
        try:
            await all_there.wait()
            yield sessions
        finally:
            leave.set()


async def _proxied(connect: Connect, args: argparse.Namespace) -> Sample:
    """Requests without and with a proxy on the way, in turns; the agent's CPU in the sample is the proxy's."""
    async with (
        _session(connect, Wanted(args.loop, lambda _text: None)) as near,
        _session(connect, Wanted(args.loop, lambda _text: None, proxied=True)) as far,
    ):
        pairs: list[tuple[Sample, Sample]] = []
        for _ in range(PROXIED_TURNS):
            direct = await _pipelined(near, args.size, args.seconds / PROXIED_TURNS / 2)
            pairs.append((direct, await _pipelined(far, args.size, args.seconds / PROXIED_TURNS / 2)))
    direct, proxied = (_added_up(samples) for samples in zip(*pairs, strict=True))
    took, took_direct = proxied["seconds"] / proxied["count"], direct["seconds"] / direct["count"]
    sample = proxied | {"added_share": (took - took_direct) / took_direct, "cpu_share": None}
    if direct["agent_cpu"]:
        ends = (direct["client_cpu"] + direct["agent_cpu"]) / direct["count"]
        sample["cpu_share"] = proxied["agent_cpu"] / proxied["count"] / ends
    return sample


def _added_up(samples: Iterable[Sample]) -> Sample:
    parts = list(samples)
    return {key: sum(part[key] or 0 for part in parts) for key in parts[0]}


async def _starts(connect: Connect, args: argparse.Namespace) -> Sample:
    """From before the spawn to the first answer, in a client that is already running."""
    starts: list[float] = []
    for _ in range(args.size + 1):
        began = time.perf_counter()
        async with connect(Wanted(args.loop, lambda _text: None)) as session:
            await session.initialize()
            starts.append(time.perf_counter() - began)
    return median_ms(starts)


async def _idle(connect: Connect, args: argparse.Namespace) -> Sample:
    """Growth of this process with `size` more connections on which nothing happens; one went before, for the caches."""
    async with _many(connect, args.loop, 1):
        pass
    gc.collect()
    before = resident_bytes()
    async with _many(connect, args.loop, args.size):
        gc.collect()
        after = resident_bytes()
    bytes_each = None if before is None or after is None else (after - before) / args.size
    return {"count": args.size, "resident_per_connection": bytes_each}


async def _pending(connect: Connect, args: argparse.Namespace) -> Sample:
    """What requests hold while nobody answers them, each awaited by a task of its own, all of them written.

    Twice: resident memory first, in a process that did nothing else yet; then what the allocator itself was asked for.
    """
    resident = await _parked(connect, args, resident_bytes)
    tracemalloc.start()
    traced = await _parked(connect, args, lambda: tracemalloc.get_traced_memory()[0])
    return {"count": args.size, "resident_per_request": resident, "traced_per_request": traced}


async def _parked(connect: Connect, args: argparse.Namespace, read_bytes: Callable[[], int | None]) -> float | None:
    updates, count = Updates(), args.size
    text = script.park_text(count)

    async def wait_for_answer() -> None:
        await session.prompt(text)

    async with _session(connect, Wanted(args.loop, updates.received)) as session:
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
