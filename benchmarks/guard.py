"""What a message costs, counted instead of timed: the same on every machine, so a test can hold it to a budget.

    python benchmarks/guard.py             the counts of this Python beside their budgets, and where the calls are
    python benchmarks/guard.py --write     makes the counts, and a little more, the budgets of this Python

One side is acprt, the other a few lines that write and read messages as bytes in the same process, joined by a memory
pair. Counted are calls of and out of acprt's own functions; the transport between, the loop and the handlers are not.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import sys
import tomllib
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "peers")]  # run as a program, the checkout is not on the path

import msgspec  # noqa: E402

import acprt  # noqa: E402
from acprt_messages import (  # noqa: E402
    AgentMessageChunk,
    Prompt,
    PromptReply,
    SessionUpdate,
    Text,
)

__all__ = ["BUDGETS", "budgets_of", "measured"]

BUDGETS = Path(__file__).with_name("guard.toml")
PACKAGE = str(Path(acprt.__file__).parent) + "/"
NOT_COUNTED = ("transports/memory.py",)

WARM_UP, COUNTED = 100, 500
"""Messages before the count, in which decoders are built; and in it."""

IN_FLIGHT = 50
PENDING = 1000

HEADROOM = 1.01
"""Of a budget over the calls that were counted when it was written: a call more in every message is too many."""


class CallCount:
    """Counts calls of acprt's functions, and of C functions from within them, by room."""

    def __init__(self) -> None:
        self.by_room: Counter[str] = Counter()
        self._rooms: dict[CodeType, str] = {}

    def __enter__(self) -> CallCount:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call") and (room := self._room(frame.f_code)):
            self.by_room[room] += 1

    def _room(self, code: CodeType) -> str:
        room = self._rooms.get(code)
        if room is None:
            name = code.co_filename.removeprefix(PACKAGE)
            room = "" if name == code.co_filename or name in NOT_COUNTED else name.removesuffix(".py")
            self._rooms[code] = room
        return room


class RawEnd:
    """The other side: gives each read's lines to `on_lines` and writes bytes."""

    def __init__(self, transport: acprt.Transport, on_lines: Callable[[list[Any]], None]) -> None:
        self.write = transport.write
        self._on_lines = on_lines
        transport.open(self, acprt.Limits())

    def lines_received(self, lines: list[Any]) -> None:
        self._on_lines(lines)

    def eof_received(self) -> None: ...
    def connection_lost(self, error: Exception) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


TABLE_BYTES = 140.0
"""What the tables of a connection take or give back per request when they happen to be resized."""

Burst = Callable[[int], Awaitable[None]]
"""Makes so many messages pass, and returns when all of them have."""


async def agent_costs() -> dict[str, Counter[str]]:
    """An acprt agent and a client of bytes."""
    agent = acprt.Endpoint("counted")

    @agent.method
    async def prompt(request: Prompt, cx: acprt.Connection) -> PromptReply:
        for _ in range(int(request.session_id)):
            cx.send_notification(update())
        return PromptReply(stop_reason="end_turn")

    near, far = acprt.memory_pair()
    serving = asyncio.create_task(agent.serve(far))
    answered = Answers()
    end = RawEnd(near, answered.lines_received)

    async def one_by_one(count: int) -> None:
        for number in range(count):
            end.write(prompt_line(number, updates=0))
            await answered.wait(1)

    async def pipelined(count: int) -> None:
        for _ in range(count // IN_FLIGHT):
            end.write(b"".join(prompt_line(number, updates=0) for number in range(IN_FLIGHT)))
            await answered.wait(IN_FLIGHT)

    async def updates(count: int) -> None:
        end.write(prompt_line(1, updates=count))
        await answered.wait(1)

    counts = {
        "w1 agent": await counted(one_by_one),
        "w2 agent": await counted(pipelined),
        "w3 agent": await counted(updates),
    }
    near.close_write()
    await serving
    await near.aclose()
    return counts


async def client_costs() -> dict[str, Counter[str]]:
    """An acprt client and an agent of bytes."""
    client, seen = acprt.Endpoint("counted"), Answers()

    @client.on_receive_notification
    async def on_update(note: SessionUpdate, _cx: acprt.Connection) -> None:
        seen.one_more()

    near, far = acprt.memory_pair()

    def answer(lines: list[Any]) -> None:
        end.write(
            b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}\n' % i for i in ids_of(lines))
        )

    end = RawEnd(far, answer)
    update_line = msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": update()}) + b"\n"

    async with client.connect(near) as cx:
        request = Prompt(session_id="0", prompt=[Text("hello")])

        async def one_by_one(count: int) -> None:
            for _ in range(count):
                await cx.send_request(request).block_task()

        async def pipelined(count: int) -> None:
            for _ in range(count // IN_FLIGHT):
                await asyncio.gather(*(cx.send_request(request).block_task() for _ in range(IN_FLIGHT)))

        async def updates(count: int) -> None:
            for _ in range(count // IN_FLIGHT):
                end.write(update_line * IN_FLIGHT)
                await seen.wait(IN_FLIGHT)

        return {
            "w1 client": await counted(one_by_one),
            "w2 client": await counted(pipelined),
            "w3 client": await counted(updates),
        }


async def client_memory() -> tuple[float, float]:
    """Bytes that a request holds while nobody answers it, its task included, and that it leaves when it is answered."""
    near, far = acprt.memory_pair()
    ids: list[int] = []
    end = RawEnd(far, lambda lines: ids.extend(ids_of(lines)))
    async with acprt.Endpoint("counted").connect(near) as cx:
        request = Prompt(session_id="0", prompt=[Text("hello")])
        tasks: list[asyncio.Task[Any]] = []

        async def hold() -> None:
            ids.clear()
            tasks.extend(asyncio.create_task(cx.send_request(request).block_task()) for _ in range(PENDING))
            while len(ids) < PENDING:
                await asyncio.sleep(0)

        async def release() -> None:
            end.write(b"".join(b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}\n' % i for i in ids))
            await asyncio.gather(*tasks)
            tasks.clear()

        return await held_and_left(hold, release)


async def agent_memory() -> tuple[float, float]:
    """The same of a request at the agent, whose handler waits."""
    agent, waiting, go_on = acprt.Endpoint("counted"), Answers(), asyncio.Event()

    @agent.method
    async def prompt(_request: Prompt) -> PromptReply:
        waiting.one_more()
        await go_on.wait()
        return PromptReply(stop_reason="end_turn")

    near, far = acprt.memory_pair()
    serving = asyncio.create_task(agent.serve(far))
    answered = Answers()
    end = RawEnd(near, answered.lines_received)

    async def hold() -> None:
        go_on.clear()
        end.write(b"".join(prompt_line(number, updates=0) for number in range(PENDING)))
        await waiting.wait(PENDING)

    async def release() -> None:
        go_on.set()
        await answered.wait(PENDING)

    costs = await held_and_left(hold, release)
    near.close_write()
    await serving
    await near.aclose()
    return costs


async def held_and_left(
    hold: Callable[[], Awaitable[None]], release: Callable[[], Awaitable[None]]
) -> tuple[float, float]:
    """Bytes for each of `PENDING` requests: once all are held, and once all are released."""
    tracemalloc.start()
    for _ in range(2):  # tables that stay as large as they once were are not what a request leaves behind
        await hold()
        await release()
        await asyncio.sleep(0)  # the step that the last answer woke may hold some of them
    before = traced_bytes()
    await hold()
    held = traced_bytes() - before
    await release()
    await asyncio.sleep(0)
    left = traced_bytes() - before
    tracemalloc.stop()
    return held / PENDING, max(left, 0) / PENDING


class Answers:
    """Counts what came, and lets one task wait for so many."""

    def __init__(self) -> None:
        self._missing = 0
        self._all_there = asyncio.Event()

    def lines_received(self, lines: list[Any]) -> None:
        for line in lines:
            if b'"result"' in line:
                self.one_more()

    def one_more(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._all_there.set()

    async def wait(self, count: int) -> None:
        """Until `count` more have come. What is waited for may only be sent in the same turn of the loop."""
        self._missing += count
        self._all_there.clear()
        await self._all_there.wait()


async def counted(burst: Burst) -> Counter[str]:
    await burst(WARM_UP)
    with CallCount() as count:
        await burst(COUNTED)
    return count.by_room


def traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def update() -> SessionUpdate:
    return SessionUpdate(session_id="sess_0123456789ab", update=AgentMessageChunk(Text("the quick brown fox")))


def prompt_line(number: int, *, updates: int) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"%d",'
        b'"prompt":[{"type":"text","text":"hello"}]}}\n' % (number, updates)
    )


def ids_of(lines: list[Any]) -> list[int]:
    return [json.loads(line)["id"] for line in lines]


def calls_by_room() -> dict[str, Counter[str]]:
    """All calls of the counted messages, for each workload and side."""
    return asyncio.run(agent_costs()) | asyncio.run(client_costs())


def measured(calls: dict[str, Counter[str]]) -> dict[str, float]:
    """Calls per message by workload and side, and bytes per request."""
    per_message = {f"calls, {name}": by_room.total() / COUNTED for name, by_room in calls.items()}
    costs = {"client": asyncio.run(client_memory()), "agent": asyncio.run(agent_memory())}
    held = {f"bytes held per request, {side}": held for side, (held, _) in costs.items()}
    return per_message | held | {f"bytes left per request, {side}": left for side, (_, left) in costs.items()}


def budgets_of(version: str) -> dict[str, float]:
    """The budgets of a Python, for example `3.11`; empty when it has none."""
    if not BUDGETS.exists():
        return {}
    known: dict[str, dict[str, float]] = tomllib.loads(BUDGETS.read_text())
    return known.get(version, {})


def write_budgets(version: str, found: dict[str, float]) -> None:
    known = tomllib.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}
    known[version] = {
        name: math.ceil(value) + TABLE_BYTES if name.startswith("bytes") else math.ceil(value * HEADROOM * 10) / 10
        for name, value in found.items()
    }
    lines = [
        "# Written by `python benchmarks/guard.py --write`, once under each Python. tests/test_cost.py holds them."
    ]
    for python in sorted(known, key=lambda name: tuple(map(int, name.split(".")))):
        lines += ["", f'["{python}"]', *(f'"{name}" = {value}' for name, value in known[python].items())]
    BUDGETS.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Counted costs of a message.")
    parser.add_argument("--write", action="store_true", help="make the counts the budgets of this Python")
    parser.add_argument("--json", action="store_true", help="print the counts alone, as JSON")
    args = parser.parse_args()
    calls, version = calls_by_room(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = measured(calls)
    if args.json:
        print(json.dumps(found))
        return 0
    if args.write:
        write_budgets(version, found)
    budgets = budgets_of(version)
    for name, value in found.items():
        print(f"{name:35} {value:8.1f}  budget {budgets.get(name, math.nan):8.1f}")
    for name, by_room in calls.items():
        print(f"\n{name}")
        for room, count in by_room.most_common():
            print(f"  {room:28} {count / COUNTED:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
