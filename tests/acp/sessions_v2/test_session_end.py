"""How followed sessions end on the wire: closed, left, and with their connection."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt.acp import SessionClosed, sessions_v2
from tests.acp.sessions_v2.wire import V2Client, expect, open_session, send_updates, serve_close, serve_opening, state
from tests.rawpeer import raw_server_for, turns


def test_leaving_the_block_closes_the_session(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):

            async def use() -> Any:
                async with sessions_v2.session(cx, cwd="/w") as session:
                    return session

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            await serve_close(peer)
            session = await using
            assert session.is_closed
            with pytest.raises(SessionClosed):
                session.prompt("more")
            await session.close()  # once is enough
            assert await peer.settled() == []

    run(main())


def test_unknown_session_counts_as_closed_and_other_errors_leave_it_open(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await open_session(cx, peer)
            closing = asyncio.ensure_future(session.close())
            peer.respond_error((await expect(peer, "session/close"))["id"], -32603, "?")
            with pytest.raises(acprt.RpcError):
                await closing
            assert not session.is_closed
            closing = asyncio.ensure_future(session.close())
            peer.respond_error((await expect(peer, "session/close"))["id"], -32002, "?")
            await closing
            assert session.is_closed

    run(main())


def test_block_that_is_left_waits_only_so_long_for_an_agent_that_does_not_close(run, caplog) -> None:
    client = V2Client("c", limits=acprt.Limits(cancel_grace_seconds=0.0))

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):

            async def use() -> None:
                async with sessions_v2.session(cx, cwd="/w"):
                    pass

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            with caplog.at_level(logging.WARNING, "acprt.acp"):
                await using
            assert "was not closed by the agent" in caplog.text

    run(main())


def test_block_left_by_a_cancellation_does_not_wait(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opened = asyncio.Event()

            async def use() -> None:
                async with sessions_v2.session(cx, cwd="/w"):
                    opened.set()
                    await asyncio.Event().wait()

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            await opened.wait()
            using.cancel()
            await asyncio.wait([using])
            assert using.cancelled()
            await expect(peer, "session/close")

    run(main())


def test_end_of_the_connection_fails_what_waits_and_closes_the_session(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await open_session(cx, peer)
            send_updates(peer, state("running"))
            await peer.settled()
            waiting = asyncio.ensure_future(session.until_idle())
            await turns()
            peer.close_write()
            with pytest.raises(acprt.RpcError) as raised:
                await waiting
            assert acprt.is_incoming_transport_closed(raised.value)
            assert session.is_closed
            await session.aclose()

    run(main())


def test_cancel_and_leaving_on_a_connection_that_is_over_are_no_errors(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await open_session(cx, peer)
            assert repr(session) == "<Session s idle>"
            await cx.aclose()
            session.cancel()
            session.abandon()
            await session.aclose()
            assert repr(session) == "<Session s closed>"

    run(main())
