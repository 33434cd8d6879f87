"""A turn that is left before its end: what the agent is told, and what the next prompt waits for."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt import acp
from tests.acp.sessions.scripted import (
    begin,
    chunk,
    in_session,
    read,
    received,
    stopped,
    texts,
)
from tests.rawpeer import turns


class TestLeaving:
    """Leaving early: the turn is cancelled, and its stop reason is waited for somewhere (DEC-30)."""

    def test_break_sends_a_cancel_and_the_next_prompt_waits_for_the_stop_reason(self, run):
        async def main():
            async with in_session() as (session, peer):

                async def first_update_only():
                    async for each in session.prompt("one"):
                        return each
                    return None

                reading = begin(first_update_only())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("dropped"))
                assert texts([await reading]) == ["a"]
                await received(peer, "session/cancel")
                following = begin(session.prompt("two").text())
                assert await peer.settled() == []  # it waits
                peer.send(chunk("dropped too"), stopped(prompt, "cancelled"), chunk("kept"))
                second = await received(peer, "session/prompt")
                peer.send(chunk(" b"), stopped(second))
                assert await following == "kept b"
                assert session.stop_reason == "end_turn"

        run(main())

    def test_an_exception_in_the_loop_cancels_too(self, run):
        async def main():
            async with in_session() as (session, peer):

                async def fails():
                    async for _ in session.prompt("one"):
                        raise KeyError("mine")

                reading = begin(fails())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"))
                with pytest.raises(KeyError):
                    await reading
                await received(peer, "session/cancel")
                peer.send(stopped(prompt, "cancelled"))

        run(main())

    def test_a_turn_dropped_on_another_thread_is_cancelled_on_its_own(self, run):
        """A garbage collector runs where it likes; the connection is not thread-safe."""

        async def main():
            async with in_session() as (session, peer):
                held = [session.prompt("one")]
                reading = begin(anext(held[0]))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"))
                await reading
                await asyncio.to_thread(held.clear)
                await received(peer, "session/cancel")
                peer.send(stopped(prompt, "cancelled"))
                await peer.settled()
                assert session.stop_reason == "cancelled"

        run(main())

    def test_break_at_the_last_update_of_an_answered_turn_cancels_nothing(self, run):
        async def main():
            async with in_session() as (session, peer):

                async def all_at_once():
                    async for each in session.prompt("one"):
                        await peer.settled()
                        return each
                    return None

                reading = begin(all_at_once())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("b"), stopped(prompt), chunk("late"))
                assert texts([await reading]) == ["a"]
                assert session.stop_reason == "end_turn"
                following = begin(session.prompt("two").text())
                peer.send(stopped(await received(peer, "session/prompt")))  # and no cancel before it
                assert await following == "late"

        run(main())

    def test_a_prompt_cancelled_while_it_waits_for_the_one_before_is_not_sent(self, run):
        async def main():
            async with in_session() as (session, peer):

                async def first_update_only():
                    async for _ in session.prompt("one"):
                        return

                reading = begin(first_update_only())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"))
                await reading
                await received(peer, "session/cancel")
                second = session.prompt("two")
                waiting = begin(read(second))
                await turns()
                with pytest.raises(RuntimeError, match="two tasks"):
                    await anext(second)
                second.cancel()
                peer.send(stopped(prompt, "cancelled"))
                assert await waiting == []
                third = begin(session.prompt("three").text())
                request = await received(peer, "session/prompt")
                assert request["params"]["prompt"][0]["text"] == "three"
                peer.send(stopped(request))
                assert await third == ""

        run(main())

    def test_async_with_waits_for_the_stop_reason(self, run):
        async def main():
            async with in_session() as (session, peer):

                async def leaves_early():
                    async with session.prompt("one") as turn:
                        async for _ in turn:
                            break
                    return turn.stop_reason, session.stop_reason

                reading = begin(leaves_early())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("b"))
                await received(peer, "session/cancel")
                await turns()
                assert not reading.done()
                peer.send(stopped(prompt, "cancelled"))
                assert await reading == ("cancelled", "cancelled")

        run(main())

    def test_async_with_sends_at_once(self, run):
        async def main():
            async with in_session() as (session, peer), session.prompt("one") as turn:
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), stopped(prompt))
                assert texts(await read(turn)) == ["a"]

        run(main())

    def test_a_timeout_around_a_turn_is_not_held_by_the_agent(self, run):
        async def main():
            async with in_session() as (session, peer):
                begun = asyncio.Event()

                async def patient():
                    async with session.prompt("one") as turn:
                        begun.set()
                        async for _ in turn:
                            pass

                reading = begin(patient())
                await begun.wait()
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                prompt = await received(peer, "session/prompt")
                await received(peer, "session/cancel")
                peer.send(stopped(prompt, "cancelled"))
                await peer.settled()
                assert session.stop_reason == "cancelled"

        run(main())

    def test_a_cancelled_text_gives_its_turn_up_while_the_error_is_still_held(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(session.prompt("one").text())
                await received(peer, "session/prompt")
                reading.cancel()
                with pytest.raises(asyncio.CancelledError) as held:
                    await reading
                await received(peer, "session/cancel")
                assert held.value.__traceback__

        run(main())

    def test_a_reader_in_another_task_ends_when_its_turn_is_left(self, run):
        async def main():
            async with in_session() as (session, peer):
                async with session.prompt("one") as turn:
                    reading = begin(read(turn))
                    prompt = await received(peer, "session/prompt")
                    peer.send(chunk("a"))
                    await peer.settled()
                    leaving = begin(turn.__aexit__(None, None, None))
                    await received(peer, "session/cancel")
                    assert texts(await reading) == ["a"]
                    peer.send(stopped(prompt, "cancelled"))
                    await leaving
                following = begin(session.prompt("two").text())
                peer.send(chunk("b"), stopped(await received(peer, "session/prompt")))
                assert await following == "b"

        run(main())

    def test_waiting_for_one_update_with_a_timeout_keeps_the_turn(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("one")
                waiting = begin(anext(turn))
                prompt = await received(peer, "session/prompt")
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert await peer.settled() == []
                reading = begin(read(turn))
                peer.send(chunk("a"), stopped(prompt))
                assert texts(await reading) == ["a"]

        run(main())

    def test_a_turn_whose_reader_was_cancelled_makes_way_for_the_next_one(self, run):
        """A traceback may hold it, so that it is not dropped; the next prompt shows that nobody reads on."""

        async def main():
            async with in_session() as (session, peer):
                held = session.prompt("one")
                reading = begin(read(held))
                prompt = await received(peer, "session/prompt")
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
                following = begin(session.prompt("two").text())
                await received(peer, "session/cancel")
                peer.send(stopped(prompt, "cancelled"))
                second = await received(peer, "session/prompt")
                peer.send(chunk("b"), stopped(second))
                assert await following == "b"
                assert await read(held) == []

        run(main())

    def test_an_agent_that_never_answers_a_cancelled_prompt_blocks_nobody_for_ever(self, run):
        async def main():
            limits = acprt.Limits(cancel_grace_seconds=0.0)
            async with in_session(limits=limits) as (session, peer):
                async with session.prompt("one"):
                    await received(peer, "session/prompt")
                await received(peer, "session/cancel")
                with pytest.raises(acp.PromptInFlight, match="has not answered its cancelled prompt"):
                    await session.prompt("two").text()
                assert await peer.settled() == []

        run(main())
