"""Full agents, installed and configured by hand, driven through turns. Never part of CI.

ACPRT_REAL_PEERS names a folder with one NAME.json for each agent: `{"run": [its command], "env": {all of its
environment}, "cwd": "its workspace"}`, and if the default does not suit it `"prompt"` and `"long_prompt"`, which should
take seconds to answer. The agent must be able to answer: with a model at hand, or a scripted one in its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from tests.interop.turn import ROOT, session_with

FOLDER = os.environ.get("ACPRT_REAL_PEERS")
AGENTS = sorted(Path(FOLDER).glob("*.json")) if FOLDER else []
SECONDS = 120

pytestmark = [
    pytest.mark.real_peers,
    pytest.mark.timeout(2 * SECONDS),
    pytest.mark.skipif(not AGENTS, reason="ACPRT_REAL_PEERS names no folder with agents"),
    pytest.mark.parametrize("description", AGENTS, ids=lambda path: path.stem),
]


class Installed:
    """One agent, as its file describes it."""

    def __init__(self, description: Path) -> None:
        about: dict[str, Any] = json.loads(description.read_text(encoding="utf-8"))
        self.run: list[str] = about["run"]
        self.env: dict[str, str] = about["env"]
        self.cwd: str = about["cwd"]
        self.prompt: str = about.get("prompt", "Say hello.")
        self.long_prompt: str = about.get("long_prompt", "Count slowly to one thousand, in words.")

    def process(self) -> acprt.AgentProcess:
        return acprt.AgentProcess(*self.run, env=self.env, inherit_env=False, cwd=self.cwd)


def running_in_group(group: int) -> list[str]:
    """What is alive in a process group; zombies that nobody reaped yet are not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, _, fields = stat.read_text().rpartition(")")
            state, _, of_group = fields.split()[:3]
            if int(of_group) == group and state != "Z":
                found.append(f"{name}) {state}")
    return found


def test_whole_turn(run, description) -> None:
    """Text arrives, the turn ends, and nothing of the agent is left afterwards."""
    agent = Installed(description)

    async def main() -> None:
        async with session_with(agent.process(), agent.cwd) as (turns, _):
            texts, stop_reason = await turns.prompt(agent.prompt)
            group = turns.cx.status().child
        assert "".join(texts).strip()
        assert stop_reason == "end_turn"
        assert group is not None
        assert not running_in_group(group.pid)

    run(main(), timeout=SECONDS)


def test_cancelled_turn_and_the_next_one(run, description) -> None:
    """`session/cancel` at the first text ends the turn, and the session goes on."""
    agent = Installed(description)

    async def main() -> None:
        async with session_with(agent.process(), agent.cwd) as (turns, _):
            _, stop_reason = await turns.cancelled_prompt(agent.long_prompt)
            assert stop_reason == "cancelled"
            _, stop_reason = await turns.prompt(agent.prompt)
            assert stop_reason == "end_turn"

    run(main(), timeout=SECONDS)


def test_example_drives_it(description) -> None:
    """`examples/raw_prompt.py "CMD" "text"` works with any command."""
    agent = Installed(description)
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "examples" / "raw_prompt.py"),
            "--cwd",
            agent.cwd,
            shlex.join(agent.run),
            agent.prompt,
        ],
        env={**agent.env, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.stdout.endswith("\n[end_turn]\n"), done.stderr
    assert done.returncode == 0
