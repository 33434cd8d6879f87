"""Sessions of an agent are listed and deleted without being open."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt.acp import sessions_v2
from tests.acp.sessions_v2.wire import V2Client, expect
from tests.rawpeer import raw_server_for


def test_list_reads_every_page(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            listing = asyncio.ensure_future(sessions_v2.list_sessions(cx, cwd="/w"))
            first = await expect(peer, "session/list")
            assert first["params"] == {"cwd": "/w"}
            peer.respond(first["id"], {"sessions": [{"sessionId": "a", "cwd": "/w"}], "nextCursor": "2"})
            second = await expect(peer, "session/list")
            assert second["params"] == {"cwd": "/w", "cursor": "2"}
            peer.respond(second["id"], {"sessions": [{"sessionId": "b", "cwd": "/w"}]})
            assert [info.session_id for info in await listing] == ["a", "b"]

    run(main())


def test_list_that_goes_in_circles_is_an_error(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            listing = asyncio.ensure_future(sessions_v2.list_sessions(cx))
            for _ in range(2):
                page = await expect(peer, "session/list")
                peer.respond(page["id"], {"sessions": [], "nextCursor": "again"})
            with pytest.raises(acprt.RpcError, match="cursor_repeated"):
                await listing

    run(main())


def test_deleting_what_is_not_there_is_no_error(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            deleting = asyncio.ensure_future(sessions_v2.delete_session(cx, "x"))
            request = await expect(peer, "session/delete")
            assert request["params"] == {"sessionId": "x"}
            peer.respond_error(request["id"], -32002, "Resource not found")
            await deleting
            deleting = asyncio.ensure_future(sessions_v2.delete_session(cx, "x"))
            peer.respond_error((await expect(peer, "session/delete"))["id"], -32603, "disk")
            with pytest.raises(acprt.RpcError, match="disk"):
                await deleting

    run(main())
