"""A connection that fails beside its block: what is cancelled, what is raised, in which order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import ScriptedTransport, fail_with, notification, result, until_idle


def broken() -> ValueError:
    """A new one each time: a raised exception remembers its context."""
    return ValueError("the cause")


class TestFailure:
    """When the connection fails, the block is cancelled once and the cause is raised (DEC-16)."""

    @staticmethod
    async def _fail(how: str, error: Exception, cx: acprt.Connection, transport: ScriptedTransport) -> None:
        match how:
            case "spawned task":
                cx.spawn(fail_with(error))
            case "ordered callback":
                sent = cx.send_request("m")

                async def callback(_outcome: acprt.Result[Any]) -> None:
                    raise error

                sent.on_receiving_result(callback)
                transport.deliver(result(sent.id, 1))
            case "late callback":
                sent = cx.send_request("m")
                transport.deliver(result(sent.id, 1))
                await until_idle()
                sent.on_receiving_result(lambda _outcome: fail_with(error))
            case "read error":
                transport.lose(error)
            case "cx.fail":
                cx.fail(error)

    @pytest.mark.parametrize("how", ["spawned task", "ordered callback", "late callback", "read error", "cx.fail"])
    def test_block_is_cancelled_once_and_the_cause_is_raised(self, run, how):
        """LC-10, SP-02, SR-06, TF-01, TF-03: the exception itself, never a group."""
        cancels: list[int] = []
        error = broken()

        async def main():
            async def work() -> None:
                transport = ScriptedTransport()
                async with acprt.Endpoint("near").connect(transport) as cx:
                    await self._fail(how, error, cx, transport)
                    try:
                        await asyncio.Event().wait()
                    finally:
                        cancels.append(1)
                        await until_idle()  # a clean-up may await: there is no second cancel
                        cancels.append(2)

            with pytest.raises(ValueError, match="the cause") as caught:
                await work()
            assert caught.value is error
            assert cancels == [1, 2]
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

        run(main())

    @pytest.mark.parametrize("then", ["returns", "raises", "goes on without waiting"])
    def test_cause_is_raised_whatever_the_block_makes_of_its_cancellation(self, run, then):
        """DEC-16: it cannot be swallowed; an error of the clean-up stays visible as its context."""

        async def work() -> None:
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                if then == "goes on without waiting":
                    cx.fail(broken())
                    return
                cx.spawn(fail_with(broken()))
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if then == "raises":
                        raise KeyError("clean-up") from None

        async def main():
            with pytest.raises(ValueError, match="the cause") as caught:
                await work()
            assert isinstance(caught.value.__context__, KeyError) is (then == "raises")
            await asyncio.sleep(0)  # no cancellation is left over for what comes behind the block

        run(main())

    def test_error_that_only_repeats_the_failure_gives_way_to_the_cause(self, run):
        """DEC-16: a send in the block says `connection_failed`; what it failed of is the news."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                cx.fail(broken())
                cx.send_notification("too late")

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_failure_after_the_block_has_failed_is_not_news(self, run):
        """LC-11: the first error is the one."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:

                async def fail_when_cancelled() -> None:
                    try:
                        await asyncio.Event().wait()
                    finally:
                        raise broken()

                cx.spawn(fail_when_cancelled())
                await asyncio.sleep(0)
                raise KeyError("first")

        async def main():
            with pytest.raises(KeyError, match="first"):
                await work()

        run(main())

    def test_cancellation_by_somebody_else_goes_first(self, run):
        """PY-11: who cancels the task of the block gets a cancelled task, failure or not."""

        async def work(entered: asyncio.Event) -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                cx.spawn(self._wait_and_fail(entered))
                await asyncio.Event().wait()

        async def main():
            entered = asyncio.Event()
            task = asyncio.create_task(work(entered))
            await entered.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        run(main())

    @staticmethod
    async def _wait_and_fail(entered: asyncio.Event) -> None:
        entered.set()
        await asyncio.sleep(0)
        raise broken()

    def test_timeout_around_the_block_stays_a_timeout(self, run):
        """Reference wishes: wrapping connect in a timeout must not break it."""

        async def main():
            transport = ScriptedTransport()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), acprt.Endpoint("near").connect(transport):
                    await asyncio.Event().wait()
            assert transport.closed

        run(main())

    def test_block_entered_in_a_task_that_is_being_cancelled_still_tells_whose_cancel_it_was(self, run):
        """DEC-16: a pending cancellation from before the block is not taken for one during it."""

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:  # a last report, say
                    cx.spawn(fail_with(broken()))
                    await asyncio.Event().wait()

        async def main():
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(ValueError, match="the cause"):
                await task

        run(main())

    @pytest.mark.parametrize("which", ["outer", "inner", "both"])
    def test_two_connections_of_one_block_are_told_apart(self, run, which):
        """DEC-16: a proxy has two; the cause comes out of the block of the one that failed."""
        outer_error, inner_error = ValueError("outer"), ValueError("inner")
        left: list[str] = []

        async def work() -> None:
            async with acprt.Endpoint("outer").connect(ScriptedTransport()) as outer:
                try:
                    async with acprt.Endpoint("inner").connect(ScriptedTransport()) as inner:
                        if which in ("outer", "both"):
                            outer.fail(outer_error)
                        if which in ("inner", "both"):
                            inner.fail(inner_error)
                        await asyncio.Event().wait()
                except BaseException as error:
                    left.append(type(error).__name__)
                    raise

        async def main():
            with pytest.raises(ValueError) as caught:  # noqa: PT011  # which one is checked below
                await work()
            assert caught.value is (inner_error if which == "inner" else outer_error)
            assert left == ["ValueError" if which == "inner" else "CancelledError"]
            await asyncio.sleep(0)

        run(main())

    def test_with_open_the_waiters_learn_the_cause_and_aclose_does_not_raise(self, run):
        """DEC-16."""

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near").open(transport)
            sent, error = cx.send_request("m"), broken()
            cx.spawn(fail_with(error))
            with pytest.raises(acprt.RpcError, match="the cause") as caught:
                await sent.block_task()
            assert caught.value.__cause__ is error
            await cx.aclose()
            assert transport.closed

        run(main())

    def test_first_cause_stands(self, run):
        """EO-12: what fails later, because of the end or not, changes nothing."""

        async def main():
            async def work() -> None:
                async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                    cx.fail(broken())
                    cx.fail(KeyError("second"))
                    await asyncio.Event().wait()

            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())


class TestCloseCallbackPrecedence:
    """The block ends while close callbacks run (EO-10, EO-11)."""

    @pytest.mark.parametrize("block_fails", [False, True])
    @pytest.mark.parametrize("callback_fails", [False, True])
    def test_error_of_a_close_callback_beats_the_outcome_of_the_block(self, run, block_fails, callback_fails):
        """EO-10: main × close, all four; the block waits for the callbacks to finish (EO-11)."""
        endpoint = acprt.Endpoint("near")
        entered, release = asyncio.Event(), asyncio.Event()
        order: list[str] = []
        releasing: list[asyncio.Task[None]] = []

        async def release_soon() -> None:
            await until_idle()
            release.set()

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            entered.set()
            await release.wait()
            order.append("callback")
            if callback_fails:
                raise broken()

        async def work() -> str:
            transport = ScriptedTransport()
            async with endpoint.connect(transport):
                transport.end()
                await entered.wait()
                releasing.append(asyncio.create_task(release_soon()))
                order.append("block")
                if block_fails:
                    raise KeyError("of the block")
            return "value"

        async def main():
            if callback_fails:
                with pytest.raises(ValueError, match="the cause") as caught:
                    await work()
                assert isinstance(caught.value.__context__, KeyError) is block_fails
            elif block_fails:
                with pytest.raises(KeyError, match="of the block"):
                    await work()
            else:
                assert await work() == "value"
            assert order == ["block", "callback"]

        run(main())

    def test_error_of_a_close_callback_ends_a_block_that_still_runs(self, run):
        """EO-09."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            raise broken()

        async def work() -> None:
            transport = ScriptedTransport()
            async with endpoint.connect(transport):
                transport.end()
                await asyncio.Event().wait()

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_block_that_waits_for_the_end_of_input_gets_the_callback_error(self, run):
        """EO-10."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            raise broken()

        async def work() -> None:
            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_callbacks_may_use_what_belongs_to_the_caller(self, run):
        """EO-15: they are closures of the program like any other, and may send."""
        told: list[str] = []

        async def main():
            endpoint = acprt.Endpoint("near")
            local = {"name": "a local of the caller"}

            @endpoint.on_close
            async def bye(cx: acprt.Connection) -> None:
                told.append(local["name"])
                cx.send_notification("bye")

            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()
            assert told == ["a local of the caller"]
            assert transport.written == [notification("bye")]

        run(main())
