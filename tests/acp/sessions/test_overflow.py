"""A reader that is too slow: the bound of a session, and what it costs."""

from __future__ import annotations

import pytest

import acprt
from acprt import acp
from tests.acp.sessions.scripted import (
    begin,
    chunk,
    connected,
    in_session,
    opened,
    read,
    received,
    stopped,
    texts,
)


class TestOverflow:
    """A reader that does not read costs its own turn (DEC-29)."""

    LIMITS = acprt.Limits(session_bytes=1_000)

    def test_the_turn_is_cancelled_and_fails_behind_what_was_kept(self, run):
        async def main():
            async with in_session(limits=self.LIMITS) as (session, peer):
                turn = session.prompt("one")
                first = begin(anext(turn))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("begin"))
                assert texts([await first]) == ["begin"]
                peer.send(*(chunk(str(n)) for n in range(100)))  # and nobody reads
                await received(peer, "session/cancel")
                peer.send(*(chunk("more") for _ in range(100)), stopped(prompt, "cancelled"))
                await peer.settled()
                kept = []
                with pytest.raises(acp.SessionOverflow, match="session_bytes") as raised:
                    async for each in turn:
                        kept.append(each)  # noqa: PERF401 - what came before the error is looked at
                assert 1 < len(kept) < 20
                assert texts(kept) == [str(n) for n in range(len(kept))]
                assert raised.value.data["reason"] == "session_overflow"
                following = begin(session.prompt("two").text())
                second = await received(peer, "session/prompt")
                peer.send(chunk("fine"), stopped(second))
                assert await following == "fine"

        run(main())

    def test_no_other_session_notices(self, run):
        async def main():
            async with connected(limits=self.LIMITS) as (cx, peer):
                one, two = await opened(cx, peer, "one"), await opened(cx, peer, "two")
                slow = one.prompt("x")
                begun = begin(anext(slow))
                first = await received(peer, "session/prompt")
                reading = begin(two.prompt("y").text())
                second = await received(peer, "session/prompt")
                peer.send(chunk("1", "one"))
                await begun
                peer.send(*(chunk("flood", "one") for _ in range(100)), chunk("calm", "two"), stopped(second))
                assert await reading == "calm"
                assert (await received(peer, "session/cancel"))["params"] == {"sessionId": "one"}
                peer.send(stopped(first, "cancelled"))
                with pytest.raises(acp.SessionOverflow):
                    await slow.finished()

        run(main())

    def test_one_update_larger_than_the_limit_is_kept(self, run):
        async def main():
            async with in_session(limits=self.LIMITS) as (session, peer):
                reading = begin(session.prompt("one").text())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("x" * 5_000), stopped(prompt))
                assert await reading == "x" * 5_000

        run(main())

    def test_between_turns_what_does_not_fit_is_counted(self, run):
        """There is no turn to fail."""

        async def main():
            async with in_session(limits=self.LIMITS) as (session, peer):
                peer.send(*(chunk(str(n)) for n in range(100)))
                assert await peer.settled() == []
                assert 80 < session.dropped_updates < 100
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("answer"), stopped(prompt))
                kept = texts(await reading)
                assert kept[-1] == "answer"
                assert kept[:-1] == [str(n) for n in range(100 - session.dropped_updates)]

        run(main())
