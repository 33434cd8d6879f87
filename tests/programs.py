"""Python programs that tests start: in dev mode, warnings as errors, and silent on stderr however slow the machine is.

Whoever compares the stderr of a program starts it from here. This room must not know what a program is about.
"""

from __future__ import annotations

import os
import sys

__all__ = ["ignore_slow_callbacks", "python_code", "python_file", "python_wrapper"]

_STRICT = [sys.executable, "-X", "dev", "-W", "error"]

# asyncio's debug mode, which dev mode turns on, tells of each callback that took 0.1 s: on a busy machine any may.
_PROLOGUE = """\
import logging
logging.getLogger("asyncio").addFilter(lambda record: "took %.3f seconds" not in str(record.msg))
del logging
"""

_RUN_FILE = """\
import runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def ignore_slow_callbacks() -> None:
    """The same for this process: what a test finds in the log must not depend on the machine either."""
    exec(_PROLOGUE)


def python_code(code: str, *arguments: str) -> list[str]:
    """The command that runs `code`."""
    return [*_STRICT, "-c", _PROLOGUE + code, *arguments]


def python_file(path: str | os.PathLike[str], *arguments: str) -> list[str]:
    """The command that runs the program in `path`, which finds what it imports in its working directory."""
    return python_code(_RUN_FILE, os.fspath(path), *arguments)


def python_wrapper() -> str:
    """A shell script that stands for `python FILE ARGUMENTS…`."""
    *strict, program = python_code(_RUN_FILE)
    assert "'" not in program, "the shell's quotes"
    return f"#!/bin/sh\nexec {' '.join(strict)} '{program}' \"$@\"\n"
