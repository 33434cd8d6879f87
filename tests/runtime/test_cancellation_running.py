"""The peer cancels a request whose handler runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of
from tests.runtime.scripted import CANCELLED, cancel, error, keeper, notification, request, result

Requests = acprt.Responder[Any]


CANCELLED_1 = error(1, -32800, "Request cancelled")


class TestWhileTheHandlerRuns:
    """A `method` task is cancelled; an ordered handler gets the marker only (DEC-9)."""

    def test_method_is_cancelled_and_answers_request_cancelled(self, run):
        """DEC-9: its clean-up runs first."""
        endpoint = acprt.Endpoint("x")
        cleaned = asyncio.Event()

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning")
                cleaned.set()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.receive() == notification("cleaning")
                assert await peer.receive() == CANCELLED_1
                assert cleaned.is_set()
                assert await peer.settled() == []

        run(main())

    def test_value_returned_in_spite_of_the_cancel_is_the_answer(self, run):
        """DEC-9, SR-21: the work was done after all."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> str:
            try:
                await asyncio.Event().wait()
                return "whole"
            except asyncio.CancelledError:
                return "partial"

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.receive() == result(1, "partial")
                peer.cancel(1)
                assert await peer.settled() == []

        run(main())

    @pytest.mark.parametrize("raised", [ValueError("broken clean-up"), acprt.RpcError(-1, "own error")])
    def test_anything_raised_after_the_cancel_is_request_cancelled(self, run, caplog, raised):
        """DEC-9: what broke is logged, the peer gets the answer to its cancel."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise raised

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.settled() == [CANCELLED_1]

        with caplog.at_level(logging.DEBUG, "acprt.dispatch"):
            run(main())
        assert str(raised) in caplog.text

    def test_running_synchronous_handler_is_answered_for_at_once(self, run):
        """DEC-15: a thread cannot be stopped; its value is discarded when it comes."""
        endpoint = acprt.Endpoint("x")
        started, release = threading.Event(), threading.Event()
        returned = threading.Event()

        @endpoint.method("block")
        def block(_params: Any) -> str:
            started.set()
            assert release.wait(10)
            returned.set()
            return "too late"

        async def main():
            try:
                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "block")
                    assert await asyncio.to_thread(started.wait, 5)
                    peer.cancel(1)
                    assert await peer.receive() == CANCELLED_1
                    release.set()
                    assert await asyncio.to_thread(returned.wait, 5)
                    assert await peer.settled() == []
            finally:
                release.set()

        run(main())

    def test_ordered_handler_sees_its_cancel_while_it_holds_the_loop(self, run):
        """CA-01, CA-08 (DEC-10): it is not aborted; it may look at the marker, and the answer is its own."""
        endpoint = acprt.Endpoint("x")
        entered = asyncio.Event()

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            entered.set()
            await responder.cancellation.cancelled()
            responder.respond("as far as I got")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await asyncio.wait_for(entered.wait(), 5)
                peer.cancel(1)
                assert await peer.settled() == [result(1, "as far as I got")]

        run(main())

    def test_kept_responder_is_only_marked(self, run):
        """CA-01: nobody but its holder answers."""
        endpoint, kept = keeper()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                peer.cancel(1)
                assert await peer.settled() == []
                assert kept[0].cancellation.is_cancelled
                kept[0].respond_with_error(acprt.RpcError.request_cancelled())
                assert await peer.settled() == [CANCELLED_1]

        run(main())

    def test_cancel_of_one_request_leaves_the_others_alone(self, run):
        """CA-02, ID-05: 1 and "1" are two requests."""
        endpoint = acprt.Endpoint("x")
        kept: dict[Any, Requests] = {}

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            kept[responder.id] = responder

        async def main():
            ids = [1, "1", 0, -1, "", 2**53 + 1, None]
            async with raw_client_of(endpoint) as peer:
                for each in ids:
                    peer.request(each, "ask")
                await peer.settled()
                for count, each in enumerate(ids):
                    peer.cancel(each)
                    await peer.settled()
                    assert [kept[other].cancellation.is_cancelled for other in ids] == [
                        index <= count for index in range(len(ids))
                    ]
                for responder in kept.values():
                    responder.respond(None)
                assert len(await peer.settled()) == len(ids)

        run(main())

    def test_null_id_can_be_cancelled(self, run):
        """CA-10."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(None, "slow")
                await peer.settled()
                peer.cancel(None)
                assert await peer.receive() == {"jsonrpc": "2.0", "id": None, "error": CANCELLED}

        run(main())

    def test_second_cancel_is_nothing(self, run):
        """Reference race: two cancels for one id."""
        endpoint = acprt.Endpoint("x")
        cancels: list[int] = []

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            release = asyncio.Event()
            while True:
                try:
                    await release.wait()
                    return
                except asyncio.CancelledError:
                    cancels.append(1)
                    asyncio.get_running_loop().call_soon(release.set)

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.send(cancel(1), cancel(1), cancel(1))
                assert await peer.receive() == result(1, None)
                assert cancels == [1]

        run(main())

    def test_member_of_a_batch_is_cancelled_by_a_later_line(self, run):
        """CA-09: its slot carries the answer and the array leaves then."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        @endpoint.method("quick")
        async def quick(_params: Any) -> str:
            return "done"

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.send([request(1, "slow"), request(2, "quick")])
                assert await peer.settled() == []
                peer.cancel(1)
                assert await peer.receive() == [CANCELLED_1, result(2, "done")]

        run(main())
