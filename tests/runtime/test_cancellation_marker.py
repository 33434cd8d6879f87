"""`RequestCancellation`: what a handler can do with the marker of its request."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from tests.runtime.scripted import (
    cancel,
    error,
    keeper,
    request,
    result,
    scripted,
    until_idle,
)

CANCELLED_1 = error(1, -32800, "Request cancelled")


class TestMarker:
    """`RequestCancellation`: what a handler can do with it."""

    def test_markers_of_one_request_share_their_state(self, run):
        """CA-02, CA-04: whenever they were asked for."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                early, again = kept[0].cancellation, kept[0].cancellation
                waiting = asyncio.create_task(early.cancelled())
                await asyncio.sleep(0)
                assert not waiting.done()
                transport.deliver(cancel(1))
                late = kept[0].cancellation
                assert early.is_cancelled
                assert again.is_cancelled
                assert late.is_cancelled
                await asyncio.wait_for(waiting, 5)
                await asyncio.wait_for(late.cancelled(), 5)

        run(main())

    def test_waiting_may_be_given_up(self, run):
        """CA-02: a cancelled waiter leaves no listener behind, and the others still wake."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                waits = [asyncio.create_task(kept[0].cancellation.cancelled()) for _ in range(3)]
                await asyncio.sleep(0)
                waits[1].cancel()
                await asyncio.sleep(0)
                transport.deliver(cancel(1))
                await asyncio.wait(waits, timeout=5)
                assert [wait.cancelled() for wait in waits] == [False, True, False]

        run(main())

    def test_run_until_cancelled_gives_the_result(self, run):
        """CA-03."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()

                async def work() -> str:
                    await asyncio.sleep(0)
                    return "result"

                assert await kept[0].cancellation.run_until_cancelled(work()) == "result"

                async def failing() -> None:
                    raise ValueError("from the work")

                with pytest.raises(ValueError, match="from the work"):
                    await kept[0].cancellation.run_until_cancelled(failing())

        run(main())

    def test_run_until_cancelled_cancels_the_work_and_waits_for_its_cleanup(self, run):
        """CA-03, PY-12."""
        endpoint, kept = keeper()
        steps: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                steps.append("cleaned")

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                running = asyncio.create_task(kept[0].cancellation.run_until_cancelled(work()))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                transport.deliver(cancel(1))
                with pytest.raises(acprt.RpcError) as caught:
                    await asyncio.wait_for(running, 5)
                assert caught.value == acprt.RpcError.request_cancelled()
                assert steps == ["cleaned"]

        run(main())

    def test_run_until_cancelled_never_starts_work_for_a_cancelled_request(self, run):
        """CA-03: and the coroutine is closed, not left to be complained about."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                transport.deliver(cancel(1))

                async def work() -> None:
                    raise AssertionError("started")

                with pytest.raises(acprt.RpcError) as caught:
                    await kept[0].cancellation.run_until_cancelled(work())
                assert caught.value.code == -32800

        run(main())

    def test_result_wins_when_both_are_ready(self, run):
        """CA-03."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()

                async def work() -> str:
                    asyncio.get_running_loop().call_soon(transport.deliver, cancel(1))  # before the waiter wakes
                    return "result"

                assert await kept[0].cancellation.run_until_cancelled(work()) == "result"
                assert kept[0].cancellation.is_cancelled

        run(main())

    def test_run_until_cancelled_passes_a_cancellation_of_its_own_task_on(self, run):
        """PY-11: -32800 only when the peer asked; the work does not outlive the wait."""
        endpoint, kept = keeper()
        steps: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                steps.append("cleaned")

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                running = asyncio.create_task(kept[0].cancellation.run_until_cancelled(work()))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                assert steps == ["cleaned"]

        run(main())

    def test_cancel_after_the_answer_leaves_the_marker_unset(self, run):
        """CA-11."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                kept[0].respond("done")
                transport.deliver(cancel(1))
                await until_idle()
                assert not kept[0].cancellation.is_cancelled
                assert transport.written == [result(1, "done")]

        run(main())

    def test_marker_of_a_finished_request_never_fires(self, run):
        """CA-13: who waits on it waits until its own task is cancelled, also past the end of the connection."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                kept[0].respond("done")
                waiting = asyncio.create_task(kept[0].cancellation.cancelled())
                await cx.aclose()
                await asyncio.sleep(0)
                assert not waiting.done()
                waiting.cancel()
                await asyncio.wait([waiting])
                assert waiting.cancelled()

        run(main())

    def test_eof_sets_no_marker(self, run):
        """CA-18: the peer said nothing; the drain decides what becomes of the work."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"))
                transport.end()
                await asyncio.wait_for(cx.incoming_closed(), 5)
                assert not kept[0].cancellation.is_cancelled
                kept[0].respond("still written")
                assert transport.written == [result(1, "still written")]

        run(main())

    def test_listener_may_act_on_the_connection(self, run):
        """CA-17: it runs when the table is consistent, so it may answer, send and cancel."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"), request(2, "ask"))
                await until_idle()
                sent = cx.send_request("downstream")
                kept[0].cancellation.on_cancel(sent.cancel)
                kept[0].cancellation.on_cancel(lambda: kept[0].respond("partial"))
                kept[0].cancellation.on_cancel(lambda: kept[1].respond("too"))
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written[1:] == [cancel(sent.id), result(1, "partial"), result(2, "too")]
                sent.detach()

        run(main())

    def test_failing_listener_costs_only_itself(self, run, caplog):
        """CA-17: the chunk that held the cancel is read to its end."""
        endpoint, kept = keeper()
        called: list[str] = []

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                kept[0].cancellation.on_cancel(lambda: 1 / 0)
                kept[0].cancellation.on_cancel(lambda: called.append("second"))
                transport.deliver(cancel(1), request(2, "nobody"))
                await until_idle()
                assert called == ["second"]
                assert [line["id"] for line in transport.written] == [2]

        run(main())
        assert "cancellation listener" in caplog.text
