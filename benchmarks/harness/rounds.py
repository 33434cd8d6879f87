"""One interleaved run: in every round each workload is sampled once per peer, one peer after the other (A B C D).

Peers are thus compared within seconds of each other; what the machine does over minutes hits all of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import msgspec

from benchmarks.harness.machine import ForeignLoad, quietest_core
from benchmarks.harness.peers import Peer
from benchmarks.harness.workloads import Sample, Workload

__all__ = ["Options", "Record", "run_rounds"]

NOISY_SHARE = 0.15
"""A sample during which others had more than this share of all cores is taken once more; the quieter one is kept."""

SAMPLE_SECONDS_AT_MOST = 120.0
IMPORTS_PER_SAMPLE = 5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How many rounds, how long the timed part of a sample should be, and whether a noisy one is taken once more."""

    rounds: int
    seconds: float
    repeat_noisy: bool


class Record(msgspec.Struct, kw_only=True):
    """One kept sample, or the reason why there is none."""

    round: int
    workload: str
    peer: str
    sample: Sample | None = None
    error: str = ""
    foreign_share: float | None = None
    repeated: bool = False


def run_rounds(peers: list[Peer], chosen: list[Workload], options: Options) -> Iterator[Record]:
    """Yields every record as it is taken."""
    for number in range(options.rounds):
        for workload in chosen:
            core = quietest_core() if workload.pinned else None  # one for all peers of the round: cores may differ
            for peer in peers:
                if not workload.sample_of and workload.can_be_done_by(peer):
                    yield _record(number, workload, peer, options, core)


def _record(number: int, workload: Workload, peer: Peer, options: Options, core: int | None) -> Record:
    kept = Record(round=number, workload=workload.key, peer=peer.name)
    for attempt in range(2):
        load = ForeignLoad()
        try:
            sample = _sample(peer, workload, options, core)
        except SampleFailed as failure:
            kept.error = str(failure)
            return kept
        share = load.share()
        if attempt == 0 or (share or 0.0) < (kept.foreign_share or 0.0):
            kept.sample, kept.foreign_share = sample, share
        kept.repeated = attempt > 0
        if not options.repeat_noisy or share is None or share <= NOISY_SHARE:
            break
    return kept


class SampleFailed(Exception):
    """A client program did not give its sample: the text says which and why."""


def _sample(peer: Peer, workload: Workload, options: Options, core: int | None) -> Sample:
    if workload.arguments == ("import",):
        return _import_sample(peer, workload)
    seconds = workload.seconds or options.seconds
    command = [*peer.client_command(), *workload.arguments, "--seconds", str(seconds)]
    return _run(peer, workload, command, core, SAMPLE_SECONDS_AT_MOST + seconds)


def _import_sample(peer: Peer, workload: Workload) -> Sample:
    """Median of a few fresh interpreters."""
    runs = (
        _run(peer, workload, peer.import_command(), None, SAMPLE_SECONDS_AT_MOST) for _ in range(IMPORTS_PER_SAMPLE)
    )
    times = sorted(run["ms"] for run in runs)
    return {"count": IMPORTS_PER_SAMPLE, "ms": times[len(times) // 2]}


def _run(peer: Peer, workload: Workload, command: list[str], core: int | None, seconds_at_most: float) -> Sample:
    child = subprocess.Popen(
        command,
        env=peer.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),  # the agent inherits it
    )
    try:
        output, errors = child.communicate(timeout=seconds_at_most)
    except subprocess.TimeoutExpired:
        raise SampleFailed(f"{peer.name}, {workload.key}: no sample within {seconds_at_most:.0f} s") from None
    finally:
        if child.poll() is None:  # too slow, or this run was interrupted; an agent ends with its stdin
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    try:
        sample: Sample = json.loads(output)
    except json.JSONDecodeError:
        reason = errors.strip().splitlines()[-1:] or ["it wrote no sample and no error"]
        raise SampleFailed(f"{peer.name}, {workload.key}: exit {child.returncode}: {reason[0][:300]}") from None
    return sample
