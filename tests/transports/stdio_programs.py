"""Programs that drive `stdio()` in a process of their own, and how to run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.programs import python_code, python_file
from tests.transports.redirections import ENVIRONMENT, SECONDS

ECHO = python_file(Path(__file__).parent / "stdio_echo.py")

PREAMBLE = """
import asyncio, os, sys, threading
from acprt.limits import Limits
from acprt.transports.descriptors import open_closed_descriptors
from acprt.transports.stdio import stdio

def say(text):
    os.write(2, text.encode() + b"\\n")

def descriptors():
    for thread in threading.enumerate():  # each closes its own
        if thread.name.startswith("acprt-fd-"): thread.join(10)
    return {fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")}

class Sink:
    def __init__(self): self.lines = []; self.some = asyncio.Event(); self.ended = asyncio.Event(); self.error = None
    def lines_received(self, lines): self.lines += lines; self.some.set()
    def eof_received(self): self.ended.set()
    def connection_lost(self, error): self.error = error; self.ended.set()
    def pause_writing(self): pass
    def resume_writing(self): pass

def go(main):
    if LOOP == "uvloop":
        import uvloop
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner: runner.run(main())
    else:
        asyncio.run(main())
"""


def program(loop_name: str, text: str) -> list[str]:
    """A program that has the names of the preamble."""
    return python_code(f"LOOP = {loop_name!r}\n{PREAMBLE}\n{text}")


def run_piped(argv: list[str], data: bytes = b"", **options) -> subprocess.CompletedProcess[bytes]:
    """Run with pipes on all three, to its end."""
    return subprocess.run(argv, input=data, capture_output=True, timeout=SECONDS, env=ENVIRONMENT, **options)
