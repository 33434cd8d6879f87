"""acprt with the PyPI package `agent-client-protocol`, each as the agent and as the client of the other."""

from __future__ import annotations

import subprocess

import pytest

import acprt
from tests.interop.turn import PEERS, STOP_REASONS, WORDS_AGENT, check_client, exit_status, session_with

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


class TestAgentOfThePackage:
    """acprt spawns it."""

    def test_its_own_echo_agent_answers_a_turn(self, run, python_package, python_examples) -> None:
        """The example that the package ships, as it is."""

        async def main() -> None:
            agent = acprt.AgentProcess(python_package, python_examples / "echo_agent.py")
            async with session_with(agent) as (turns, _):
                assert await turns.prompt("echo this: 你好 🙂") == (["echo this: 你好 🙂"], "end_turn")
            assert exit_status(turns.cx) == 0

        run(main(), timeout=60)

    def test_updates_arrive_in_order_and_before_the_answer(self, run, python_package) -> None:
        """Two hundred of them, each in a line of its own."""

        async def main() -> None:
            words = [f"word-{n}" for n in range(200)]
            async with session_with(acprt.AgentProcess(python_package, PEERS / "python_agent.py")) as (turns, _):
                assert await turns.prompt(" ".join(words)) == (words, "end_turn")

        run(main(), timeout=60)

    def test_cancelled_turn_ends_and_the_next_one_works(self, run, python_package) -> None:
        """By `session/cancel`; then the end of its input ends it."""

        async def main() -> None:
            async with session_with(acprt.AgentProcess(python_package, PEERS / "python_agent.py")) as (turns, _):
                assert await turns.cancelled_prompt("WAIT never") == (["WAIT"], "cancelled")
                assert await turns.prompt("after") == (["after"], "end_turn")
            assert exit_status(turns.cx) == 0

        run(main(), timeout=60)

    def test_its_permission_request_is_answered_in_mid_turn(self, run, python_package) -> None:
        """Both sides number their requests from the start, at once."""

        async def main() -> None:
            async with session_with(acprt.AgentProcess(python_package, PEERS / "python_agent.py")) as (turns, seen):
                assert await turns.prompt("ASK twice: ASK") == (["yes", "twice:", "yes"], "end_turn")
                assert [request.tool_call.tool_call_id for request in seen.permissions] == ["call-1", "call-1"]

        run(main(), timeout=60)


class TestClientOfThePackage:
    """It spawns an acprt agent."""

    def test_it_drives_our_agent_through_turns(self, python_package) -> None:
        """A turn, a permission request, a cancel in mid-turn; the end of its input ends the agent cleanly."""
        seen = check_client([python_package, str(PEERS / "python_client.py")])
        assert seen == {"version": 1, **STOP_REASONS}

    def test_its_own_example_client_is_answered(self, python_package, python_examples) -> None:
        """The example that the package ships, as it is: no capabilities, and it refuses a permission request."""
        done = subprocess.run(
            [python_package, python_examples / "client.py", *WORDS_AGENT],
            input="one ASK\ntwo\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        said = [line.rpartition("| Agent: ")[2] for line in done.stdout.splitlines() if "| Agent: " in line]
        assert said == ["one", "refused: -32601", "two"]
