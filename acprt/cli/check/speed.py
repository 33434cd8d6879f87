"""How fast the agent is. These pass whatever the numbers; they are here to be compared."""

from __future__ import annotations

import statistics
import time

from acprt.cli.check.process import UNKNOWN_METHOD
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import check

__all__ = ["CHECKS"]

_ROUND_TRIPS = 100
_PIPELINED = 500


@check("speed.round_trip", "A round trip", rule="measured", level="should")
async def round_trip(subject: Subject) -> str:
    process = await subject.shared()
    seconds = sorted([(await process.call(UNKNOWN_METHOD, {})).seconds for _ in range(_ROUND_TRIPS)])
    median, slow = statistics.median(seconds), seconds[int(0.99 * len(seconds))]
    return f"median {median * 1e3:.2f} ms, 99th percentile {slow * 1e3:.2f} ms of {_ROUND_TRIPS}"


@check("speed.pipelined", "Requests that do not wait for each other", rule="measured", level="should")
async def pipelined(subject: Subject) -> str:
    process = await subject.shared()
    start = time.monotonic()
    for id in [process.request(UNKNOWN_METHOD, {}) for _ in range(_PIPELINED)]:
        await process.answer(id)
    return f"{_PIPELINED / (time.monotonic() - start):,.0f} answers a second"


@check("speed.session", "Opening a session", rule="measured", level="should")
async def session(subject: Subject) -> str:
    process, _ = await subject.session()
    start = time.monotonic()
    await subject.new_session(process)
    return f"{time.monotonic() - start:.3f} s"


CHECKS = (round_trip, pipelined, session)
