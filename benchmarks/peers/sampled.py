"""Runs a program and counts where its CPU time goes: `sampled.py OUT PROGRAM ARGUMENTS…` writes the counts at its end.

A timer of CPU time interrupts it; each interruption is a sample of the running frame. C code (msgspec, system calls)
has no frame and counts for the Python function that called it. An interruption inside the event loop's own C code is
only noticed when the next callback begins, so one at the very first instruction of a callback counts for the loop.
"""

from __future__ import annotations

import atexit
import json
import opcode
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

ACPRT = "acprt"
INTERVAL_SECONDS = 0.001  # many systems only count in ticks of 4 ms
START_UP_SECONDS = 0.2
"""CPU time before the first sample: imports and the first messages are not what is asked about."""


RESUME = opcode.opmap["RESUME"]

LOOP, PROGRAM, REST = "event loop", "the program itself", "standard library"


class Sampler:
    """Counts samples by room of acprt, for example `runtime/dispatch`."""

    def __init__(self, package: Path) -> None:
        self._package = str(package) + os.sep
        self._programs = str(Path(__file__).parent) + os.sep
        self._places: dict[CodeType, str] = {}
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, START_UP_SECONDS, INTERVAL_SECONDS)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        if frame is not None:
            self.counts[self._place(frame)] += 1

    def _place(self, frame: FrameType) -> str:
        place = self._place_of_code(frame.f_code)
        if place != LOOP and _just_began(frame) and (caller := frame.f_back) is not None:
            called_by = self._place_of_code(caller.f_code)
            return LOOP if called_by in (LOOP, REST) else place
        walked: FrameType | None = frame
        while place == REST and walked is not None:  # what the library does, it does for its caller
            place = self._place_of_code(walked.f_code)
            walked = walked.f_back
        return place

    def _place_of_code(self, code: CodeType) -> str:
        place = self._places.get(code)
        if place is None:
            place = self._places[code] = self._named(code.co_filename)
        return place

    def _named(self, filename: str) -> str:
        if filename.startswith(self._package):
            return filename.removeprefix(self._package).removesuffix(".py").replace(os.sep, "/")
        if filename.startswith(self._programs):
            return PROGRAM
        return LOOP if f"{os.sep}asyncio{os.sep}" in filename or filename.endswith("selectors.py") else REST


def _just_began(frame: FrameType) -> bool:
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == RESUME


def main() -> None:
    out, program = Path(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    import acprt

    assert acprt.__file__ is not None
    sampler = Sampler(Path(acprt.__file__).parent)

    @atexit.register
    def write() -> None:
        sampler.stop()
        out.write_text(json.dumps(sampler.counts))

    sampler.start()
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
