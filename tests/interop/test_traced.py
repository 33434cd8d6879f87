"""`acprt trace` in front of agents of other projects, `acprt show` and `acprt replay` of what it recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import acprt
from tests.cli.running import PROGRAM
from tests.cli.running import acprt as command
from tests.interop.real_agents import AGENTS
from tests.interop.turn import PEERS, ROOT, session_with

TRACED = [each for each in AGENTS if each.name in ("opencode", "claude-agent-acp")]


def behind_the_tee(trace: Path, *agent: object, env: dict[str, str], cwd: str = "/") -> acprt.AgentProcess:
    """That agent, with every byte passing through `acprt trace`."""
    words = [*PROGRAM, "trace", "-o", str(trace), "--no-redact", "--stderr", "--", *map(str, agent)]
    return acprt.AgentProcess(*words, env={"PYTHONPATH": str(ROOT)} | env, inherit_env=False, cwd=cwd)


def check(trace: Path, *prompts: str) -> list[dict[str, Any]]:
    """Everything is a message, every request is paired, and `show` shows each; the records."""
    records = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    wire = [each for each in records if each["type"] not in ("stderr", "process")]
    assert {each["type"] for each in wire} == {"request", "response", "notification"}
    assert {each["protocol"] for each in wire} == {"acp"}
    asked = sum(each["type"] == "request" for each in wire)
    answered = [each for each in wire if each["type"] == "response"]
    assert len(answered) == asked
    assert all(each["latency"] >= 0 and each["method"] for each in answered)
    done = command("show", str(trace))
    assert done.exit_code == 0
    for text in prompts:
        assert f" {text}" in done.stdout
    return records


@pytest.mark.interop
def test_agent_of_the_python_package(run, python_package, tmp_path) -> None:
    """Its turn is as without the tee; a replay says the same."""
    trace = tmp_path / "trace.jsonl"
    agent = [python_package, PEERS / "python_agent.py"]

    async def main() -> None:
        async with session_with(behind_the_tee(trace, *agent, env={"PATH": os.environ["PATH"]})) as (turns, seen):
            assert await turns.prompt("ASK hello") == (["yes", "hello"], "end_turn")
            assert await turns.cancelled_prompt("WAIT never") == (["WAIT"], "cancelled")
            assert len(seen.permissions) == 1

    run(main(), timeout=60)
    check(trace, "ASK hello", "WAIT never", "cancelled")
    done = command("replay", str(trace), "--", *map(str, agent))
    assert (done.exit_code, done.stdout) == (0, "")


@pytest.mark.node
@pytest.mark.timeout(120)
def test_agent_of_the_node_package(run, node_package, tmp_path) -> None:
    """The same."""
    trace = tmp_path / "trace.jsonl"
    agent = ["env", f"ACPRT_NODE_PEERS={node_package}", "node", PEERS / "node_agent.mjs"]

    async def main() -> None:
        async with session_with(behind_the_tee(trace, *agent, env={"PATH": os.environ["PATH"]})) as (turns, _):
            assert await turns.prompt("ASK hello") == (["yes", "hello"], "end_turn")

    run(main(), timeout=60)
    check(trace, "ASK hello")
    done = command("replay", str(trace), "--", *map(str, agent))
    assert (done.exit_code, done.stdout) == (0, "")


@pytest.mark.real_peers
@pytest.mark.timeout(200)
@pytest.mark.parametrize("agent", TRACED, ids=lambda agent: agent.name)
def test_whole_agent(run, agent, set_up_here, tmp_path) -> None:
    """Traced, shown, made a page and replayed: its answers are those of the record."""
    here = set_up_here(agent)
    trace = tmp_path / "trace.jsonl"

    async def main() -> None:
        process = behind_the_tee(trace, *here.run, env=here.env, cwd=str(here.cwd))
        async with session_with(process, str(here.cwd), agent.mode) as (turns, seen):
            assert (await turns.prompt("FAKE:TEXT"))[1] == "end_turn"
            assert (await turns.prompt("FAKE:TOOL"))[1] == "end_turn"
            assert len(seen.permissions) == 1

    run(main(), timeout=150)
    check(trace, "FAKE:TEXT", "FAKE:TOOL")
    page = command("show", str(trace), "--html", str(tmp_path / "page.html"))
    assert page.exit_code == 0
    words = [f"{name}={value}" for name, value in here.env.items()]
    done = command("replay", str(trace), "--answers-only", "--cwd", str(here.cwd), "--", "env", "-i", *words, *here.run)
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
