"""`acprt check` on agents that nobody here wrote: which rules they break is known, and it finds those and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.interop.real_agents import AGENTS, RealAgent
from tests.interop.turn import PEERS, ROOT

SECONDS = 240


def broken_rules(*words: str, cwd: Path = ROOT) -> set[str]:
    """The rules that agents must keep and this one does not. The report has a frame for each of them."""
    done = subprocess.run(
        [sys.executable, "-m", "acprt", "check", "--json", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert sum(result["verdict"] == "pass" for result in report["results"]) > 40, report
    broken = {r["id"] for r in report["results"] if r["verdict"] == "fail" and r["level"] == "must"}
    assert done.returncode == (1 if broken else 0)
    return broken


@pytest.mark.interop
@pytest.mark.timeout(SECONDS)
def test_echo_agent_of_the_python_package(python_package, python_examples) -> None:
    """It answers any version with the same one."""
    agent = [python_package, str(python_examples / "echo_agent.py")]
    assert broken_rules("--timeout", "20", "--", *agent) == {"handshake.future"}


@pytest.mark.node
@pytest.mark.timeout(SECONDS)
def test_agent_of_the_node_package(node_package) -> None:
    """What it does not do right is this agent's, not the package's: any version is its own, a folder is a session."""
    agent = ["env", f"ACPRT_NODE_PEERS={node_package}", "node", str(PEERS / "node_agent.mjs")]
    found = broken_rules("--timeout", "20", "--prompt", "a b", "--slow-prompt", "WAIT", "--", *agent)
    assert found == {"handshake.future", "sessions.distinct"}


KNOWN = {
    "opencode": set(),
    "claude-agent-acp": set(),
    "codex-acp": {
        "requests.ids",  # no negative ones
        "requests.notification",  # answered, without an id
        "requests.protocol_notification",
        "requests.extension",
        "lines.malformed",  # answered without an id
        "output.responses",
        "ends.eof",
    },
    "qwen-code": {"output.extensions"},
    "gemini-cli": {"sessions.load"},
}


@pytest.mark.real_peers
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_real_agents(set_up_here, agent: RealAgent) -> None:
    """Whole ones, with a scripted model."""
    here = set_up_here(agent)
    command = ["env", "-i", *(f"{name}={value}" for name, value in here.env.items()), *here.run]
    options = ["--prompt", "FAKE:TEXT", "--slow-prompt", "FAKE:SLOW", "--timeout", "30", "--cwd", str(here.cwd)]
    assert broken_rules(*options, "--", *command) == KNOWN[agent.name]
    if agent.speaks_v2:
        assert broken_rules("--v2", *options, "--", *command) == set()
