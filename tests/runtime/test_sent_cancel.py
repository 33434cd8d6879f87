"""Cancelling our own request: who may ask, and at most once, without any help of the cyclic collector."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_server_for, turns
from tests.runtime.ordered import answer, sent_by


@contextmanager
def no_collector() -> Iterator[None]:
    """What happens inside is reference counting alone."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    """Every rule here holds without the cyclic collector."""
    with no_collector():
        yield


CANCELLED = ["work", "$/cancel_request"]


class TestDrop:
    """A handle that nobody consumed."""

    def test_dropping_cancels_once(self, run):
        """SR-13: one cancel with the id of the request, by reference counting alone, and no collector needed."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with no_collector():
                    cx.send_request("work")
                    lines = await peer.settled()
                assert [line["method"] for line in lines] == CANCELLED
                assert lines[1] == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}

        run(main())

    def test_late_response_is_discarded(self, run):
        """SR-13, DL-05: the connection lives, the answer is counted as late, once."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.send_request("work")
                peer.send(answer(1), answer(1))
                assert await sent_by(peer) == CANCELLED
                counters = cx.status().counters
                assert (counters.late_responses, counters.unmatched_responses) == (1, 1)

        run(main())

    def test_leaving_a_with_block_cancels(self, run):
        """PY-01: deterministic, whoever else holds the handle."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with cx.send_request("work") as sent:
                    pass
                assert await sent_by(peer) == CANCELLED
                del sent

        run(main())

    def test_exception_that_holds_the_handle_delays_the_cancel(self, run):
        """PY-02: a stored traceback keeps the handle alive; the cancel comes when the exception goes."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):

                def fail() -> None:
                    sent = cx.send_request("work")
                    raise ValueError(sent)

                kept: list[BaseException] = []
                with no_collector():
                    try:
                        fail()
                    except ValueError as error:
                        kept.append(error)
                    assert await sent_by(peer) == ["work"]
                    kept.clear()
                    assert await sent_by(peer) == ["$/cancel_request"]

        run(main())

    def test_exception_that_holds_the_handle_does_not_delay_a_with_block(self, run):
        """PY-01, PY-02: the block cancels on the way out, whatever the traceback holds."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):

                def fail() -> None:
                    with cx.send_request("work"):
                        raise ValueError

                kept: list[BaseException] = []
                with no_collector():
                    try:
                        fail()
                    except ValueError as error:
                        kept.append(error)
                    assert await sent_by(peer) == CANCELLED

        run(main())

    def test_handle_in_a_cycle_is_cancelled_by_the_collector(self, run):
        """PY-07: a callback that holds its own handle is a cycle of the user's; the collector finds it."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with no_collector():
                    cycle: list[Any] = [cx.send_request("work")]
                    cycle.append(cycle)
                    del cycle
                    assert await sent_by(peer) == ["work"]
                    gc.collect()
                    assert await sent_by(peer) == ["$/cancel_request"]

        run(main())

    def test_dropped_on_another_thread(self, run):
        """PY-03: the finalizer hands over to the loop of the connection, and touches nothing itself."""
        threads: list[bool] = []

        class Recording(acprt.Dialect):
            def build_cancel(self, id: Any, reason: str | None = None) -> tuple[str, Any] | None:
                threads.append(threading.current_thread() is threading.main_thread())
                return super().build_cancel(id, reason)

        async def main():
            async with raw_server_for(acprt.Endpoint(dialect=Recording())) as (cx, peer):
                handles = [cx.send_request("work")]
                thread = threading.Thread(target=handles.clear)
                thread.start()
                thread.join()
                assert threads == []
                await turns()
                assert await sent_by(peer) == CANCELLED
                assert threads == [True]

        run(main())

    def test_dropped_after_the_loop_is_gone(self, run):
        """PY-03: a handle that outlives its loop says nothing."""
        kept: list[Any] = []

        async def main():
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await acprt.Endpoint().open(near)
            kept.append(cx.send_request("work"))
            kept.append(peer)

        run(main())
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()


class TestNeverStarted:
    """A `block_task()` whose coroutine never ran (DEC-19)."""

    @pytest.mark.parametrize("timeout", [None, 60])
    @pytest.mark.parametrize("how", ["closed", "forgotten"])
    def test_it_cancels_when_it_goes(self, run, how, timeout):
        """DEC-19: calling it consumes the handle, but nobody waits: the finalizer cancels."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with no_collector():
                    coroutine = cx.send_request("work").block_task(timeout)
                    if how == "closed":
                        coroutine.close()
                        del coroutine
                    else:
                        with pytest.warns(RuntimeWarning, match="never awaited"):
                            del coroutine
                    assert await sent_by(peer) == CANCELLED

        run(main())

    @pytest.mark.parametrize("timeout", [None, 60])
    def test_task_cancelled_before_its_first_step(self, run, timeout):
        """SR-14: the same for a task that never got to run, at once, whoever still holds the handle."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                task = asyncio.create_task(sent.block_task(timeout))
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                assert await sent_by(peer) == CANCELLED
                del sent, task
                assert await sent_by(peer) == []

        run(main())


class TestWaitingTask:
    """Cancelling the task that awaits `block_task`."""

    @pytest.mark.parametrize("how", ["cancel", "wait_for", "timeout", "task group"])
    def test_one_cancel_is_sent(self, run, how):
        """SR-14, PY-10: however the wait is cut short, the peer is told once, and the exception goes on its way."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                if how == "cancel":
                    task = asyncio.create_task(sent.block_task())
                    await turns()
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                elif how == "wait_for":
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(sent.block_task(), 0.01)
                elif how == "timeout":
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.01):
                            await sent.block_task()
                else:

                    async def abort() -> None:
                        await turns()
                        raise ValueError

                    with pytest.raises(BaseExceptionGroup):
                        async with asyncio.TaskGroup() as group:
                            group.create_task(sent.block_task())
                            group.create_task(abort())
                assert await sent_by(peer) == CANCELLED
                sent.cancel()
                del sent
                assert await sent_by(peer) == []

        run(main())

    def test_nothing_is_sent_when_the_answer_was_routed(self, run):
        """PY-10, SR-15: the task is cancelled in the moment between the response and its own next step."""

        async def main():
            endpoint = acprt.Endpoint()
            tasks: list[asyncio.Task[Any]] = []

            async with raw_server_for(endpoint) as (cx, peer):
                task = asyncio.create_task(cx.send_request("work").block_task())
                tasks.append(task)
                await turns()
                peer.send(answer(1))
                while cx.status().pending:
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert await sent_by(peer) == ["work"]

        run(main())

    def test_cancel_while_waiting_lets_the_answer_through(self, run):
        """SR-18, SR-21: `cancel()` asks; what the peer answers is delivered, data included."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                task = asyncio.create_task(sent.block_task())
                await turns()
                sent.cancel()
                assert await sent_by(peer) == CANCELLED
                peer.send(answer(1, "partial"))
                assert await task == "partial"

        run(main())


class TestAtMostOnce:
    """Whoever asks, one cancel leaves."""

    def test_cancel_twice(self, run):
        """SR-18: later calls are no-ops."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                sent.cancel()
                sent.cancel()
                assert await sent_by(peer) == CANCELLED
                sent.detach()

        run(main())

    def test_cancel_then_drop(self, run):
        """SR-18: the finalizer adds nothing."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                sent.cancel()
                del sent
                assert await sent_by(peer) == CANCELLED

        run(main())

    def test_request_first_then_cancel(self, run):
        """SR-26: both are written, in that order, also when neither had left yet."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.send_request("first").detach()
                cx.send_request("work").cancel()
                assert await sent_by(peer) == ["first", *CANCELLED]

        run(main())

    def test_detach_sends_nothing(self, run):
        """SR-17: the request runs on; its answer is discarded as late."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.send_request("work").detach()
                peer.send(answer(1))
                assert await sent_by(peer) == ["work"]
                assert cx.status().counters.late_responses == 0

        run(main())

    def test_detached_request_is_no_late_one(self, run, caplog):
        """SR-17: its answer was always to be ignored; it is not counted, and nobody is warned."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                for id in range(1, 101):
                    cx.send_request("work").detach()
                    peer.send(answer(id))
                await peer.settled()
                counters = cx.status().counters
                assert (counters.late_responses, counters.unmatched_responses) == (0, 0)

        run(main())
        assert "no request of ours" not in caplog.text
