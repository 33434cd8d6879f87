"""`block_task()` as a coroutine: what tasks, groups and other coroutines do with one, it takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import cancel, request, result, scripted, until_idle


class TestBlockTaskIsACoroutine:
    """The handle stands in for it, which must show nowhere."""

    @pytest.mark.parametrize("how", ["await", "task", "gather", "wait_for", "group"])
    @pytest.mark.parametrize("timeout", [None, 5])
    def test_every_way_to_wait(self, run, how, timeout):
        async def wait(sent: acprt.SentRequest[Any]) -> Any:
            match how:
                case "await":
                    return await sent.block_task(timeout)
                case "task":
                    return await asyncio.create_task(sent.block_task(timeout))
                case "gather":
                    return (await asyncio.gather(sent.block_task(timeout)))[0]
                case "wait_for":
                    return await asyncio.wait_for(sent.block_task(timeout), 5)
                case _:
                    async with asyncio.TaskGroup() as group:
                        task = group.create_task(sent.block_task(timeout))
                    return task.result()

        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                waiting = asyncio.create_task(wait(cx.send_request("ask")))
                await until_idle()
                transport.deliver(result(1, [1, 2]))
                assert await waiting == [1, 2]

        run(main())

    @pytest.mark.parametrize("steps", [0, 1])
    @pytest.mark.parametrize("timeout", [None, 5])
    def test_a_cancelled_task_cancels_the_request(self, run, steps, timeout):
        """Before its first step as well as while it waits."""

        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                task = asyncio.create_task(cx.send_request("ask").block_task(timeout))
                assert "block_task" in repr(task)
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await until_idle()
                assert transport.written == [request(1, "ask"), cancel(1)]

        run(main())

    @pytest.mark.parametrize("timeout", [None, 5])
    def test_the_end_of_the_coroutine_around_it_cancels_the_request(self, run, timeout):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):

                async def around() -> None:
                    await cx.send_request("ask").block_task(timeout)

                coroutine = around()
                coroutine.send(None)
                coroutine.close()
                await until_idle()
                assert transport.written == [request(1, "ask"), cancel(1)]

        run(main())

    def test_one_that_is_never_awaited_warns_and_cancels(self, run):
        """DEC-19; a forgotten `await` is told as it is of any coroutine."""

        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                sent = cx.send_request("ask")
                sent.block_task()  # type: ignore[unused-coroutine]  # which is what is tested
                with pytest.warns(RuntimeWarning, match="of ask was never awaited"):
                    del sent
                await until_idle()
                assert transport.written == [request(1, "ask"), cancel(1)]

        run(main())

    @pytest.mark.parametrize("timeout", [None, 5])
    def test_it_is_awaited_by_one(self, run, timeout):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                waiting = cx.send_request("ask").block_task(timeout)
                first = asyncio.create_task(waiting)
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="awaited already"):
                    await waiting
                transport.deliver(result(1, "yes"))
                assert await first == "yes"

        run(main())

    def test_its_timeout_is_not_that_of_who_came_second(self, run):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                waiting = cx.send_request("ask").block_task(0.01)
                first = asyncio.create_task(waiting)
                await asyncio.sleep(0)
                with pytest.raises(RuntimeError, match="awaited already"):
                    await waiting
                with pytest.raises(TimeoutError, match="no answer to ask"):
                    await first
                await until_idle()
                assert transport.written == [request(1, "ask"), cancel(1)]

        run(main())

    @pytest.mark.parametrize("timeout", [None, 5])
    def test_after_its_end_it_is_awaited_no_more(self, run, timeout):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, _transport):
                waiting = cx.send_request("ask").block_task(timeout)
                waiting.close()
                with pytest.raises(RuntimeError, match="has ended"):
                    await waiting

        run(main())

    def test_closing_leaves_alone_what_another_way_took(self, run):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                sent: Any = cx.send_request("ask")
                sent.detach()
                sent.close()
                await until_idle()
                assert transport.written == [request(1, "ask")]

        run(main())

    @pytest.mark.parametrize("timeout", [None, 5])
    def test_a_stop_iteration_of_a_map_is_no_result(self, run, timeout):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, transport):
                waiting = asyncio.create_task(
                    cx.send_request("ask").map(lambda found: next(iter(found))).block_task(timeout)
                )
                await until_idle()
                transport.deliver(result(1, []))
                with pytest.raises(RuntimeError, match="StopIteration"):
                    await waiting

        run(main())

    def test_a_handle_of_which_nothing_was_chosen_is_no_coroutine(self, run):
        async def main():
            async with scripted(acprt.Endpoint()) as (cx, _transport):
                sent: Any = cx.send_request("ask")
                with pytest.raises(TypeError, match="not awaitable"):
                    await asyncio.create_task(sent)

        run(main())
