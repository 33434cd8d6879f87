"""What the contract with users says of the Claude Code stream: its snippets run as written, its names are there."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from acprt import claude

ROOT = Path(__file__).resolve().parents[2]

DECODING = """
from acprt import claude

message = claude.decode(line)                      # typed, unknown kinds kept as claude.UnknownMessage
match message:
    case claude.TaskNotificationMessage(task_id=tid, status=status): ...
"""

CONNECTING = """
async with claude.connect(claude.ClaudeProcess("claude", cwd=".")) as cli:      # stream-json in and out, control protocol included
    async for message in cli.prompt("Fix the bug"):
        ...
    await cli.interrupt()
"""  # noqa: E501  # word for word


def run_snippet(snippet: str, place: Path, *, before: str = "", then: str = "") -> str:
    """What a program prints that runs a snippet in a coroutine, with the fake as the command `claude`."""
    fake = place / "claude"
    fake.write_text(f'#!/bin/sh\nexec {sys.executable} -m acprt.testing.fake_claude "$@"\n')
    fake.chmod(0o755)
    body = textwrap.indent(f"{before}\n{snippet}\n{then}\n", "    ")
    program = f"import asyncio\nfrom acprt import claude\n\nasync def main():\n{body}\nasyncio.run(main())\n"
    env = os.environ | {"PATH": f"{place}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def test_decoding_snippet(tmp_path: Path) -> None:
    line = '{"type":"system","subtype":"task_notification","session_id":"s","task_id":"t","status":"completed"}'
    assert run_snippet(DECODING, tmp_path, before=f"line = {line!r}", then="print(tid, status)") == "t completed\n"


def test_connecting_snippet(tmp_path: Path) -> None:
    """And its last message is the result."""
    assert run_snippet(CONNECTING, tmp_path, then="print(message.result, cli.exit_status)") == "Fix the bug 0\n"


@pytest.mark.parametrize("name", sorted(claude.__all__))
def test_every_name_of_the_face_is_there_and_documented(name: str) -> None:
    value = getattr(claude, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
        assert not (inspect.getdoc(value) or "").startswith(f"{name}(")  # what dataclass-like classes say of themselves


def test_tracker_has_what_the_contract_names() -> None:
    tracker = claude.TaskTracker()
    assert (tracker.tasks, tracker.activity()) == ({}, [])
    assert {"run_id", "status", "notification"} <= set(claude.Task.__struct_fields__)
    assert callable(tracker.apply)
    assert callable(tracker.display)


def test_import_brings_no_other_wing() -> None:
    program = (
        "import sys; import acprt.claude; print([m for m in sys.modules if m.startswith(('acprt.acp', 'acprt.mcp'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=45, check=True
    )
    assert done.stdout == "[]\n"
