"""The `acprt` command with agents of other projects: those of the SDKs, and whole ones with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.cli.running import ROOT, acprt, acprt_program
from tests.interop.peers.fake_model import TOUCHED, WORDS
from tests.interop.real_agents import AGENTS
from tests.interop.turn import PEERS

SECONDS = 100.0


@pytest.mark.interop
class TestPythonPackage:
    """Agents on the PyPI package `agent-client-protocol`."""

    def test_prompt_shows_what_its_echo_agent_says(self, python_package, python_examples) -> None:
        result = acprt("prompt", "hello", "--", python_package, str(python_examples / "echo_agent.py"))

        assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr

    def test_prompt_answers_its_permission_request(self, python_package) -> None:
        agent = [python_package, str(PEERS / "python_agent.py")]
        result = acprt("prompt", "ASK", "--permission", "allow", "--", *agent)

        assert result.exit_code == 0, result.stderr
        assert result.stderr.startswith("? ")

    def test_call_prints_its_handshake(self, python_package, python_examples) -> None:
        agent = [python_package, str(python_examples / "echo_agent.py")]
        result = acprt("call", "initialize", '{"protocolVersion": 1}', "--", *agent)

        assert json.loads(result.stdout)["protocolVersion"] == 1


@pytest.mark.real_peers
@pytest.mark.timeout(3 * SECONDS)
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_whole_agents_are_prompted_and_called(agent, set_up_here) -> None:
    """A text, a tool that is allowed and one that is not, a model that fails, and a raw call."""
    here = set_up_here(agent)
    command = json.dumps({"command": here.run[0], "args": here.run[1:], "env": here.env})
    where = ["--cwd", str(here.cwd), *(["--mode", agent.mode] if agent.mode else []), "--timeout", str(SECONDS)]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        nothing_of_this_machine = {"PATH": os.defpath, "PYTHONPATH": str(ROOT)}
        return acprt_program(*words, env=nothing_of_this_machine, timeout=SECONDS)

    result = run("prompt", "FAKE:TEXT", *where, "--", command)
    assert result.returncode == 0, result.stderr
    assert "".join(WORDS) in result.stdout

    result = run("prompt", "FAKE:TOOL", *where, "--", command)
    assert "see --permission" in result.stderr
    assert not (here.cwd / TOUCHED).exists()

    result = run("prompt", "FAKE:TOOL", "--permission", "allow", *where, "--", command)
    assert result.returncode == 0, result.stderr
    assert (here.cwd / TOUCHED).exists()

    result = run("call", "initialize", '{"protocolVersion": 1}', "--timeout", str(SECONDS), "--", command)
    assert json.loads(result.stdout)["protocolVersion"] == 1
