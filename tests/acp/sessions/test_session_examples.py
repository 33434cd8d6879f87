"""Runs the clients of examples/ that open sessions, as their user would."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
SECONDS = 45


def agent(name: str) -> str:
    """The command of an example agent."""
    return shlex.join([sys.executable, str(EXAMPLES / name)])


def run_client(name: str, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """A client from its start to its end, with warnings as errors; `typed` is its whole stdin."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(
        command, env=ENVIRONMENT, input=typed, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )


class TestOnePrompt:
    def test_prints_the_answer_and_the_stop_reason(self) -> None:
        done = run_client("one_prompt.py", agent("echo_agent.py"), "hello")
        assert (done.stdout, done.stderr, done.returncode) == ("hello\n[end_turn]\n", "", 0)

    def test_allows_what_the_agent_asks_for(self) -> None:
        done = run_client("one_prompt.py", agent("streaming_agent.py"), "buy bread")
        assert (done.stdout, done.stderr, done.returncode) == ("Noted. There are 2 notes now.\n[end_turn]\n", "", 0)


class TestChat:
    def test_asks_before_the_agent_acts(self) -> None:
        """A number allows, an empty line refuses, the end of input ends the program."""
        done = run_client("chat.py", agent("streaming_agent.py"), typed="buy bread\n1\nbuy jam\n\n")
        assert (done.stderr, done.returncode) == ("", 0)
        assert done.stdout.count("? Add a note") == 2
        assert "Noted. There are 2 notes now." in done.stdout
        assert "The notes stay as they are." in done.stdout

    def test_interrupt_cancels_the_turn_and_the_next_one_goes_on(self) -> None:
        command = [sys.executable, "-W", "error", str(EXAMPLES / "chat.py"), agent("slow_agent.py")]
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write(b"word " * 5_000 + b"\n")
            program.stdin.flush()
            said = b""
            while b"word" not in said:
                said += os.read(program.stdout.fileno(), 4096)
            program.send_signal(signal.SIGINT)
            rest, errors = program.communicate(b"short\n", timeout=SECONDS)
        assert b"[cancelled]\n> " in rest
        assert b"short\n> " in rest.partition(b"[cancelled]")[2]
        assert (errors, program.returncode) == (b"", 0)

    def test_interrupt_without_a_turn_ends_the_program(self) -> None:
        command = [sys.executable, "-W", "error", str(EXAMPLES / "chat.py"), agent("echo_agent.py")]
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as program:
            assert program.stdout is not None
            said = b""
            while not said.endswith(b"> "):
                said += os.read(program.stdout.fileno(), 4096)
            assert said == b"This is echo.\n> "
            program.send_signal(signal.SIGINT)
            _rest, errors = program.communicate(timeout=SECONDS)
        assert (errors, program.returncode) == (b"", 130)

    @pytest.mark.parametrize(
        "command", ["no-such-agent-here", shlex.join([sys.executable, "-c", "raise SystemExit(3)"])]
    )
    def test_an_agent_that_is_none_is_named_on_stderr(self, command) -> None:
        done = run_client("chat.py", command)
        assert done.stderr.startswith("chat: ")
        assert "Traceback" not in done.stderr
        assert done.returncode == 1
