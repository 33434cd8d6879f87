"""Our own requests in time: what a timeout sends, and what progress does to it."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, LEGACY, cancel, client_endpoint, request_of, server_for, until
from tests.rawpeer import turns

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


@both_eras
class TestClocks:
    def test_silence_ends_a_call_and_cancels_it_once(self, run, era):
        """The idle clock, and the absolute one when progress keeps the other going; a cancel in both cases."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                for idle, absolute, why in (
                    (0.02, 60.0, "no progress within"),
                    (math.inf, 0.02, "no result within"),
                ):
                    with pytest.raises(TimeoutError, match=why):
                        await mcp.call(
                            cx, mcp.CallToolRequest(name="slow"), idle_seconds=idle, absolute_seconds=absolute
                        )
                    request = await request_of(peer)
                    assert await peer.receive() == cancel(request["id"], reason=f"{why} 0.02 s")
                await turns()
                assert peer.unread() == []

        run(main())

    def test_progress_winds_up_the_idle_clock_only(self, run, era):
        """It is told in order, before the result; the absolute clock goes on."""
        client = client_endpoint(era)

        async def main():
            told: list[float] = []

            async with server_for(client) as (cx, peer):

                def go_on(note: mcp.ProgressNotification) -> None:
                    told.append(note.progress)
                    cx.loop.call_later(0.001, progress, note.progress_token)

                def progress(token: Any) -> None:
                    peer.notify("notifications/progress", {"progressToken": token, "progress": len(told)})

                call = asyncio.create_task(
                    mcp.call(
                        cx,
                        mcp.CallToolRequest(name="slow"),
                        on_progress=go_on,
                        idle_seconds=0.4,
                        absolute_seconds=0.6,
                    )
                )
                progress((await request_of(peer))["params"]["_meta"]["progressToken"])
                with pytest.raises(TimeoutError, match=r"no result within 0\.6 s"):
                    await call
                assert told == list(range(len(told)))
                assert await peer.receive() == cancel(1, reason="no result within 0.6 s")

        run(main())

    def test_result_comes_behind_its_progress(self, run, era):
        """In one chunk, too; a listener that fails costs nothing else."""
        client = client_endpoint(era)

        async def main():
            told: list[Any] = []

            def listener(note: mcp.ProgressNotification) -> None:
                told.append((note.progress, note.total, note.message))
                raise ValueError("a listener's own failure")

            async with server_for(client) as (cx, peer):
                call = asyncio.create_task(
                    mcp.call(cx, mcp.CallToolRequest(name="quick"), on_progress=listener, idle_seconds=math.inf)
                )
                request = await request_of(peer)
                token = request["params"]["_meta"]["progressToken"]
                note = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
                peer.send(
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": note},
                    {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [mcp.text_content("x")]}},
                )
                result = await call
                assert result.content == [{"type": "text", "text": "x"}]
                assert told == [(1, 2, "half")]

        run(main())

    def test_dead_token_is_heard_by_nobody(self, run, era):
        """Of a call that is answered or cancelled; tokens that others made are theirs."""
        client = client_endpoint(era)
        heard: list[Any] = []

        @client.on_receive_notification
        async def progress(note: mcp.ProgressNotification) -> None:
            heard.append(note.progress_token)

        async def main():
            async with server_for(client) as (cx, peer):
                call = asyncio.create_task(mcp.call(cx, mcp.CallToolRequest(name="x")))
                token = (await request_of(peer))["params"]["_meta"]["progressToken"]
                for each in (token, "mine", 7):
                    peer.notify("notifications/progress", {"progressToken": each, "progress": 1})
                await until(lambda: heard == [token, "mine", 7])
                call.cancel()
                await peer.receive()
                for each in (token, "mine"):
                    peer.notify("notifications/progress", {"progressToken": each, "progress": 2})
                await until(lambda: heard[3:])
                assert heard[3:] == ["mine"]

        run(main())

    def test_timeout_of_a_request_that_cannot_leave_is_bounded(self, run, era):
        """The pipe is full: nobody waits for the cancel to be written."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                peer.transport.pause_reading()
                cx.send_request("fill", {"text": "x" * 2_000_000}).detach()
                with pytest.raises(TimeoutError):
                    await mcp.call(cx, mcp.CallToolRequest(name="x"), idle_seconds=0.02)
                with pytest.raises(TimeoutError):
                    await cx.send_request("a", {}).block_task(timeout=0.02)
                peer.transport.resume_reading()

        run(main())

    def test_opening_that_times_out_is_given_up_without_a_cancel(self, run, era):
        """Whoever calls it: the server must not be told."""
        client = client_endpoint(era)
        opening: Any = mcp.DiscoverRequest()
        if era is LEGACY:
            me = mcp.Implementation(name="c", version="0")
            opening = mcp.InitializeRequest(protocol_version="2024-11-05", client_info=me)

        async def main():
            async with server_for(client) as (cx, peer):
                with pytest.raises(TimeoutError, match="no progress"):
                    await mcp.call(cx, opening, idle_seconds=0.02)
                await request_of(peer)
                await turns()
                assert peer.unread() == []

        run(main())

    def test_call_on_a_closed_connection_fails_like_any_other(self, run, era):
        """And leaves no token behind for the next request."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                peer.close_write()
                await cx.incoming_closed()
                with pytest.raises(acprt.RpcError):
                    await mcp.call(cx, mcp.CallToolRequest(name="x"))
                assert isinstance(cx.dialect, mcp.McpDialect)
                assert cx.dialect.next_token is None

        run(main())

    def test_call_of_what_is_no_request_leaves_nothing_behind(self, run, era):
        """No token for the next request to take."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                not_a_request: Any = mcp.InitializedNotification()
                with pytest.raises(TypeError):
                    await mcp.call(cx, not_a_request)
                sent = cx.send_request("any", {})
                assert "progressToken" not in (await peer.receive())["params"].get("_meta", {})
                sent.detach()

        run(main())

    def test_subscription_has_no_clock(self, run, era):
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, _peer):
                with pytest.raises(TypeError, match="lives until it is closed"):
                    await mcp.call(cx, mcp.ListenRequest(notifications=mcp.SubscriptionFilter()))

        run(main())

    def test_error_of_the_peer_is_raised_as_it_is(self, run, era):
        """And a TimeoutError that a handler's data may mention is not ours."""
        client = client_endpoint(era)

        async def main():
            async with server_for(client) as (cx, peer):
                call = asyncio.create_task(mcp.call(cx, mcp.CallToolRequest(name="x")))
                peer.respond_error((await request_of(peer))["id"], -32602, "Unknown tool")
                with pytest.raises(acprt.RpcError, match="Unknown tool"):
                    await call

        run(main())
