"""Dialects that take queued requests back, and cancel what a cancelled request has sent."""

from __future__ import annotations

from typing import Any

import pytest

import acprt
from tests.runtime.scripted import cancel, error, notification, request, result, until_idle
from tests.runtime.speaking import Silent, speaking, waiting_endpoint


class TestWithdrawal:
    """`withdraws_queued = True`: what is still queued for a cancelled request is taken back."""

    def test_queued_progress_and_answer_are_taken_back(self, run):
        """Reference race: cancel while the result waits in the write queue; other frames stay, in order."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("quick")
        async def quick(params: Any, cx: acprt.Connection) -> Any:
            cx.send_notification("progress", params)
            return params

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                transport.deliver(request(1, "quick", ["a"]), request(2, "quick", ["b"]))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                transport.flow()
                await until_idle()
                assert transport.written == [
                    notification("own"),
                    notification("progress", ["b"]),
                    result(2, ["b"]),
                ]
                assert cx.status().outbox.bytes == 0

        run(main())

    def test_queued_request_of_ours_is_taken_back_with_its_cancel(self, run):
        """DEC-11: neither is written, and the waiter fails at once."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                sent, other = cx.send_request("m"), cx.send_request("other")
                sent.cancel()
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                assert caught.value.code == -32800
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), request(other.id, "other")]
                other.detach()

        run(main())

    def test_written_request_is_cancelled_by_a_notification(self, run):
        """DEC-11: the peer has it."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                sent = cx.send_request("m")
                await until_idle()
                sent.cancel()
                await until_idle()
                assert transport.written == [request(1, "m"), cancel(1)]

        run(main())

    def test_plain_dialect_writes_both_in_order(self, run):
        """DEC-11, SR-26."""

        async def main():
            async with speaking(acprt.Dialect()) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                sent = cx.send_request("m")
                sent.cancel()
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), request(1, "m"), cancel(1)]
                sent.detach()

        run(main())

    def test_late_cancel_of_an_answered_request_hits_only_that_generation(self, run):
        """Reference race: the id was used again; the queued answer of the first stays, the second is cancelled."""
        endpoint, _steps = waiting_endpoint()

        @endpoint.method("quick")
        async def quick(_params: Any) -> str:
            return "first"

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                transport.deliver(request(1, "quick"))
                await until_idle()
                transport.deliver(request(1, "slow"), cancel(1))
                await until_idle()
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), result(1, "first")]

        run(main())


class TestCascade:
    """`cascades_cancel = True`: a cancel reaches the requests that its handler sent."""

    def test_nested_requests_are_cancelled_too(self, run):
        """DEC-13: also those that nobody waits for; the late answer is dropped, other requests live."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("outer")
        async def outer(params: Any, cx: acprt.Connection) -> Any:
            cx.send_request("detached", params).detach()
            return await cx.send_request("nested", params).block_task()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request("a", "outer", ["a"]), request("b", "outer", ["b"]))
                await until_idle()
                sent = {(line["method"], line["params"][0]): line["id"] for line in transport.written}
                transport.deliver(cancel("a"))
                await until_idle()
                cancels = transport.written[4:]
                expected = [cancel(sent["detached", "a"]), cancel(sent["nested", "a"])]
                assert sorted(cancels, key=str) == sorted(expected, key=str)
                transport.deliver(result(sent["nested", "a"], "late"), result(sent["nested", "b"], "done"))
                await until_idle()
                assert transport.written[6:] == [result("b", "done")]
                assert cx.status().counters.unmatched_responses == 0

        run(main())

    def test_plain_dialect_cancels_what_is_waited_for_and_nothing_else(self, run):
        """SR-14, SR-17: there the cancelled task cancels its own wait; a detached request runs on."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("outer")
        async def outer(_params: Any, cx: acprt.Connection) -> Any:
            cx.send_request("detached").detach()
            return await cx.send_request("nested").block_task()

        async def main():
            async with speaking(acprt.Dialect(), endpoint) as (_cx, transport):
                transport.deliver(request("a", "outer"))
                await until_idle()
                transport.deliver(cancel("a"))
                await until_idle()
                assert sorted(transport.written[2:], key=str) == sorted(
                    [cancel(2), error("a", -32800, "Request cancelled")], key=str
                )

        run(main())
