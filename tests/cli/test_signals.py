"""A command that is told to end, by SIGTERM or by the end of its terminal: its agent must not outlive it."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from acprt.cli.exit_codes import ExitCode
from tests.cli.running import PROGRAM, SCRIPTED, SECONDS, environment
from tests.cli.terminal import Terminal
from tests.cli.traced import Trace

# Heeds no end of input, and with a second word no SIGTERM; tells its process id when it is that far.
DEAF = """
import os, signal, sys
if sys.argv[2:]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as fifo:
    fifo.write(str(os.getpid()))
while True:
    signal.pause()
"""


@pytest.fixture
def deaf(tmp_path: Path) -> Callable[..., tuple[list[str], Callable[[], int]]]:
    """The words of an agent that heeds nothing, and a wait for its process id."""
    path = tmp_path / "pid"
    os.mkfifo(path)

    def started() -> int:
        fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert select.select([fifo], [], [], SECONDS)[0], "the agent was not started"
            return int(os.read(fifo, 100))
        finally:
            os.close(fifo)

    def make(*more: str) -> tuple[list[str], Callable[[], int]]:
        return [sys.executable, "-I", "-S", "-c", DEAF, str(path), *more], started

    return make


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def command(name: str, folder: Path) -> list[str]:
    """The words of each subcommand that has an agent, up to the agent."""
    if name != "replay":
        return [*PROGRAM, *{"prompt": ["prompt", "hi"], "call": ["call", "m"], "check": ["check"]}[name]]
    trace = Trace()
    trace.ask(1, "initialize", {"protocolVersion": 1})
    trace.answer(1, "initialize", {"protocolVersion": 1})
    path = folder / "trace.jsonl"
    trace.write(path)
    return [*PROGRAM, "replay", str(path)]


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("prompt", signal.SIGTERM, ExitCode.TERMINATED),
        ("prompt", signal.SIGHUP, ExitCode.HUNG_UP),
        ("call", signal.SIGTERM, ExitCode.TERMINATED),
        ("replay", signal.SIGTERM, ExitCode.TERMINATED),
        ("replay", signal.SIGHUP, ExitCode.HUNG_UP),
        ("check", signal.SIGHUP, ExitCode.HUNG_UP),
    ],
)
def test_the_agent_is_ended_first(name: str, number: signal.Signals, code: ExitCode, deaf, tmp_path) -> None:
    agent, started = deaf()
    with subprocess.Popen(
        [*command(name, tmp_path), "--", *agent], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        pid = started()
        program.send_signal(number)
        program.send_signal(number)  # `timeout` does that: it hurries nothing
        _, said = program.communicate(timeout=SECONDS)

    assert (program.returncode, said) == (code, b"")
    assert not is_alive(pid)


def test_an_agent_that_ignores_sigterm_is_killed(deaf, tmp_path) -> None:
    agent, started = deaf("sigterm too")
    with subprocess.Popen([*command("prompt", tmp_path), "--", *agent], env=environment()) as program:
        pid = started()
        program.send_signal(signal.SIGTERM)

        assert program.wait(timeout=SECONDS) == ExitCode.TERMINATED
    assert not is_alive(pid)


def test_a_terminal_that_closes_leaves_no_agent(deaf, tmp_path) -> None:
    agent, started = deaf()
    terminal = Terminal([*command("prompt", tmp_path), "--", *agent], tmp_path)
    pid = started()

    assert terminal.vanish() == ExitCode.HUNG_UP
    assert not is_alive(pid)


def test_a_terminal_that_closes_ends_a_chat(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "chat", "--", *SCRIPTED], tmp_path)
    terminal.expect("scripted  ·  mode ")

    assert terminal.vanish() == ExitCode.HUNG_UP


def test_a_reader_that_does_not_read_holds_nothing_up() -> None:
    with subprocess.Popen(
        [*PROGRAM, "prompt", "flood", "--", *SCRIPTED], stdout=subprocess.PIPE, env=environment(), bufsize=0
    ) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        held, before = array.array("i", [0]), 0
        while not held[0] or held[0] > before:  # once the pipe is full, the command waits in a write
            before = held[0]
            with pytest.raises(subprocess.TimeoutExpired):
                program.wait(timeout=0.3)
            fcntl.ioctl(program.stdout, termios.FIONREAD, held)
        program.send_signal(signal.SIGTERM)

        assert program.wait(timeout=SECONDS) == ExitCode.TERMINATED
    assert not is_alive(pid)


def test_a_hangup_that_is_ignored_stays_so() -> None:
    line = ["bash", "-c", 'trap "" HUP; exec "$@"', "bash", *PROGRAM, "prompt", "wait", "--", *SCRIPTED]
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=environment(), bufsize=0) as program:
        assert program.stdout is not None
        assert program.stdout.read(7) == b"waiting"
        program.send_signal(signal.SIGHUP)
        program.send_signal(signal.SIGINT)

        assert program.wait(timeout=SECONDS) == ExitCode.CANCELLED


def test_a_hangup_ends_an_agent_that_is_reloaded(deaf, tmp_path) -> None:
    agent, started = deaf()
    tmp_path.joinpath("module.py").write_text(f"import os\nos.execv({agent[0]!r}, {agent!r})\n")
    line = [*PROGRAM, "run", "module:agent", "--reload", "--app-dir", str(tmp_path)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, env=environment()) as program:
        pid = started()
        program.send_signal(signal.SIGHUP)

        assert program.wait(timeout=SECONDS) >= 0
    assert not is_alive(pid)
