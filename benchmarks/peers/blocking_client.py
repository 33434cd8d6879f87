"""The blocking client: the same workloads without a loop, so no futures and no tasks either."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import script
import wire
from blocking_pipe import BlockingPipe
from measure import Measure, Sample, Sizing, Updates, arguments, median_ms, percentiles, report

AGENT = Path(__file__).with_name("blocking_agent.py")
FILL_AT_MOST = 100
"""Requests of one write while the pipeline fills: both processes block in `write`, so neither may outgrow the pipe."""


class BlockingSession:
    """One connection; every method returns when the answers it waits for have been read."""

    def __init__(self, pipe: BlockingPipe, pid: int, updates: Updates) -> None:
        self.agent_pid = pid
        self._pipe = pipe
        self._updates = updates
        self._decode = msgspec.json.Decoder(wire.Inbound).decode
        self._last_id = 0

    def initialize(self) -> None:
        self._pipe.write([wire.initialize_message(self._new_id())])
        self._read_answers(1)

    def new_session(self) -> None:
        self._pipe.write([wire.new_session_message(self._new_id())])
        self._read_answers(1)

    def prompt(self, text: str) -> None:
        self._pipe.write([wire.prompt_message(self._new_id(), text)])
        self._read_answers(1)

    def prompts(self, count: int, in_flight: int) -> None:
        """A sliding window: for each answer read the next request is written, joined per read."""
        text = script.PROMPT_TEXT
        sent = answered = 0
        while sent < in_flight:
            few = min(FILL_AT_MOST, in_flight - sent)
            self._pipe.write([wire.prompt_message(self._new_id(), text) for _ in range(few)])
            sent += few
        while answered < count:
            came = self._read_answers(1)
            answered += came
            if few := min(came, count - sent):
                self._pipe.write([wire.prompt_message(self._new_id(), text) for _ in range(few)])
                sent += few

    def _read_answers(self, at_least: int) -> int:
        came = 0
        while came < at_least:
            lines = self._pipe.read_lines()
            if not lines:
                raise EOFError("the agent has gone")
            for line in lines:
                message = self._decode(line)
                if message.params is not None:
                    self._updates.received(wire.text_of_update(message.params))
                else:
                    came += 1
        return came

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


@contextmanager
def connect(updates: Updates) -> Iterator[BlockingSession]:
    command = [sys.executable, str(AGENT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        yield BlockingSession(BlockingPipe(child.stdout.fileno(), child.stdin.fileno()), child.pid, updates)


def main() -> None:
    args = arguments()
    updates = Updates()
    if args.workload == "start":
        report(starts(updates, args.size))
        return
    with connect(updates) as session:
        session.initialize()
        session.new_session()
        report(sample_of(session, updates, args.workload, args.size, args.seconds))


def starts(updates: Updates, count: int) -> Sample:
    times: list[float] = []
    for _ in range(count + 1):
        began = time.perf_counter()
        with connect(updates) as session:
            session.initialize()
            times.append(time.perf_counter() - began)
    return median_ms(times)


def sample_of(session: BlockingSession, updates: Updates, workload: str, size: int, seconds: float) -> Sample:
    prompt, text = session.prompt, script.PROMPT_TEXT
    times: list[int] = []

    def sequential(count: int) -> None:
        for _ in range(count):
            prompt(text)

    def latency(count: int) -> None:
        times.clear()
        now = time.perf_counter_ns
        for _ in range(count):
            before = now()
            prompt(text)
            times.append(now() - before)

    def pipelined(count: int) -> None:
        session.prompts(count, size)

    def stream(count: int) -> None:
        updates.count = 0
        prompt(script.updates_text(count))
        updates.answered(count)

    def echo(count: int) -> None:
        big = script.echo_text(size)
        for _ in range(count):
            prompt(big)
            updates.take_echo(big)

    match workload:
        case "sequential":
            return timed(session, sequential, Sizing(50), seconds)
        case "latency":
            return timed(session, latency, Sizing(50), seconds) | percentiles(times)
        case "pipelined":
            return timed(session, pipelined, Sizing(size * 2, multiple_of=size), seconds)
        case "updates":
            return timed(session, stream, Sizing(1000), seconds) | updates.facts()
        case "echo":
            sample = timed(session, echo, Sizing(1), seconds)
            return sample | {"bytes": size * sample["count"]}
        case _:
            raise SystemExit(f"the blocking peer has no workload {workload!r}: it has nothing that could wait")


def timed(session: BlockingSession, burst: Callable[[int], None], sizing: Sizing, seconds: float) -> Sample:
    for count in sizing.warm_up():
        burst(count)
    count = sizing.count(seconds)
    measure = Measure(session.agent_pid)
    burst(count)
    return measure.sample(count)


if __name__ == "__main__":
    main()
