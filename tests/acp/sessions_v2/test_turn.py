"""Turns on the wire: their stages, their updates, their text, and how they end by themselves."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt.acp import SessionOverflow, v2
from tests.acp.sessions_v2.wire import V2Client, accept, chunk, expect, idle, opened, send_updates, state, text, update
from tests.rawpeer import turns


def test_stages_are_awaited_one_by_one(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            accepted = asyncio.ensure_future(turn.accepted())
            started = asyncio.ensure_future(turn.started())
            finished = asyncio.ensure_future(turn.finished())
            assert await accept(peer) == {"sessionId": "s", "prompt": [text("go")]}
            assert await accepted == "m1"
            await turns()
            assert not started.done()
            send_updates(peer, state("running"))
            await started
            await turns()
            assert not finished.done()
            send_updates(peer, idle("end_turn"))
            assert await finished == "end_turn"
            assert (turn.message_id, turn.stop_reason, turn.is_finished) == ("m1", "end_turn", True)
            assert await turn == "end_turn"  # again, and at once

    run(main())


def test_acceptance_is_independent_of_the_updates(run) -> None:
    """The work may begin, and end, before the prompt is answered."""

    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            request = await expect(peer, "session/prompt")
            send_updates(peer, state("running"), chunk("hi"), idle("end_turn"))
            await turn.started()
            await peer.settled()
            assert not turn.is_finished
            peer.respond(request["id"], {"messageId": "m1"})
            assert await turn == "end_turn"

    run(main())


@pytest.mark.parametrize("prompt", ["hi", v2.TextContent(text="hi"), [v2.TextContent(text="hi")], ["hi"]])
def test_prompt_is_a_text_a_block_or_several_of_either(run, prompt) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            session.prompt(prompt)
            assert (await accept(peer))["prompt"] == [text("hi")]

    run(main())


def test_updates_are_read_in_wire_order_until_the_work_ends(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            send_updates(
                peer, idle("end_turn"), state("running"), chunk("a"), update("_odd"), chunk("b"), idle("end_turn"),
                chunk("background"),
            )  # fmt: skip
            kinds = [
                each["sessionUpdate"] if isinstance(each, v2.Unknown) else each.session_update async for each in turn
            ]
            assert kinds == [
                "state_update", "state_update", "agent_message_chunk", "_odd", "agent_message_chunk", "state_update",
            ]  # fmt: skip
            assert turn.stop_reason == "end_turn"
            assert [each async for each in turn] == []

    run(main())


def test_text_is_what_the_agent_said_in_the_work_of_the_prompt(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            send_updates(peer, state("running"), chunk("earlier", "a0"), idle("end_turn"))
            await peer.settled()
            turn = session.prompt("go")
            await accept(peer)
            send_updates(
                peer, state("running"), chunk("draft", "a1"), chunk("hm", "t1", "agent_thought_chunk"),
                update("agent_message", messageId="a1", content=[text("Final")]), chunk("!", "a1"), idle("end_turn"),
                state("running"), chunk("later", "a2"), idle("end_turn"),
            )  # fmt: skip
            assert await turn.text() == "Final!"

    run(main())


def test_failure_of_the_agent_is_a_stop_reason_with_an_error(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            send_updates(
                peer, state("running"), state("idle", stopReason="error", error={"code": -32603, "message": "x"})
            )
            assert await turn == "error"
            assert turn.end is not None
            assert turn.end.error == v2.Error(code=-32603, message="x")

    run(main())


def test_refused_prompt_raises_everywhere_and_the_session_goes_on(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            request = await expect(peer, "session/prompt")
            peer.respond_error(request["id"], -32602, "busy")
            for wait in (turn.accepted(), turn.started(), turn.finished(), turn.text(), anext(aiter(turn))):
                with pytest.raises(acprt.RpcError, match="busy"):
                    await wait
            again = session.prompt("go")
            await accept(peer)
            send_updates(peer, state("running"), idle("end_turn"))
            assert await again == "end_turn"

    run(main())


def test_two_turns_of_one_session_each_have_their_own_end(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            first, second = session.prompt("one"), session.prompt("two")
            await accept(peer, "m1")
            held = await expect(peer, "session/prompt")
            send_updates(
                peer, update("user_message", messageId="m1"), state("running"), chunk("a", "a1"), idle("end_turn")
            )
            assert await first.text() == "a"
            assert not second.is_finished
            peer.respond(held["id"], {"messageId": "m2"})
            send_updates(
                peer, update("user_message", messageId="m2"), state("running"), chunk("b", "a2"), idle("refusal")
            )
            assert await second == "refusal"
            assert await second.text() == "b"
            assert first.stop_reason == "end_turn"

    run(main())


def test_turn_shows_its_stage(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            shown = [repr(turn)]
            await accept(peer)
            await turn.accepted()
            shown.append(repr(turn))
            send_updates(peer, state("running"))
            await turn.started()
            shown.append(repr(turn))
            send_updates(peer, idle("end_turn"))
            await turn
            shown.append(repr(turn))
            stages = ["sent", "accepted", "started", "finished end_turn"]
            assert shown == [f"<Turn of s {stage}>" for stage in stages]

    run(main())


def test_dropped_turn_changes_nothing_for_the_agent(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            session.prompt("go")
            await accept(peer)
            send_updates(peer, state("running"))
            assert await peer.settled() == []
            assert session.projection.in_work

    run(main())


def test_reader_that_is_too_slow_gets_what_was_kept_and_then_the_overflow(run) -> None:
    async def main() -> None:
        async with opened(V2Client("c", limits=acprt.Limits(session_bytes=300))) as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            reader = aiter(turn)
            send_updates(peer, state("running"), *(chunk("x" * 50, f"a{number}") for number in range(9)))
            await expect(peer, "session/cancel")
            read = 0
            with pytest.raises(SessionOverflow, match="300 bytes"):
                async for _ in reader:
                    read += 1
            assert read == 2
            send_updates(peer, idle("cancelled"))
            assert await turn == "cancelled"
            assert len(session.projection.messages) == 9

    run(main())


def test_turn_that_is_only_waited_for_never_overflows(run) -> None:
    async def main() -> None:
        async with opened(V2Client("c", limits=acprt.Limits(session_bytes=300))) as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            send_updates(peer, state("running"), *(chunk("x" * 50) for _ in range(9)), idle("end_turn"))
            assert await turn.text() == "x" * 450
            with pytest.raises(SessionOverflow):
                _ = [each async for each in turn]

    run(main())
