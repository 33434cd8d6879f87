"""The hooks of a dialect work by themselves: another protocol needs no change of the dispatch loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import cancel, error, keeper, notification, request, result, until_idle
from tests.runtime.speaking import Silent, speaking, waiting_endpoint

Requests = acprt.Responder[Any]


class TestAnswersCancelled:
    """`answers_cancelled = False`: the request just ends (DEC-9, DEC-11)."""

    @pytest.mark.parametrize("method", ["slow", "stubborn", "broken"])
    def test_nothing_is_written_for_a_cancelled_method(self, run, method):
        """DEC-9: whatever its handler returns or raises; it leaves the table when it has ended."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, method))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == []
                assert cx.status().in_flight == []

        run(main())

    def test_nothing_is_written_for_one_cancelled_before_it_began(self, run):
        """DEC-10: and its handler never begins."""
        endpoint, steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"), cancel(1), request(2, "nobody"))
                await until_idle()
                assert [line["id"] for line in transport.written] == [2]
                assert steps == []
                assert cx.status().in_flight == []

        run(main())

    def test_answer_of_a_kept_responder_is_held_back(self, run):
        """DEC-9: centrally, not in the handler."""
        endpoint, kept = keeper()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"), request(2, "ask"))
                await until_idle()
                transport.deliver(cancel(1))
                kept[0].respond("no longer wanted")
                kept[1].respond("wanted")
                await until_idle()
                assert transport.written == [result(2, "wanted")]
                assert cx.status().in_flight == []

        run(main())

    def test_slot_of_a_cancelled_member_is_left_out_of_the_array(self, run):
        """BA-03: the others are answered; a batch of nothing but cancelled members is not."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver([request(1, "slow"), request(2, "nobody")], [request(3, "slow")])
                await until_idle()
                transport.deliver(cancel(1), cancel(3))
                await until_idle()
                assert transport.written == [[error(2, -32601, "Method not found", "nobody")]]

        run(main())

    def test_own_request_that_is_cancelled_stops_waiting_at_once(self, run):
        """DEC-11: nothing will come, so the waiter gets a local -32800; a late answer is known for what it is."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                sent = cx.send_request("m")
                waiting = asyncio.create_task(sent.block_task())
                got: list[Any] = []
                by_callback = cx.send_request("n")

                async def callback(outcome: acprt.Result[Any]) -> None:
                    got.append(outcome)

                by_callback.on_receiving_result(callback)
                await until_idle()
                sent.cancel()
                by_callback.cancel()
                with pytest.raises(acprt.RpcError) as caught:
                    await asyncio.wait_for(waiting, 5)
                assert caught.value == acprt.RpcError.request_cancelled()
                await until_idle()
                assert got == [acprt.Err(acprt.RpcError.request_cancelled())]
                assert transport.written[2:] == [cancel(1), cancel(2)]
                transport.deliver(result(1, "late"))
                await until_idle()
                assert cx.status().counters.late_responses == 1

        run(main())

    def test_hook_for_an_answer_that_never_comes_never_runs(self, run):
        """`after_response` is for what follows an answer on the wire."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            cx.after_response(lambda: cx.send_notification("after"))
            await asyncio.Event().wait()

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == []

        run(main())


class TestGate:
    """`gates_frames = True`: nothing more is said for a cancelled request."""

    def test_progress_of_a_cancelled_request_is_dropped(self, run):
        """DEC-13: from its handler and from what it spawned; other requests are not touched."""
        endpoint = acprt.Endpoint("x")
        cleaned: list[Any] = []

        @endpoint.method("slow")
        async def slow(params: Any, cx: acprt.Connection) -> None:
            cx.send_notification("progress", params)
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning", params)
                cx.spawn(tell(params, cx))
                cleaned.append(params)

        async def tell(params: Any, cx: acprt.Connection) -> None:
            cx.send_notification("spawned", params)

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow", ["a"]), request(2, "slow", ["b"]))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert cleaned == [["a"]]
                assert transport.written == [notification("progress", ["a"]), notification("progress", ["b"])]

        run(main())

    def test_ungated_dialect_lets_it_through(self, run):
        """DEC-13: under the plain dialect a cancelled handler may report."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning")

        async def main():
            async with speaking(acprt.Dialect(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == [notification("cleaning"), error(1, -32800, "Request cancelled")]

        run(main())


class TestShutdown:
    def test_dialect_decides_what_is_answered_at_the_end(self, run):
        """DEC-25: another error, or nothing."""

        class Terse(acprt.Dialect):
            def answer_on_shutdown(self, method: str) -> acprt.RpcError | None:
                return acprt.RpcError(-1, "bye") if method == "slow" else None

        endpoint, _steps = waiting_endpoint()
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        async def main():
            async with speaking(Terse(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"), request(2, "keep"))
                await until_idle()
                await cx.aclose()
                assert transport.written == [error(1, -1, "bye")]
                assert cx.status().in_flight == []

        run(main())

    def test_cancelled_request_that_still_runs_at_the_end_is_answered_as_cancelled(self, run):
        """DEC-9, DEC-25: the peer's cancel came first."""
        endpoint = acprt.Endpoint("x")
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        async def main():
            for dialect, expected in ((acprt.Dialect(), [error(1, -32800, "Request cancelled")]), (Silent(), [])):
                async with speaking(dialect, endpoint) as (cx, transport):
                    transport.deliver(request(1, "keep"))
                    await until_idle()
                    transport.deliver(cancel(1))
                    await cx.aclose()
                    assert transport.written == expected
                kept.clear()

        run(main())


class TestPlainDialect:
    def test_name_and_defaults(self):
        """Plain JSON-RPC with `$/cancel_request`, one answer always."""
        dialect = acprt.Dialect()
        assert dialect.name == "json-rpc"
        assert dialect.for_connection() is dialect
        assert dialect.build_cancel(7, "why") == ("$/cancel_request", {"requestId": 7})
        assert dialect.accepts_batches
        assert dialect.answers_cancelled
        assert [dialect.gates_frames, dialect.withdraws_queued, dialect.cascades_cancel] == [False] * 3
        assert dialect.may_cancel_incoming("anything")
        assert dialect.may_cancel_outgoing("anything")
