"""A program in a terminal, for tests: keys go in, and what is shown is waited for."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.cli.running import environment

__all__ = ["Terminal"]

SECONDS = 20.0
_CONTROLLED = (  # its terminal, so that Ctrl-C reaches it as a signal
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
_WHERE = "\x1b[6n"  # asks where the cursor is
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])")


class Terminal:
    """A program in a terminal of 80 columns."""

    def __init__(self, command: list[str], state: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        env = environment(XDG_STATE_HOME=str(state), TERM="xterm-256color")
        env.pop("NO_COLOR", None)
        self.program = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CONTROLLED, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        self._text = ""
        self.raw = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def expect(self, words: str) -> str:
        """Wait until `words` are shown behind what was expected before; what was shown up to there."""
        ends = time.monotonic() + SECONDS
        while words not in self._text:
            left = ends - time.monotonic()
            readable, _, _ = select.select([self._master], [], [], max(left, 0))
            assert readable, f"{words!r} was not shown; but: {self._text!r}"
            data = b""
            with contextlib.suppress(OSError):  # its end, on Linux
                data = os.read(self._master, 65536)
            assert data, f"{words!r} was not shown before the end; but: {self._text!r}"
            shown = data.decode("utf-8", "replace")
            if _WHERE in shown:  # as terminals do
                os.write(self._master, b"\x1b[1;1R")
            self.raw += shown
            self._text += _ESCAPE.sub("", shown)
        before, _, self._text = self._text.partition(words)
        return before

    def ended(self) -> int:
        """Wait for the end; the exit code."""
        while True:
            with contextlib.suppress(OSError):
                if select.select([self._master], [], [], 0.1)[0]:
                    os.read(self._master, 65536)
            code = self.program.poll()
            if code is not None:
                return code

    def echoes(self) -> bool:
        """Whether the terminal writes what is typed, by itself."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def vanish(self) -> int:
        """Close the terminal itself, as its window does; the exit code of the program. No `close` then."""
        os.close(self._master)
        return self.program.wait(timeout=SECONDS)

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self._master)
