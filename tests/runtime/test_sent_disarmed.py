"""Cancels that are not sent any more, because the request has its outcome, or that a dialect handles its own way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_server_for, turns
from tests.runtime.ordered import answer, note, noting, sent_by

CANCELLED = ["work", "$/cancel_request"]


class TestAfterTheEnd:
    """Nothing is cancelled that has its outcome."""

    @pytest.mark.parametrize("asking", ["cancel", "drop"])
    def test_after_the_response(self, run, asking):
        """SR-15, SR-16: routed, though never consumed."""

        async def main():
            async with raw_server_for(noting([])) as (cx, peer):
                sent = cx.send_request("work")
                peer.send(answer(1), note("after"))
                await turns()
                if asking == "cancel":
                    sent.cancel()
                del sent
                assert await sent_by(peer) == ["work"]

        run(main())

    def test_after_completion(self, run):
        """SR-16: a handle that did its work goes quietly."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                task = asyncio.create_task(sent.block_task())
                await turns()
                peer.send(answer(1))
                await task
                sent.cancel()
                del sent, task
                assert await sent_by(peer) == ["work"]

        run(main())

    def test_after_eof(self, run):
        """SR-16: a request failed by EOF is over."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                peer.close_write()
                await cx.incoming_closed()
                sent.cancel()
                del sent
                await turns()
                assert [line["method"] for line in peer.unread()] == ["work"]

        run(main())

    @pytest.mark.parametrize("asking", ["cancel", "drop"])
    def test_of_a_request_that_was_never_written(self, run, asking):
        """SR-16, SR-27: scalar params were refused here; the peer hears of neither."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work", 5)
                if asking == "cancel":
                    sent.cancel()
                del sent
                assert await sent_by(peer) == []

        run(main())

    @pytest.mark.parametrize("what", ["claimed", "kept"])
    def test_after_a_handler_took_the_response(self, run, what):
        """SR-15: an interceptor that dropped or keeps the router has disarmed the cancel all the same."""

        async def main():
            endpoint = acprt.Endpoint()
            kept: list[Any] = []

            @endpoint.on_receive_dispatch
            async def take(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
                if dispatch.kind != "response":
                    return acprt.Handled.no(dispatch)
                if what == "kept":
                    kept.append(dispatch.router)
                return None

            async with raw_server_for(endpoint) as (cx, peer):
                sent = cx.send_request("work")
                peer.send(answer(1))
                await turns()
                sent.cancel()
                del sent
                assert await sent_by(peer) == ["work"]
                kept.clear()

        run(main())

    def test_answer_not_read_yet_does_not_stop_a_cancel(self, run):
        """SR-25: disarming happens at dispatch, not at arrival; the answer still counts."""

        async def main():
            endpoint = acprt.Endpoint()
            entered, release = asyncio.Event(), asyncio.Event()

            @endpoint.on_receive_request("hold")
            async def hold(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                entered.set()
                await release.wait()
                responder.respond(None)

            async with raw_server_for(endpoint) as (cx, peer):
                sent = cx.send_request("work")
                peer.request("h", "hold")
                await entered.wait()
                peer.send(answer(1, "queued"))
                while cx.status().inbox.count < 2:
                    await asyncio.sleep(0)
                sent.cancel()
                lines = [await peer.receive(), await peer.receive()]
                assert [line["method"] for line in lines] == CANCELLED
                release.set()
                assert await sent.block_task() == "queued"

        run(main())


class TestSilentDialect:
    """A dialect that answers no cancelled request (DEC-11)."""

    class Silent(acprt.Dialect):
        answers_cancelled = False

    def test_waiter_stops_at_once(self, run):
        """DEC-11: nothing will come, so the waiter gets -32800 here."""

        async def main():
            async with raw_server_for(acprt.Endpoint(dialect=self.Silent())) as (cx, peer):
                sent = cx.send_request("work")
                task = asyncio.create_task(sent.block_task())
                await turns()
                sent.cancel()
                with pytest.raises(acprt.RpcError) as caught:
                    await task
                assert caught.value.code == acprt.ErrorCode.REQUEST_CANCELLED
                assert await sent_by(peer) == CANCELLED

        run(main())

    def test_callback_is_told_without_a_barrier(self, run):
        """DEC-11, OB-09: a request that ends here runs its callback as a task."""

        async def main():
            results: list[Any] = []

            async def callback(result: Any) -> None:
                results.append(result.error.code)

            async with raw_server_for(acprt.Endpoint(dialect=self.Silent())) as (cx, _peer):
                sent = cx.send_request("work")
                sent.on_receiving_result(callback)
                sent.cancel()
                assert results == []
                await turns()
                assert results == [acprt.ErrorCode.REQUEST_CANCELLED]

        run(main())

    def test_answer_that_comes_anyway_is_late(self, run):
        """DEC-11, DEC-24: it is recognised and dropped."""

        async def main():
            async with raw_server_for(acprt.Endpoint(dialect=self.Silent())) as (cx, peer):
                sent = cx.send_request("work")
                sent.cancel()
                peer.send(answer(1))
                await peer.settled()
                assert cx.status().counters.late_responses == 1
                with pytest.raises(acprt.RpcError):
                    await sent.block_task()

        run(main())

    def test_cancel_that_the_dialect_forbids_is_not_sent(self, run):
        """SR-22: `may_cancel_outgoing` says no: nothing is written and the wait goes on."""

        class Forbidding(acprt.Dialect):
            def may_cancel_outgoing(self, method: str) -> bool:
                return method != "initialize"

        async def main():
            async with raw_server_for(acprt.Endpoint(dialect=Forbidding())) as (cx, peer):
                sent = cx.send_request("initialize")
                task = asyncio.create_task(sent.block_task())
                await turns()
                sent.cancel()
                assert await sent_by(peer) == ["initialize"]
                peer.send(answer(1, "done"))
                assert await task == "done"

        run(main())
