"""The command itself: its subcommands, what it loads, and what it says where something is missing."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from acprt.cli.exit_codes import ExitCode
from acprt.cli.main import SUBCOMMANDS
from tests.cli.running import PROGRAM, ROOT, SCRIPTED, SECONDS, acprt, acprt_program, environment

AGENT = shlex.join(SCRIPTED)


def test_help_lists_every_subcommand_in_the_order_of_the_table() -> None:
    lines = acprt("--help").stdout.split("Commands:")[1].splitlines()

    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "] == list(SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_each_subcommand_explains_itself(name: str) -> None:
    result = acprt(name, "--help")

    assert result.exit_code == 0
    assert f"Usage: acprt {name}" in result.stdout


@pytest.mark.parametrize("name", ["prompt", "chat", "call"])
def test_help_says_what_a_client_cannot_do_and_what_is_not_bounded(name: str) -> None:
    text = " ".join(acprt(name, "--help").stdout.split())

    assert "version 1 of ACP" in text
    assert "no files and no terminal" in text
    bounded = {"prompt": "not for the turn", "chat": "Turns are not bounded", "call": "and the answer to METHOD"}
    assert bounded[name] in text


def test_an_unknown_subcommand_is_a_usage_error() -> None:
    result = acprt("nope")

    assert result.exit_code == 2
    assert "No such command 'nope'" in result.stderr


def test_the_module_is_the_same_command() -> None:
    done = acprt_program("--version")

    assert done.returncode == 0
    assert done.stdout.startswith("acprt, version ")


def test_help_loads_neither_terminal_libraries_nor_the_protocol() -> None:
    code = (
        "import sys\n"
        "from acprt.cli.main import acprt_command\n"
        "acprt_command(['--help'], standalone_mode=False)\n"
        "print([name for name in ('rich', 'prompt_toolkit', 'acprt.acp', 'acprt.cli.chat') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=45
    )

    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_importing_acprt_loads_nothing_of_the_command() -> None:
    code = "import sys, acprt\nprint([name for name in ('acprt.cli', 'click', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=45)

    assert done.stdout.strip() == "[]", done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path) -> None:
    tmp_path.joinpath("click.py").write_text("raise ModuleNotFoundError('No module named click', name='click')")
    done = acprt_program("--help", env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"))

    assert done.returncode == 1
    assert done.stderr == "acprt: the command needs click, which comes with: pip install 'acprt[cli]'\n"


@pytest.mark.parametrize("place", ["before", "after"])
def test_an_interrupt_outside_a_subcommand_is_no_traceback(place: str, tmp_path) -> None:
    if place == "before":
        tmp_path.joinpath("click.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
        command = [*PROGRAM, "--help"]
    else:
        code = (
            "import acprt.__main__, acprt.cli.main, signal\n"
            "acprt.cli.main.main = lambda: signal.raise_signal(signal.SIGINT)\n"
            "acprt.__main__.main()\n"
        )
        command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(PYTHONPATH=f"{tmp_path}:{ROOT}"), timeout=SECONDS
    )

    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "")


def test_every_exit_code_is_documented() -> None:
    page = ROOT.joinpath("docs", "command.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page, re.MULTILINE)

    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_every_subcommand_is_documented() -> None:
    page = ROOT.joinpath("docs", "command.md").read_text(encoding="utf-8")

    assert [name for name in SUBCOMMANDS if f"\nacprt {name}" not in page] == []


def shell(words: str, redirected: str) -> subprocess.CompletedProcess[str]:
    """Run the command with streams that a shell has redirected."""
    line = f"{shlex.join(PROGRAM)} {words} {redirected}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=environment(), cwd=ROOT, timeout=SECONDS
    )


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_streams_are_no_trouble(closed: str) -> None:
    done = shell(f"prompt 'say hello' -- {AGENT}", closed)

    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["prompt 'say hello'", "prompt 'say hello' --json", "call test/params"])
def test_what_a_closed_stdout_loses_is_a_failure(words: str, closed: str) -> None:
    done = shell(f"{words} -- {AGENT}", closed)

    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.FAILED, "", "")


def test_a_closed_stdout_is_no_trouble_where_nothing_is_printed() -> None:
    assert shell(f"prompt tool --quiet -- {AGENT}", ">&-").returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "words",
    [
        "--help",
        f"prompt 'say hello' -- {AGENT}",
        f"prompt 'say hello' --json -- {AGENT}",
        f"call test/params -- {AGENT}",
    ],
)
def test_a_full_disk_is_told_in_a_line(words: str) -> None:
    done = shell(words, ">/dev/full")

    assert done.returncode == ExitCode.FAILED
    assert done.stderr == "acprt: the output cannot be written: No space left on device\n"
