"""Closing a v2 session: its work ends first, and nothing follows the answer."""

from __future__ import annotations

import asyncio
import logging

from acprt.acp import v2
from acprt.acp.sessions_v2 import AgentSession, Work
from tests.acp.sessions_v2.serving import Agent, cancel, client_of, insertion, next_update, prompt, until_cancelled
from tests.acp.sessions_v2.wire import idle


def test_close_cancels_the_work_before_it_is_answered_and_nothing_follows(run) -> None:
    agent = Agent(until_cancelled)
    closed: list[str] = []

    @agent.sessions.on_close
    async def on_close(session: AgentSession) -> None:
        closed.append(session.id)

    async def main() -> None:
        async with client_of(agent) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            peer.request(2, "session/close", {"sessionId": "s"})
            assert await next_update(peer) == idle("cancelled")
            assert await peer.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
            assert closed == ["s"]
            session = agent.session
            assert session is not None
            assert session.is_closed
            session.update(v2.ToolCallUpdate(tool_call_id="c"))
            session.report_state()
            prompt(peer, 3)
            (line,) = await peer.settled()
            assert (line["id"], line["error"]["code"]) == (3, -32002)

    run(main())


def test_session_that_is_closed_twice_at_once_is_closed_once_and_answered_twice(run) -> None:
    agent = Agent(until_cancelled)
    closed: list[str] = []
    goes_on = asyncio.Event()

    @agent.sessions.on_close
    async def on_close(session: AgentSession) -> None:
        closed.append(session.id)
        await goes_on.wait()

    async def main() -> None:
        async with client_of(agent) as peer:
            peer.request(1, "session/close", {"sessionId": "s"})
            peer.request(2, "session/close", {"sessionId": "s"})
            assert await peer.settled() == []
            goes_on.set()
            assert sorted([(await peer.receive())["id"], (await peer.receive())["id"]]) == [1, 2]
            assert closed == ["s"]

    run(main())


def test_second_cancel_does_not_disturb_the_cleaning_up(run) -> None:
    cleaned: list[str] = []
    cleaning, goes_on = asyncio.Event(), asyncio.Event()

    async def clean_up(work: Work) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await goes_on.wait()
            cleaned.append("all of it")

    async def main() -> None:
        async with client_of(Agent(clean_up)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            cancel(peer)
            await cleaning.wait()
            cancel(peer)
            await peer.settled()
            goes_on.set()
            assert await next_update(peer) == idle("cancelled")
            assert cleaned == ["all of it"]

    run(main())


def test_closing_an_idle_session_sends_no_update(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled)) as peer:
            peer.request(1, "session/close", {"sessionId": "s"})
            peer.request(2, "session/close", {"sessionId": "s"})
            answers = [await peer.receive(), await peer.receive()]
            assert sorted(answer["id"] for answer in answers) == [1, 2]
            assert [answer["result"] for answer in answers] == [{}, {}]

    run(main())


def test_prompts_behind_a_close_are_not_taken(run) -> None:
    """Also while the close is not finished, and whatever the policy for held prompts."""
    stops = asyncio.Event()

    async def slow_to_stop(work: Work) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await stops.wait()

    async def main() -> None:
        async with client_of(Agent(slow_to_stop, hold=True)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            prompt(peer, 2)
            peer.request(3, "session/close", {"sessionId": "s"})
            prompt(peer, 4)
            lines = await peer.settled()
            assert [(line["id"], line["error"]["code"]) for line in lines] == [(2, -32800), (4, -32002)]
            stops.set()
            assert await next_update(peer) == idle("cancelled")
            assert (await peer.receive())["id"] == 3

    run(main())


def test_failing_close_handler_does_not_keep_the_answer(run, caplog) -> None:
    agent = Agent(until_cancelled)

    @agent.sessions.on_close
    async def on_close(session: AgentSession) -> None:
        raise ValueError("oops")

    async def main() -> None:
        async with client_of(agent) as peer:
            with caplog.at_level(logging.ERROR, "acprt.acp"):
                peer.request(1, "session/close", {"sessionId": "s"})
                assert (await peer.receive())["result"] == {}
            assert "oops" in caplog.text

    run(main())
