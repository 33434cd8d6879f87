"""testy for clients of version 2: the lifecycle of a prompt on the wire, replay, and what it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2
from acprt.testing import testy
from tests.acp.talking import HELLO_V1, HELLO_V2, prompt_params, ready_client_of
from tests.rawpeer import RawPeer, raw_client_of
from tests.testing.scripted_client import program

ID = "testy-v2-session-1"


@asynccontextmanager
async def client_in_session() -> AsyncIterator[RawPeer]:
    async with ready_client_of(testy.agent(), HELLO_V2) as client:
        client.request("new", "session/new", {"cwd": "/work", "mcpServers": []})
        assert (await client.receive())["result"]["sessionId"] == ID
        yield client


def prompt(client: RawPeer, text: str, id: str = "p") -> None:
    client.request(id, "session/prompt", prompt_params(ID, text))


async def updates_to_idle(client: RawPeer) -> list[dict[str, Any]]:
    """The updates up to the one that tells the end of the work; answers are left out."""
    updates: list[dict[str, Any]] = []
    while not updates or updates[-1].get("state") != "idle":
        line = await client.receive()
        if line.get("method") == "session/update":
            updates.append(line["params"]["update"])
    return updates


@pytest.mark.parametrize(
    ("text", "said", "stop_reason"),
    [
        ("hello", "Hello, world!", "end_turn"),
        ("echo Ada", "Ada", "end_turn"),
        ("cancel_status", "cancel_status: not_cancelled", "end_turn"),
        ("full", "the scenario full is one of version 1", "refusal"),
        ('{"command":"list_tools","server":"s"}', "MCP servers are for sessions of version 1", "refusal"),
    ],
)
def test_prompt_is_accepted_then_told(run, text: str, said: str, stop_reason: str) -> None:
    """The acceptance, the user's message, running, one piece of the agent's message, idle."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, text)
            accepted = await client.receive()
            message_id = accepted["result"]["messageId"]
            user, running, chunk, idle = await updates_to_idle(client)
            assert (user["sessionUpdate"], user["messageId"]) == ("user_message", message_id)
            assert running["state"] == "running"
            assert (chunk["messageId"], chunk["content"]["text"]) == ("testy-v2-agent-message-1", said)
            assert idle["stopReason"] == stop_reason

    run(main())


def test_help_names_what_version_2_can_do(run) -> None:
    """No scenario that it would refuse."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "help")
            text = (await updates_to_idle(client))[2]["content"]["text"]
            assert "wait_for_cancel" in text
            assert "callbacks" not in text

    run(main())


def test_cancel_ends_at_idle_with_nothing_said(run) -> None:
    """A second prompt meanwhile is refused; a cancel of the idle session says nothing."""

    async def main() -> None:
        async with client_in_session() as client:
            client.notify("session/cancel", {"sessionId": ID})
            prompt(client, "wait_for_cancel")
            for _ in ("accepted", "user_message", "running"):
                await client.receive()
            prompt(client, "hello", "second")
            assert (await client.receive())["error"]["code"] == -32602
            client.notify("session/cancel", {"sessionId": ID})
            (idle,) = await updates_to_idle(client)
            assert idle == {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}
            assert await client.settled() == []

    run(main())


def test_close_waits_for_the_cancelled_work(run) -> None:
    """Its end is told before the answer; then there is no such session until it is resumed."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "wait_for_cancel")
            for _ in ("accepted", "user_message", "running"):
                await client.receive()
            client.request("end", "session/close", {"sessionId": ID})
            assert (await updates_to_idle(client))[-1]["stopReason"] == "cancelled"
            assert (await client.receive())["id"] == "end"
            prompt(client, "hello")
            assert "error" in await client.receive()

    run(main())


def test_resume_replays_whole_messages(run) -> None:
    """What was said in pieces comes back as messages; a list shows the session, closed or not."""

    async def main() -> None:
        client = acp.Client.v2("test")
        async with client.connect(testy.agent()) as cx:
            await acp.initialize(cx)
            async with sessions_v2.session(cx, cwd="/work") as session:
                await session.prompt("echo Ada").finished()
            listed = [info.session_id for info in await sessions_v2.list_sessions(cx, cwd="/work")]
            assert listed == [session.id]
            assert await sessions_v2.list_sessions(cx, cwd="/elsewhere") == []
            async with sessions_v2.resume_session(cx, session.id, cwd="/work", replay=True) as resumed:
                told = [
                    "".join(block.text for block in message.content if isinstance(block, v2.TextContent))
                    for message in resumed.projection.messages
                ]
            assert told == ["echo Ada", "Ada"]

    run(main())


@pytest.mark.parametrize(
    "params",
    [
        {"sessionId": ID, "cwd": "/elsewhere"},
        {"sessionId": ID, "cwd": "/work", "replayFrom": {"type": "moon"}},
        {"sessionId": "nobody", "cwd": "/work"},
    ],
)
def test_resume_is_refused_where_it_cannot_be_true(run, params: dict[str, Any]) -> None:
    """Another directory, a cursor that is not known, a session that is not."""

    async def main() -> None:
        async with client_in_session() as client:
            client.request("end", "session/close", {"sessionId": ID})
            await client.receive()
            client.request("r", "session/resume", params | {"mcpServers": []})
            assert (await client.receive())["error"]["code"] == -32602

    run(main())


@pytest.mark.parametrize(("hello", "version"), [(HELLO_V1, 1), (HELLO_V2, 2), (HELLO_V2 | {"protocolVersion": 9}, 2)])
def test_client_is_served_in_its_version(run, hello: dict[str, Any], version: int) -> None:
    """The highest that is not above the one it asks for."""

    async def main() -> None:
        async with raw_client_of(testy.agent()) as client:
            client.request(1, "initialize", hello)
            assert (await client.receive())["result"]["protocolVersion"] == version

    run(main())


def test_only_sessions_are_offered(run) -> None:
    """No scenario of version 1 is promised."""

    async def main() -> None:
        async with raw_client_of(testy.agent()) as client:
            client.request(1, "initialize", HELLO_V2)
            assert (await client.receive())["result"]["capabilities"] == {"session": {}}

    run(main())


def test_program_serves_version_2_on_stdio(run) -> None:
    """`python -m acprt.testing.testy`, a real child, for a client of the draft."""

    async def main() -> None:
        async with acp.Client.v2("test").connect(acprt.AgentProcess(*program())) as cx:
            assert (await acp.initialize(cx)).version == 2
            async with sessions_v2.session(cx, cwd="/work") as session:
                assert (await session.prompt("hello").finished()) == "end_turn"

    run(main())
