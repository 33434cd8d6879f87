"""How the tests of the command run it: in this process where they can, as a program where that matters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from acprt.cli.main import acprt_command

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = [sys.executable, "-I", "-S", str(Path(__file__).with_name("scripted_agent.py"))]
PROGRAM = [sys.executable, "-W", "error", "-m", "acprt"]
SECONDS = 45


def acprt(*words: str, stdin: str | None = None) -> Result:
    """Run the command in this process; stdout and stderr are apart."""
    return CliRunner().invoke(acprt_command, words, input=stdin, prog_name="acprt", catch_exceptions=False)


def acprt_program(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL, "timeout": SECONDS, "env": environment()}
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, **(settings | options))


def environment(**more: str) -> dict[str, str]:
    """This process's, with the checkout importable from any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}
