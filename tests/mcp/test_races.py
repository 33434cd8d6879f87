"""Races under a seeded random scheduler: whatever the order, each request ends once, and silently if cancelled.

A seed decides what the scripted peer sends, when, in which chunks, when it reads, and how long handlers take. What must
hold is told from the wire alone. `make soak` takes more seeds: `ACPRT_MCP_SEEDS` for each side and era, 200 unless set.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, MODERN, SUBSCRIPTION, Client, client_endpoint, server_for, server_of
from tests.rawpeer import RawPeer, turns

SEEDS = 15
SOAK_SEEDS = int(os.environ.get("ACPRT_MCP_SEEDS", "200"))
STEPS = 120


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Unknown cancels and late answers are logged, which is not what is tested here."""
    caplog.set_level(logging.CRITICAL + 1, "acprt")


# -- a server under test ----------------------------------------------------------------------------------------------


def busy_server(era: mcp.ProtocolEra, choose: random.Random, running: set[str]) -> acprt.Endpoint:
    """Its one tool takes some turns of the loop, reports, and now and then swallows its cancel."""
    server = server_of(era)

    @server.method("work")
    async def work(params: dict[str, Any], cx: acprt.Connection) -> dict[str, Any]:
        name = params["name"]
        running.add(name)
        try:
            for step in range(choose.choice((0, 0, 1, 3, 20))):
                cx.send_notification("notifications/step", {"name": name, "step": step})
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            cx.send_notification("notifications/step", {"name": name, "step": -1})
            if choose.random() < 0.5:
                raise
        finally:
            running.discard(name)
        return {"name": name}

    return server


class ScriptedClient(Client):
    """Sends at random and remembers what it is owed, by the name of each request."""

    def __init__(self, peer: RawPeer, era: mcp.ProtocolEra, choose: random.Random) -> None:
        super().__init__(peer, era)
        self.choose = choose
        self.chunk: list[Any] = []
        self.names: dict[Any, str] = {}  # by id in use
        self.owed: dict[str, Any] = {}  # id by name, neither answered nor cancelled
        self.cancelled_names: set[str] = set()
        self.silent: set[str] = set()  # cancelled, and the server has surely seen it
        self.answered: list[str] = []
        self.markers = 0

    def request(self) -> None:
        """A new request, sometimes under an id that was cancelled, or answered, before."""
        name = f"r{len(self.names) + len(self.answered) + len(self.cancelled_names)}-{self.choose.getrandbits(32)}"
        free = [id for id, old in self.names.items() if old not in self.owed]
        id = self.choose.choice(free) if free and self.choose.random() < 0.4 else self.choose.getrandbits(40)
        self.names[id] = name
        self.owed[name] = id
        self.chunk.append(self.call(id, "work", {"name": name}))

    def cancel_one(self) -> None:
        """Any id that was ever used: running, answered, cancelled before, or of a younger request by now."""
        if self.names:
            id = self.choose.choice(list(self.names))
            self.chunk.append(self.cancelled(id))
            name = self.names[id]
            if name in self.owed:
                del self.owed[name]
                self.cancelled_names.add(name)

    def nonsense(self) -> None:
        """A cancel of nothing."""
        id = self.choose.choice([None, 1.5, True, "unknown", -1, [1], 2**70])
        self.chunk.append(self.cancelled(id))

    def write(self) -> None:
        """Everything since the last write, in one chunk."""
        chunk, self.chunk = self.chunk, []
        if chunk:
            self.send(*chunk)

    def read(self) -> None:
        """Look at what has come."""
        for line in self.peer.unread():
            self.take(line)

    def take(self, line: Any) -> None:
        name = line["params"]["name"] if "params" in line else line.get("result", {}).get("name")
        if name is None:
            return
        assert name not in self.silent, f"{line} for a request that was cancelled before"
        if "result" in line:
            assert name in self.owed or name in self.cancelled_names, f"{line} came twice"
            assert name not in self.answered, f"{line} came twice"
            self.answered.append(name)
            self.owed.pop(name, None)

    async def round_trip(self) -> None:
        """What is cancelled now is silent from here on: the server has answered something that was sent later."""
        self.peer.transport.resume_reading()
        known = set(self.cancelled_names)
        self.write()
        self.markers += 1
        marker = f"marker-{self.markers}"
        self.send(self.call(marker, "nobody"))
        while (line := await self.peer.receive()).get("id") != marker:
            self.take(line)
        self.silent |= known


async def drive_server(era: mcp.ProtocolEra, seed: int) -> None:
    choose = random.Random(seed)
    running: set[str] = set()
    server = busy_server(era, choose, running)
    near, far = acprt.memory_pair()
    connections: list[acprt.Connection] = []

    @server.with_spawned
    async def connected(cx: acprt.Connection) -> None:
        connections.append(cx)

    serving = asyncio.create_task(server.serve(far))
    client = ScriptedClient(RawPeer(near), era, choose)
    client.chunk.append(client.call("open", "nobody"))
    for _ in range(STEPS):
        await choose.choices(
            [
                lambda: step(client.request),
                lambda: step(client.cancel_one),
                lambda: step(client.nonsense),
                lambda: step(client.write),
                lambda: step(client.read),
                lambda: step(client.peer.transport.pause_reading),
                lambda: step(client.peer.transport.resume_reading),
                lambda: turns(choose.choice((1, 2, 5))),
                client.round_trip,
            ],
            weights=[8, 6, 1, 6, 3, 1, 2, 6, 1],
        )[0]()
    await client.round_trip()
    while client.owed:
        client.take(await client.peer.receive())
    await client.round_trip()
    assert connections[0].status().in_flight == []
    assert not running
    client.peer.close_write()
    await serving
    await client.peer.aclose()


async def step(action: Any) -> None:
    action()


# -- a client under test ----------------------------------------------------------------------------------------------


async def drive_client(era: mcp.ProtocolEra, seed: int) -> None:
    """Calls and subscriptions, cancelled here, answered there, ended by both sides, in any order."""
    choose = random.Random(seed)
    client = client_endpoint(era)
    async with server_for(client) as (cx, peer):
        waiting: dict[int, asyncio.Task[Any]] = {}
        sent: dict[int, acprt.SentRequest[Any]] = {}
        listens: set[int] = set()
        seen: list[int] = []  # ids that the server has read
        cancels: list[Any] = []
        ours: set[int] = set()  # cancelled by the client

        def ask() -> None:
            if era is MODERN and choose.random() < 0.4:
                request: Any = mcp.ListenRequest(notifications=mcp.SubscriptionFilter(tools_list_changed=True))
            else:
                request = mcp.CallToolRequest(name="x")
            handle = cx.send_request(request)
            if isinstance(request, mcp.ListenRequest):
                listens.add(handle.id)
            sent[handle.id] = handle
            waiting[handle.id] = asyncio.create_task(handle.block_task())

        def cancel() -> None:
            if sent:
                id = choose.choice(list(sent))
                how = choose.random()
                if not waiting[id].done():
                    ours.add(id)
                if how < 0.5:
                    sent[id].cancel()
                else:
                    waiting[id].cancel()

        def look() -> None:
            for line in peer.unread():
                if line["method"] == "notifications/cancelled":
                    cancels.append(line["params"]["requestId"])
                    assert cancels[-1] in seen, "a cancel ahead of its request"
                else:
                    seen.append(line["id"])

        def answer() -> None:
            if seen:
                id = choose.choice(seen)
                if choose.random() < 0.5 and era is MODERN:
                    peer.notify("notifications/cancelled", {"requestId": id})
                else:
                    peer.respond(id, {"content": [], "_meta": {SUBSCRIPTION: id}})

        for _ in range(STEPS):
            for action in choose.choices([ask, cancel, look, answer], weights=[4, 3, 4, 4], k=choose.choice((1, 1, 3))):
                action()
            await turns(choose.choice((0, 1, 2, 4)))
        await turns()
        look()
        for id in seen:
            peer.respond(id, {"content": []})
        outcomes = await asyncio.wait_for(asyncio.gather(*waiting.values(), return_exceptions=True), 10)
        await turns()
        look()
        assert len(cancels) == len(set(cancels)), "cancelled twice"
        assert set(cancels) <= ours, "a cancel that nobody asked for"
        for id, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, acprt.RpcError):
                assert (outcome.code, id in ours, id in listens) == (-32800, True, False)
            elif isinstance(outcome, asyncio.CancelledError):
                assert id in ours
            elif isinstance(outcome, mcp.SubscriptionClosed):
                assert id in listens
                assert outcome.closed_by == "server" or id in ours
            else:
                assert isinstance(outcome, mcp.CallToolResult), outcome
                assert id not in listens
        assert cx.status().pending == []


# -- the runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(SEEDS), id="some"),
        pytest.param(range(SEEDS, SEEDS + SOAK_SEEDS), id="many", marks=[pytest.mark.slow, pytest.mark.timeout(240)]),
    ],
)
@pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)
@pytest.mark.parametrize("drive", [drive_server, drive_client], ids=["server", "client"])
def test_every_order_of_things_ends_well(run, drive, era, seeds):
    async def main():
        for seed in seeds:
            try:
                await drive(era, seed)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise

    run(main(), timeout=220)
