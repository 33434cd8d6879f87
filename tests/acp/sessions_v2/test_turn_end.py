"""Turns on the wire that end otherwise: cancelled, left early, or with their session or connection."""

from __future__ import annotations

import asyncio
import logging

import pytest

import acprt
from acprt.acp import SessionClosed, sessions_v2
from tests.acp.sessions_v2.wire import V2Client, accept, chunk, expect, idle, opened, send_updates, state
from tests.rawpeer import turns


def test_cancel_ends_at_idle_with_the_reason_cancelled(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            send_updates(peer, state("running"))
            await turn.started()
            turn.cancel()
            assert (await expect(peer, "session/cancel"))["params"] == {"sessionId": "s"}
            send_updates(peer, chunk("last words"))
            await peer.settled()
            assert not turn.is_finished
            send_updates(peer, idle("cancelled"))
            assert await turn == "cancelled"
            turn.cancel()  # nothing is left to cancel
            assert await peer.settled() == []

    run(main())


def test_cancel_before_the_work_began_ends_at_the_idle_that_answers_it(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            await turn.accepted()
            turn.cancel()
            await expect(peer, "session/cancel")
            send_updates(peer, idle("cancelled"))
            assert await turn == "cancelled"
            assert await turn.text() == ""
            with pytest.raises(acprt.RpcError) as raised:
                await turn.started()
            assert raised.value.code == -32800

    run(main())


def test_prompt_that_a_cancel_kept_out_of_the_conversation_is_cancelled(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            request = await expect(peer, "session/prompt")
            turn.cancel()
            await expect(peer, "session/cancel")
            peer.respond_error(request["id"], -32800, "Request cancelled")
            assert await turn == "cancelled"
            with pytest.raises(acprt.RpcError) as raised:
                await turn.accepted()
            assert raised.value.code == -32800
            send_updates(peer, chunk("by the way"))
            await peer.settled()
            assert await turn.text() == ""

    run(main())


def test_block_left_early_cancels_and_waits_for_the_end(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):

            async def use() -> sessions_v2.Turn:
                async with session.prompt("go") as turn:
                    async for _ in turn:
                        break
                return turn

            using = asyncio.ensure_future(use())
            await accept(peer)
            send_updates(peer, state("running"))
            await expect(peer, "session/cancel")
            await turns()
            assert not using.done()
            send_updates(peer, idle("cancelled"))
            assert (await using).stop_reason == "cancelled"

    run(main())


def test_block_left_early_waits_only_so_long(run, caplog) -> None:
    async def main() -> None:
        async with opened(V2Client("c", limits=acprt.Limits(cancel_grace_seconds=0.0))) as (session, peer):
            with caplog.at_level(logging.WARNING, "acprt.acp"):
                async with session.prompt("go"):
                    pass
            assert "did not end 0 s after session/cancel" in caplog.text
            await expect(peer, "session/prompt")
            await expect(peer, "session/cancel")

    run(main())


def test_block_left_by_a_cancellation_cancels_the_turn_and_does_not_wait(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):

            async def use() -> None:
                async with session.prompt("go"):
                    await asyncio.Event().wait()

            using = asyncio.ensure_future(use())
            await accept(peer)
            using.cancel()
            await asyncio.wait([using])
            assert using.cancelled()
            await expect(peer, "session/cancel")

    run(main())


def test_end_of_the_connection_fails_a_turn_whose_prompt_was_answered(run) -> None:
    """No request is pending then: nothing else would tell it."""

    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            send_updates(peer, state("running"))
            await turn.started()
            finished = asyncio.ensure_future(turn.finished())
            await turns()
            peer.close_write()
            with pytest.raises(acprt.RpcError) as raised:
                await finished
            assert acprt.is_incoming_transport_closed(raised.value)
            with pytest.raises(acprt.RpcError):
                _ = [each async for each in turn]

    run(main())


def test_local_close_fails_a_turn_too(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            await turn.accepted()
            finished = asyncio.ensure_future(turn.finished())
            await turns()
            await session.cx.aclose()
            with pytest.raises(acprt.RpcError, match="closed"):
                await finished

    run(main())


def test_prompt_on_a_connection_that_is_over_fails_in_the_turn(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            peer.close_write()
            await session.cx.incoming_closed()
            with pytest.raises(SessionClosed):
                session.prompt("go")
        async with opened() as (session, peer):
            await session.cx.aclose()
            with pytest.raises(SessionClosed):
                session.prompt("go")

    run(main())


def test_block_left_because_the_connection_ended_raises_the_cause_and_not_another_error(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            with pytest.raises(acprt.RpcError) as raised:
                async with session.prompt("go") as turn:
                    await accept(peer)
                    peer.close_write()
                    await turn.finished()
            assert acprt.is_incoming_transport_closed(raised.value)

    run(main())


def test_turn_of_a_session_that_is_left_fails(run) -> None:
    async def main() -> None:
        async with opened() as (session, peer):
            turn = session.prompt("go")
            await accept(peer)
            session.abandon()
            with pytest.raises(acprt.RpcError, match="session_closed"):
                await turn

    run(main())
