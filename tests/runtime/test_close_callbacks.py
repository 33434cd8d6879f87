"""Close callbacks: after clean EOF, one after another, before anybody gets out."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from tests.runtime.scripted import (
    ScriptedTransport,
    notification,
    scripted,
    until_idle,
)


class TestCloseCallbacks:
    @staticmethod
    def _endpoint(name: str, order: list[str], failure: Exception | None = None) -> acprt.Endpoint:
        endpoint = acprt.Endpoint(name)

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            order.append(name)
            await asyncio.sleep(0)
            if failure is not None:
                raise failure

        return endpoint

    def test_they_run_one_after_another_in_registration_order(self, run):
        """EO-08: the host's first, then those of an included endpoint."""
        order: list[str] = []
        host = self._endpoint("first", order)

        @host.on_close
        async def second(_cx: acprt.Connection) -> None:
            order.append("second begins")
            await until_idle()
            order.append("second ends")

        host.include(self._endpoint("included", order))

        async def main():
            async with scripted(host) as (cx, transport):
                transport.end()
                await cx.incoming_closed()
                assert order == ["first", "second begins", "second ends", "included"]

        run(main())

    def test_all_run_and_the_first_error_is_the_reported_one(self, run):
        """EO-08: a failing one does not keep the others from running."""
        order: list[str] = []
        host = self._endpoint("a", order, KeyError("first"))
        host.include(self._endpoint("b", order, ValueError("second")))
        host.include(self._endpoint("c", order))

        async def main():
            transport = ScriptedTransport()
            serving = asyncio.create_task(host.serve(transport))
            await asyncio.sleep(0)
            transport.end()
            with pytest.raises(KeyError, match="first"):
                await serving
            assert order == ["a", "b", "c"]

        run(main())

    def test_one_that_lets_a_cancellation_leak_is_only_its_own_failure(self, run):
        """EO-08, PY-11."""
        order: list[str] = []
        host = acprt.Endpoint("host")

        @host.on_close
        async def leak(_cx: acprt.Connection) -> None:
            task = asyncio.create_task(asyncio.Event().wait())
            task.cancel()
            await task

        host.include(self._endpoint("next", order))

        async def main():
            transport = ScriptedTransport()
            serving = asyncio.create_task(host.serve(transport))
            await asyncio.sleep(0)
            transport.end()
            with pytest.raises(acprt.RpcError, match="cancelled from inside"):
                await serving
            assert order == ["next"]

        run(main())

    def test_waiting_for_the_end_of_input_there_is_refused(self, run):
        """EO-13, DEC-18: it would wait for itself."""
        host = acprt.Endpoint("host")
        caught: list[BaseException] = []

        @host.on_close
        async def wait(cx: acprt.Connection) -> None:
            for waiting in (cx.incoming_closed(), cx.drain()):
                with pytest.raises(acprt.DispatchLoopBlocked) as info:
                    await waiting
                caught.append(info.value)

        async def main():
            async with scripted(host) as (cx, transport):
                transport.end()
                await asyncio.wait_for(cx.incoming_closed(), 5)
                assert len(caught) == 2

        run(main())

    def test_one_that_closes_the_connection_keeps_no_other_from_running(self, run):
        """EO-08, DEC-18: the close begins when they are done."""
        order: list[str] = []
        host = acprt.Endpoint("host")

        @host.on_close
        async def close(cx: acprt.Connection) -> None:
            await cx.aclose()
            await asyncio.sleep(0)
            order.append("closing")

        host.include(self._endpoint("next", order))

        async def main():
            async with scripted(host) as (cx, transport):
                transport.end()
                await asyncio.wait_for(cx.incoming_closed(), 5)
                await cx.aclose()
                assert order == ["closing", "next"]
                assert transport.closed

        run(main())

    @pytest.mark.parametrize("closer", ["another task", "a spawned task", "two tasks"])
    def test_a_close_waits_until_they_are_done(self, run, closer):
        """EO-11: whoever closes during them."""
        host = acprt.Endpoint("host")
        release, entered = asyncio.Event(), asyncio.Event()
        order: list[str] = []

        @host.on_close
        async def bye(cx: acprt.Connection) -> None:
            entered.set()
            await release.wait()
            cx.send_notification("bye")
            order.append("callback")

        async def main():
            async with scripted(host) as (cx, transport):
                transport.end()
                await entered.wait()
                if closer == "a spawned task":
                    cx.spawn(cx.aclose())
                    await until_idle()
                closing = [asyncio.create_task(cx.aclose()) for _ in range(1 + (closer == "two tasks"))]
                await until_idle()
                assert not any(task.done() for task in closing)
                release.set()
                await asyncio.wait_for(asyncio.gather(*closing), 5)
                assert order == ["callback"]
                assert transport.written == [notification("bye")]

        run(main())

    def test_a_close_that_is_given_up_goes_on(self, run):
        """EO-11, DEC-18: a cancelled caller leaves; the connection is closed all the same."""
        host = acprt.Endpoint("host")
        release, entered = asyncio.Event(), asyncio.Event()

        @host.on_close
        async def bye(_cx: acprt.Connection) -> None:
            entered.set()
            await release.wait()

        async def main():
            transport = ScriptedTransport()
            cx = await host.open(transport)
            transport.end()
            await entered.wait()
            closing = asyncio.create_task(cx.aclose())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
            assert closing.cancelled()
            release.set()
            await until_idle()
            assert transport.closed

        run(main())

    def test_they_cannot_hold_up_a_close_for_ever(self, run):
        """EO-11 with a bound: `drain_seconds` after they began, those still running are cancelled."""
        host = acprt.Endpoint("host", limits=acprt.Limits(drain_seconds=0.05))
        entered = asyncio.Event()
        ended: list[str] = []

        @host.on_close
        async def bye(_cx: acprt.Connection) -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            transport = ScriptedTransport()
            cx = await host.open(transport)
            transport.end()
            await entered.wait()
            await asyncio.wait_for(cx.aclose(), 5)
            assert ended == ["cancelled"]
            assert transport.closed
            assert cx.is_incoming_closed

        run(main())

    @pytest.mark.parametrize("broken", ["task", "transport"])
    @pytest.mark.parametrize("fails", [True, False])
    def test_a_failure_meanwhile_does_not_interrupt_them_and_their_own_goes_first(self, run, broken, fails):
        """EO-12: also when the EOF itself is what made the task fail."""
        order: list[str] = []
        host = self._endpoint("a", order, KeyError("callback") if fails else None)
        host.include(self._endpoint("b", order))

        async def main():
            transport, lost = ScriptedTransport(), BrokenPipeError("nobody reads")
            cx = host.open_connection(transport)

            async def wait_for_an_answer() -> None:
                await cx.send_request("m").block_task()

            if broken == "task":
                cx.spawn(wait_for_an_answer())
                await asyncio.sleep(0)
            transport.end()
            while not order:
                await asyncio.sleep(0)
            assert order == ["a"]
            if broken == "transport":
                transport.lose(lost)
            await asyncio.wait_for(cx.incoming_closed(), 5)
            await cx.aclose()
            assert order == ["a", "b"]
            if fails:
                assert isinstance(cx.ends.cause, KeyError)
            elif broken == "task":
                assert acprt.is_incoming_transport_closed(cx.ends.cause)
            else:
                assert cx.ends.cause is lost

        run(main())

    def test_full_outbox_does_not_wait_for_them(self, run):
        """M-05, EO-12: the callback itself may be what fills it, and would never end by itself."""

        async def main():
            endpoint = acprt.Endpoint("x", limits=acprt.Limits(outbox_max_bytes=100_000))
            refused: list[acprt.RpcError] = []

            @endpoint.on_close
            async def flood(cx: acprt.Connection) -> None:
                while True:
                    try:
                        cx.send_notification("tell", ["x" * 10_000])
                    except acprt.RpcError as error:
                        refused.append(error)
                        await asyncio.Event().wait()

            transport = ScriptedTransport()
            with pytest.raises(acprt.RpcError) as caught:
                async with endpoint.connect(transport) as cx:
                    transport.stall()
                    transport.end()
                    await asyncio.Event().wait()
            assert caught.value.data["reason"] == "outbox_full"
            assert refused[0].data["reason"] == "connection_failed"
            assert cx.ends.cause is caught.value

        run(main())

    def test_failure_meanwhile_is_the_cause_when_they_are_given_up(self, run):
        """EO-12: it waited for them and must not get lost with them."""

        async def main():
            endpoint = acprt.Endpoint("x", limits=acprt.Limits(drain_seconds=0.01))
            entered = asyncio.Event()

            @endpoint.on_close
            async def forever(_cx: acprt.Connection) -> None:
                entered.set()
                await asyncio.Event().wait()

            async with scripted(endpoint) as (cx, transport):
                transport.end()
                await entered.wait()
                transport.lose(OSError("the disk is gone"))
                await cx.aclose()
                assert isinstance(cx.ends.cause, OSError)

        run(main())
