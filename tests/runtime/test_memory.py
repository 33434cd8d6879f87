"""A consumer that stalls costs a bounded amount of memory, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNT, SIZE = 200_000, 1024
ALLOWED = 64 * 1024 * 1024

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads resident memory from /proc")

CONSUMER = f"""
import asyncio, json, os, sys
if "{{loop}}" == "asyncio":
    sys.modules["uvloop"] = None
import acprt

COUNT = {COUNT}

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

class Watched(acprt.AgentProcess):
    def pause_reading(self):
        super().pause_reading()
        paused.set()

paused = asyncio.Event()

async def main():
    client = acprt.Endpoint("client")
    release, done = asyncio.Event(), asyncio.Event()
    numbers, growth = [], []

    @client.on_receive_notification("n")
    async def note(params):
        if not numbers:
            await release.wait()
        numbers.append(params["n"])
        if len(numbers) % 1000 == 0:
            growth.append(resident() - before)
        if len(numbers) == COUNT:
            done.set()

    before = resident()
    async with client.connect(Watched(sys.executable, "-c", os.environ["PRODUCER"])) as cx:
        await asyncio.wait_for(paused.wait(), 30)
        held, stalled = cx.status().inbox.count, resident() - before
        release.set()
        await asyncio.wait_for(done.wait(), 50)
    in_order = numbers == list(range(COUNT))
    print(json.dumps({{{{"held": held, "stalled": stalled, "peak": max(growth), "in_order": in_order}}}}))

loop = "{{loop}}"
if loop == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""

PRODUCER = f"""
import asyncio, sys
import acprt
agent = acprt.Endpoint("agent")

@agent.with_spawned
async def flood(cx):
    filler = "x" * ({SIZE} - 60)
    for n in range({COUNT}):
        cx.send_notification("n", {{"n": n, "filler": filler}})
        if n % 256 == 0:
            await cx.drain()
    await cx.incoming_closed()

acprt.run(agent)
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_stalled_handler_costs_bounded_memory_and_loses_nothing(loop):
    """200,000 one-KiB notifications (200 MB) from a real child against a handler that stalls: resident
    growth under 64 MiB, all delivered in order afterwards; the producer waits in `drain()` meanwhile.
    """
    done = subprocess.run(
        [sys.executable, "-c", CONSUMER.format(loop=loop)],
        capture_output=True,
        timeout=55,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PRODUCER": PRODUCER},
    )
    assert done.returncode == 0, done.stderr.decode()
    measured = json.loads(done.stdout)
    assert measured["in_order"]
    assert measured["held"] < COUNT / 2
    assert measured["stalled"] < ALLOWED
    assert measured["peak"] < ALLOWED
