"""Leaving a session: the agent is asked to close it where it can, in bounded time."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt import acp
from tests.acp.sessions.scripted import (
    CLOSES,
    begin,
    chunk,
    connected,
    failed,
    in_session,
    opened,
    read,
    received,
    stopped,
    texts,
)
from tests.rawpeer import turns


class TestLeaving:
    """The end of the `async with` block, and `close()`."""

    def test_an_agent_that_closes_sessions_is_asked_to(self, run):
        async def main():
            async with connected(capabilities=CLOSES) as (cx, peer):

                async def work():
                    async with acp.session(cx) as session:
                        return session

                working = begin(work())
                peer.respond((await received(peer, "session/new"))["id"], {"sessionId": "s"})
                request = await received(peer, "session/close")
                assert request["params"] == {"sessionId": "s"}
                peer.respond(request["id"], {})
                session = await working
                with pytest.raises(acp.SessionClosed):
                    await session.prompt("more").text()
                with pytest.raises(acp.SessionClosed):
                    await session.set_mode("x")

        run(main())

    def test_an_agent_that_does_not_is_asked_nothing(self, run):
        async def main():
            async with in_session() as (session, peer):
                async with session:
                    pass
                assert await peer.settled() == []
                peer.send(chunk("to nobody"))
                assert await peer.settled() == []
                assert (await opened(session.cx, peer, "s")).id == "s"

        run(main())

    def test_a_running_turn_is_cancelled_and_read_to_its_stop_reason(self, run):
        async def main():
            async with in_session(capabilities=CLOSES) as (session, peer):

                async def work():
                    async with session:
                        async for _ in session.prompt("go"):
                            break

                working = begin(work())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"))
                await received(peer, "session/cancel")
                assert await peer.settled() == []  # it waits before it closes
                peer.send(stopped(prompt, "cancelled"))
                peer.respond((await received(peer, "session/close"))["id"], {})
                await working
                assert session.stop_reason == "cancelled"

        run(main())

    def test_an_agent_that_answers_nothing_is_left_in_bounded_time(self, run, caplog):
        async def main():
            limits = acprt.Limits(cancel_grace_seconds=0.01)
            async with in_session(capabilities=CLOSES, limits=limits) as (session, peer):
                async with session:
                    turn = session.prompt("go")
                    reading = begin(turn.text())
                    await received(peer, "session/prompt")
                with pytest.raises(acp.SessionClosed, match="before the agent answered"):
                    await reading
                await received(peer, "session/cancel")
                await received(peer, "session/close")

        run(main())
        assert "no answer to a prompt" in caplog.text
        assert "was not closed by the agent" in caplog.text

    def test_who_is_cancelled_leaves_without_waiting(self, run):
        async def main():
            async with in_session(capabilities=CLOSES) as (session, peer):

                async def work():
                    async with session, session.prompt("go") as turn:
                        async for _ in turn:
                            pass

                working = begin(work())
                await received(peer, "session/prompt")
                working.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await working
                await received(peer, "session/cancel")
                await received(peer, "session/close")

        run(main())

    def test_leaving_behind_the_end_of_input_waits_for_nothing(self, run):
        async def main():
            async with in_session(capabilities=CLOSES) as (session, peer):
                async with session:
                    peer.close_write()
                    await session.cx.incoming_closed()
                with pytest.raises(acp.SessionClosed):
                    await session.prompt("x").text()

        run(main())

    def test_close_raises_what_the_agent_says_and_stays_open(self, run):
        async def main():
            async with in_session() as (session, peer):
                closing = begin(session.close())
                peer.send(failed(await received(peer, "session/close"), -32601, "Method not found"))
                with pytest.raises(acprt.RpcError):
                    await closing
                reading = begin(session.prompt("go").text())
                peer.send(stopped(await received(peer, "session/prompt")))
                assert await reading == ""

        run(main())

    def test_closing_what_the_agent_has_forgotten_is_a_success(self, run):
        async def main():
            async with in_session() as (session, peer):
                closing = begin(session.close())
                peer.send(failed(await received(peer, "session/close"), -32002, "Resource not found"))
                await closing
                await session.close()  # again
                await session.aclose()
                assert await peer.settled() == []

        run(main())

    def test_close_in_mid_turn_ends_the_turn_first(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                closing = begin(session.close())
                await received(peer, "session/cancel")
                peer.respond((await received(peer, "session/close"))["id"], {})
                await turns()
                assert not closing.done()
                peer.send(chunk("last"), stopped(prompt, "cancelled"))
                await closing
                assert texts(await reading) == ["last"]
                assert session.stop_reason == "cancelled"

        run(main())
