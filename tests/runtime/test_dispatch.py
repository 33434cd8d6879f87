"""The dispatch loop: one message after the other, and responses to the waiters of their ids."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for, turns
from tests.runtime.ordered import answer, note, noting, request


class TestSequence:
    """Messages are handled one at a time."""

    def test_next_message_waits_for_the_handler(self, run):
        """DL-01: an ordered handler holds the loop, whatever comes behind it."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)
            entered, release = asyncio.Event(), asyncio.Event()

            @endpoint.on_receive_request("hold")
            async def hold(params: Any, responder: acprt.Responder[Any]) -> None:
                log.append("hold starts")
                entered.set()
                await release.wait()
                log.append("hold ends")
                responder.respond(None)

            async with raw_client_of(endpoint) as peer:
                peer.send(note("before"), request(1, "hold"), note("after"))
                await entered.wait()
                peer.send(note("later"))
                await turns()
                assert log == ["before", "hold starts"]
                release.set()
                await peer.receive()
                await peer.settled()
                assert log == ["before", "hold starts", "hold ends", "after", "later"]

        run(main())

    def test_cancel_is_recorded_before_any_handler_sees_it(self, run):
        """DL-02: the handler of the cancel notification finds the marker set already."""

        async def main():
            endpoint = acprt.Endpoint()
            kept: list[acprt.Responder[Any]] = []
            seen: list[bool] = []

            @endpoint.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                kept.append(responder)

            @endpoint.on_receive_notification("$/cancel_request")
            async def observe(params: Any) -> None:
                seen.append(kept[0].cancellation.is_cancelled)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await peer.settled()
                peer.cancel(1)
                await peer.settled()
                assert seen == [True]
                kept.pop().respond(None)
                await peer.receive()

        run(main())

    def test_responses_walk_the_handlers(self, run):
        """DL-03: a dispatch handler sees a response, may rewrite it, and the waiter gets what it passed on."""

        async def main():
            endpoint = acprt.Endpoint()
            seen: list[Any] = []

            @endpoint.on_receive_dispatch
            async def watch(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
                if dispatch.kind == "response":
                    seen.append((dispatch.method, dispatch.id, dispatch.result.unwrap()))
                    return acprt.Handled.no(dispatch.replace([dispatch.result.unwrap(), "rewritten"]))
                return acprt.Handled.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1, "x"))
                assert await waiter == ["x", "rewritten"]
                assert seen == [("work", 1, "x")]

        run(main())

    def test_responses_out_of_order(self, run):
        """DL-07: each waiter gets the answer of its own id."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiters = [asyncio.create_task(cx.send_request("work").block_task()) for _ in range(5)]
                await turns()
                for id in (4, 1, 5, 3, 2):
                    peer.send(answer(id, f"r{id}"))
                assert await asyncio.gather(*waiters) == ["r1", "r2", "r3", "r4", "r5"]

        run(main())

    def test_both_sides_call_each_other(self, run):
        """DL-08: a handler calls its caller back, on the same connection."""

        async def main():
            near, far = acprt.Endpoint("near"), acprt.Endpoint("far")

            @far.method("outer")
            async def outer(params: Any, cx: acprt.Connection) -> Any:
                return ["outer", await cx.send_request("inner", params).block_task()]

            @near.method("inner")
            async def inner(params: Any, cx: acprt.Connection) -> Any:
                return ["inner", params]

            async with near.connect(far) as cx:
                assert await cx.send_request("outer", [1]).block_task() == ["outer", ["inner", [1]]]

        run(main())


class TestUnknownResponses:
    """Responses that match nothing."""

    @pytest.mark.parametrize("id", [99, 0, -1, "1", None])
    def test_id_that_was_never_sent(self, run, id, caplog):
        """DL-04, DEC-24: warned of by name, counted, and nobody is answered."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                peer.send({"jsonrpc": "2.0", "id": id, "result": 1})
                assert [line["method"] for line in await peer.settled()] == ["work"]
                assert cx.status().counters.unmatched_responses == 1
                assert cx.status().pending[0].id == 1
                sent.detach()

        run(main())
        assert f"a response to no request of ours: id {id!r}" in caplog.text

    def test_second_response_counts_as_unknown(self, run):
        """DL-04: the first one stands."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1, "first"), answer(1, "second"))
                assert await waiter == "first"
                await peer.settled()
                assert cx.status().counters.unmatched_responses == 1

        run(main())

    def test_warnings_are_rate_limited(self, run, caplog):
        """DEC-24: a peer that floods us with answers does not flood the log; the counter tells the number."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                peer.send(*(answer(1000 + i) for i in range(500)))
                await peer.settled()
                assert cx.status().counters.unmatched_responses == 500

        run(main())
        assert 1 <= caplog.text.count("a response to no request of ours") < 10

    @pytest.mark.parametrize("way", ["drop", "detach"])
    def test_response_to_a_handle_that_is_gone_walks_and_ends(self, run, way):
        """DL-05: dispatched like any other, then discarded; the connection does not care."""

        async def main():
            endpoint = acprt.Endpoint()
            seen: list[Any] = []

            @endpoint.on_receive_dispatch
            async def watch(dispatch: acprt.Dispatch) -> acprt.Handled:
                seen.append((dispatch.kind, dispatch.method))
                return acprt.Handled.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                sent = cx.send_request("work")
                if way == "detach":
                    sent.detach()
                del sent
                peer.send(answer(1))
                await peer.settled()
                assert ("response", "work") in seen
                assert cx.status().counters.late_responses == (1 if way == "drop" else 0)
                assert cx.status().counters.unmatched_responses == 0

        run(main())
