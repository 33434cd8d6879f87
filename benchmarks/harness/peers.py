"""The peers: which programs they are, under what they run, and which versions that means."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

__all__ = ["GROUPS", "Peer", "known_peers", "missing", "versions"]

BENCHMARKS = Path(__file__).resolve().parent.parent
PEERS = Path(os.environ.get("ACPRT_PEERS") or BENCHMARKS.parent / ".peers")
INCUMBENT_PYTHON = PEERS / "python" / "bin" / "python"
"""Where `make peers` installs the incumbent and uvloop; the others are where `make bench-setup` installs them."""

GROUPS = {
    "core": ("acprt", "incumbent", "limit", "blocking"),
    "stock": ("acprt-stock", "incumbent-stock", "limit-stock"),
    "acp": ("acprt-acp", "acprt-session"),
    "growth": ("acprt", "incumbent", "limit"),
}
"""Names that stand for several peers."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """One column: a client program that spawns its own agent program. `packages` are what its versions are read from.

    `lacks` are the workloads (of the client programs) that its library has no way to do or that its programs leave out.
    """

    name: str
    title: str
    program: str
    interpreter: str
    loop: str = "uvloop"
    imports: str
    packages: tuple[str, ...]
    install: str = "make bench-setup"
    lacks: tuple[str, ...] = ("proxied", "handlers")
    node_packages: str = ""

    @property
    def is_python(self) -> bool:
        return not self.node_packages

    def client_command(self) -> list[str]:
        flags = [] if self.is_python else ["--expose-gc"]
        return [self.interpreter, *flags, str(BENCHMARKS / "peers" / self.program), "--loop", self.loop]

    def import_command(self) -> list[str]:
        """What prints how many milliseconds the import takes in a fresh interpreter; its own start is not counted."""
        if self.is_python:
            program = (
                "import time; began = time.perf_counter()\n"
                f"import {self.imports}\n"
                "print('{\"ms\":', (time.perf_counter() - began) * 1000, '}')"
            )
            return [self.interpreter, "-c", program]
        program = (
            f"const {{ load }} = await import({json.dumps(str(BENCHMARKS / 'peers' / 'node_packages.mjs'))});"
            "const began = performance.now();"
            f"await load({json.dumps(self.imports)});"
            "console.log(JSON.stringify({ ms: performance.now() - began }));"
        )
        return [self.interpreter, "--input-type=module", "-e", program]

    def environment(self) -> dict[str, str]:
        """Ours without Python's own switches (debug modes, coverage and the like slow peers down unequally)."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE_", "NODE_"))}
        if self.interpreter == sys.executable:
            env["PYTHONPATH"] = str(BENCHMARKS.parent)
        if self.node_packages:
            env["BENCH_NODE"] = self.node_packages
        return env

    def on_stock(self) -> Peer:
        """The same on stock asyncio; importing it would be no different."""
        return msgspec.structs.replace(
            self,
            name=f"{self.name}-stock",
            title=f"{self.title}, stock asyncio",
            loop="asyncio",
            lacks=(*self.lacks, "import"),
        )


def known_peers(incumbent_python: str = "") -> list[Peer]:
    """All of them, in the order of a round."""
    acprt = Peer(
        name="acprt",
        title="acprt",
        program="acprt_client.py",
        interpreter=sys.executable,
        imports="acprt",
        packages=("acprt", "msgspec", "uvloop"),
        lacks=(),
    )
    incumbent = Peer(
        name="incumbent",
        title="agent-client-protocol",
        program="incumbent_client.py",
        interpreter=incumbent_python or str(INCUMBENT_PYTHON),
        imports="acp",
        packages=("agent-client-protocol", "pydantic", "uvloop"),
        install="make peers",
    )
    limit = Peer(
        name="limit",
        title="limit",
        program="limit_client.py",
        interpreter=sys.executable,
        imports="asyncio, msgspec, uvloop",
        packages=("msgspec", "uvloop"),
        lacks=("handlers",),
    )
    blocking = Peer(
        name="blocking",
        title="blocking",
        program="blocking_client.py",
        interpreter=sys.executable,
        loop="asyncio",
        imports="msgspec",
        packages=("msgspec",),
        lacks=("proxied", "handlers", "pending", "idle", "naps", "storm", "agents", "soak"),
    )
    wing = Peer(
        name="acprt-acp",
        title="acprt.acp",
        program="acp_wing_client.py",
        interpreter=sys.executable,
        imports="acprt.acp",
        packages=("acprt", "msgspec", "uvloop"),
    )
    session = Peer(
        name="acprt-session",
        title="acprt.acp sessions",
        program="acp_session_client.py",
        interpreter=sys.executable,
        imports="acprt.acp",
        packages=("acprt", "msgspec", "uvloop"),
        lacks=("proxied", "handlers", "pipelined", "pending", "idle", "naps", "storm", "agents", "start", "import"),
    )
    return [
        acprt,
        incumbent,
        limit,
        blocking,
        wing,
        session,
        acprt.on_stock(),
        incumbent.on_stock(),
        limit.on_stock(),
        *_others(),
    ]


def _others() -> list[Peer]:
    def python_of(package: str) -> str:
        return str(PEERS / "bench" / package / "bin" / "python")

    node = shutil.which("node") or "node"
    on_node = ("proxied", "handlers", "idle", "agents", "soak")
    return [
        Peer(
            name="mcp",
            title="mcp",
            program="mcp_client.py",
            interpreter=python_of("mcp"),
            imports="mcp, mcp.client.stdio",
            packages=("mcp", "pydantic", "anyio", "uvloop"),
        ),
        Peer(
            name="pygls",
            title="pygls",
            program="pygls_client.py",
            interpreter=python_of("pygls"),
            loop="asyncio",  # its server makes its own loop
            imports="pygls.client",
            packages=("pygls", "cattrs"),
        ),
        Peer(
            name="pylsp",
            title="python-lsp-jsonrpc",
            program="pylsp_client.py",
            interpreter=python_of("python-lsp-jsonrpc"),
            loop="asyncio",  # threads, no loop
            imports="pylsp_jsonrpc.endpoint, pylsp_jsonrpc.streams",
            packages=("python-lsp-jsonrpc", "ujson"),
            lacks=("proxied", "handlers", "idle", "storm", "agents", "soak"),
        ),
        Peer(
            name="acp-node",
            title="@agentclientprotocol/sdk",
            program="acp_node_client.mjs",
            interpreter=node,
            imports="@agentclientprotocol/sdk",
            packages=("@agentclientprotocol/sdk", "zod"),
            install="make peers",
            lacks=on_node,
            node_packages=str(PEERS / "node"),
        ),
        Peer(
            name="vscode-jsonrpc",
            title="vscode-jsonrpc",
            program="vscode_client.mjs",
            interpreter=node,
            imports="vscode-jsonrpc/node",
            packages=("vscode-jsonrpc",),
            lacks=on_node,
            node_packages=str(PEERS / "bench" / "node"),
        ),
    ]


def missing(peer: Peer) -> str | None:
    """Why this peer cannot run here, or None."""
    if shutil.which(peer.interpreter) is None:
        return f"there is no {peer.interpreter}" + (f": run `{peer.install}`" if peer.is_python else "")
    if peer.node_packages and not (Path(peer.node_packages) / "node_modules" / peer.packages[0]).is_dir():
        return f"{peer.packages[0]} is not in {peer.node_packages}: run `{peer.install}`"
    command = [*peer.client_command(), "sequential", "--help"]
    outcome = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=60, check=False)
    return None if outcome.returncode == 0 else f"its client does not start: {_last_line(outcome.stderr)}"


def versions(peer: Peer) -> dict[str, str]:
    """The versions of the interpreter and of what the peer stands on, as its own environment tells them."""
    return _python_versions(peer) if peer.is_python else _node_versions(peer)


def _python_versions(peer: Peer) -> dict[str, str]:
    program = (
        "import sys, json, platform, importlib.metadata as m\n"
        "found = {'python': platform.python_version()}\n"
        "for name in sys.argv[1:]:\n"
        "    try: found[name] = m.version(name)\n"
        "    except m.PackageNotFoundError: found[name] = 'source'\n"
        "print(json.dumps(found))"
    )
    command = [peer.interpreter, "-c", program, *peer.packages]
    outcome = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, str] = json.loads(outcome.stdout)
    return found


def _node_versions(peer: Peer) -> dict[str, str]:
    command = [peer.interpreter, "--version"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = {"node": outcome.stdout.strip().removeprefix("v")}
    for package in peer.packages:
        about = Path(peer.node_packages) / "node_modules" / package / "package.json"
        found[package] = json.loads(about.read_bytes())["version"] if about.exists() else "?"
    return found


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
