"""Where the time goes: acprt's own programs, sampled while they run a workload, by room of the house."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness.peers import Peer, known_peers
from benchmarks.harness.report import table

__all__ = ["profile_sections", "take_profile"]

PEERS = Path(__file__).resolve().parent.parent / "peers"
WORKLOADS = {"w1": ["sequential"], "w2-64": ["pipelined", "--size", "64"], "w3": ["updates"]}
SHOWN_AT_LEAST = 0.02
"""Smaller shares are added up as the rest: they are a few samples each."""


def take_profile(seconds: float) -> dict[str, dict[str, float]]:
    """Shares of the CPU samples by room, for both sides of each workload: `{"w1, client": {"wire/frames": 0.1}}`."""
    acprt = next(peer for peer in known_peers() if peer.name == "acprt")
    shares: dict[str, dict[str, float]] = {}
    for key, arguments in WORKLOADS.items():
        with tempfile.TemporaryDirectory() as folder:
            client, agent = Path(folder, "client.json"), Path(folder, "agent.json")
            _run(acprt, arguments, seconds, client, agent)
            shares[f"{key}, client"] = _shares(client)
            shares[f"{key}, agent"] = _shares(agent)
    return shares


def profile_sections(shares: dict[str, dict[str, float]], about: list[str]) -> dict[str, str]:
    """A table: a row per room, the largest first, a column per program and workload."""
    rooms = {room for by_room in shares.values() for room in by_room}
    by_size = sorted(rooms, key=lambda room: -sum(by_room.get(room, 0.0) for by_room in shares.values()))
    rows = [
        [room, *(f"{by_room[room]:.0%}" if room in by_room else "" for by_room in shares.values())] for room in by_size
    ]
    return {
        "about": "\n".join(f"- {line}" for line in about),
        "profile": table(["room", *shares], rows),
    }


def _run(peer: Peer, arguments: list[str], seconds: float, client: Path, agent: Path) -> None:
    command = [
        sys.executable,
        str(PEERS / "sampled.py"),
        str(client),
        str(PEERS / peer.program),
        *["--loop", peer.loop, *arguments, "--seconds", str(seconds)],
    ]
    env = peer.environment() | {"AGENT_SAMPLES": str(agent)}
    outcome = subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds + 120, check=False)
    if outcome.returncode or not (client.exists() and agent.exists()):
        raise RuntimeError(f"no profile of {' '.join(arguments)}: {outcome.stderr.strip()[-300:]}")


def _shares(path: Path) -> dict[str, float]:
    counts: dict[str, int] = json.loads(path.read_bytes())
    total = sum(counts.values()) or 1
    shares = {room: count / total for room, count in counts.items()}
    large = {
        room: share for room, share in sorted(shares.items(), key=lambda pair: -pair[1]) if share >= SHOWN_AT_LEAST
    }
    rest = 1.0 - sum(large.values())
    return large | {"the rest": rest} if rest > 0 else large
