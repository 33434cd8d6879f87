"""The peers: which programs they are, under which Python and loop they run, and which versions that means."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

__all__ = ["INCUMBENT_PYTHON", "Peer", "known_peers", "missing", "versions"]

BENCHMARKS = Path(__file__).resolve().parent.parent
PEERS = Path(os.environ.get("ACPRT_PEERS") or BENCHMARKS.parent / ".peers")
INCUMBENT_PYTHON = PEERS / "python" / "bin" / "python"
"""Where `make peers` installs the incumbent and uvloop, by package name."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One column: a client program that spawns its own agent program."""

    name: str
    title: str
    program: str
    python: str
    loop: str
    imports: str
    packages: tuple[str, ...]

    def client_command(self) -> list[str]:
        return [self.python, str(BENCHMARKS / "peers" / self.program), "--loop", self.loop]

    def environment(self) -> dict[str, str]:
        """Ours without Python's own switches (debug modes, coverage and the like slow peers down unequally)."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE_"))}
        return env | {"PYTHONPATH": str(BENCHMARKS.parent)} if self.program == "acprt_client.py" else env


def known_peers(incumbent_python: str, *, stock: bool) -> list[Peer]:
    """In the order of a round; `stock` adds acprt and the incumbent on stock asyncio."""
    acprt = Peer(
        name="acprt",
        title="acprt",
        program="acprt_client.py",
        python=sys.executable,
        loop="uvloop",
        imports="acprt",
        packages=("acprt", "msgspec", "uvloop"),
    )
    incumbent = Peer(
        name="incumbent",
        title="incumbent",
        program="incumbent_client.py",
        python=incumbent_python,
        loop="uvloop",
        imports="acp",
        packages=("agent-client-protocol", "pydantic", "uvloop"),
    )
    limit = Peer(
        name="limit",
        title="limit",
        program="limit_client.py",
        python=sys.executable,
        loop="uvloop",
        imports="asyncio, msgspec, uvloop",
        packages=("msgspec", "uvloop"),
    )
    blocking = Peer(
        name="blocking",
        title="blocking",
        program="blocking_client.py",
        python=sys.executable,
        loop="uvloop",
        imports="msgspec",
        packages=("msgspec",),
    )
    peers = [acprt, incumbent, limit, blocking]
    if stock:
        for peer in (acprt, incumbent):
            changes = {"name": f"{peer.name}-stock", "title": f"{peer.title}, stock asyncio", "loop": "asyncio"}
            peers.append(msgspec.structs.replace(peer, **changes))
    return peers


def missing(peer: Peer) -> str | None:
    """Why this peer cannot run here, or None."""
    if peer.name.startswith("incumbent") and not Path(peer.python).exists():
        return f"there is no {peer.python}: run `make peers`"
    command = [peer.python, str(BENCHMARKS / "peers" / peer.program), "--help"]
    outcome = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=60, check=False)
    return None if outcome.returncode == 0 else f"its client does not start: {_last_line(outcome.stderr)}"


def versions(peer: Peer) -> dict[str, str]:
    """The versions of Python and of what the peer stands on, as its own environment tells them."""
    program = (
        "import sys, json, platform, importlib.metadata as m\n"
        "found = {'python': platform.python_version()}\n"
        "for name in sys.argv[1:]:\n"
        "    try: found[name] = m.version(name)\n"
        "    except m.PackageNotFoundError: found[name] = 'source'\n"
        "print(json.dumps(found))"
    )
    command = [peer.python, "-c", program, *peer.packages]
    outcome = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, str] = json.loads(outcome.stdout)
    return found


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
