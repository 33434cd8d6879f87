"""`aclose()`: any task, any order, idempotent; and loops that end before it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_server_for
from tests.runtime.scripted import SHUTTING_DOWN, ScriptedTransport, notification, request, result, scripted, until_idle

Outcome = acprt.Result[Any]


class TestClose:
    """`aclose()`: any task, any order, idempotent, bounded."""

    def test_twice_is_once(self, run):
        """Also from several tasks at the same time."""

        async def main():
            async with scripted(acprt.Endpoint("near")) as (cx, transport):
                await asyncio.gather(*(cx.aclose() for _ in range(5)))
                await cx.aclose()
                assert transport.closed

        run(main())

    def test_cancelled_closer_leaves_and_the_close_goes_on(self, run):
        """A timeout around it is safe."""

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near").open(transport)
            transport.stall()
            cx.send_notification("unwritten")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await cx.aclose()
            assert not transport.closed
            transport.flow()
            await cx.aclose()
            assert transport.written == [notification("unwritten")]
            assert transport.closed

        run(main())

    @pytest.mark.parametrize(
        "place", ["notification", "request", "method", "callback", "spawned", "after response", "wait_for in a handler"]
    )
    def test_from_a_task_of_the_connection_it_starts_and_returns(self, run, place):
        """DEC-18: it does not wait for itself."""
        endpoint = acprt.Endpoint("near")
        returned: list[str] = []

        async def close(cx: acprt.Connection) -> None:
            await cx.aclose()
            returned.append(place)

        @endpoint.on_receive_notification("notification")
        async def on_notification(_params: Any, cx: acprt.Connection) -> None:
            await close(cx)

        @endpoint.on_receive_request("request")
        async def on_request(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            responder.respond("closing")
            await close(cx)

        @endpoint.method("method")
        async def method(_params: Any, cx: acprt.Connection) -> str:
            await close(cx)
            return "closing"

        @endpoint.method("after response")
        async def after_response(_params: Any, cx: acprt.Connection) -> str:
            cx.after_response(lambda: close(cx))
            return "closing"

        @endpoint.on_receive_notification("wait_for in a handler")
        async def on_waiting(_params: Any, cx: acprt.Connection) -> None:
            returned.append(place)
            await asyncio.wait_for(cx.aclose(), 3)

        async def main():
            async with scripted(endpoint) as (cx, transport):
                match place:
                    case "callback":
                        sent = cx.send_request("m")

                        async def callback(_outcome: Outcome) -> None:
                            await close(cx)

                        sent.on_receiving_result(callback)
                        transport.deliver(result(sent.id, 1))
                    case "spawned":
                        cx.spawn(close(cx))
                    case "notification" | "wait_for in a handler":
                        transport.deliver(notification(place))
                    case _:
                        transport.deliver(request(1, place))
                await asyncio.wait_for(cx.incoming_closed(), 5)
                await cx.aclose()
                assert returned == [place]
                if place in ("request", "method", "after response"):
                    assert result(1, "closing") in transport.written

        run(main())

    def test_queued_output_leaves_first(self, run):
        """PY-62, LC-09: what was sent last is written before the transport closes."""

        async def main():
            async with raw_server_for(acprt.Endpoint("near")) as (cx, peer):
                for n in range(100):
                    cx.send_notification("n", [n])
                await cx.aclose()
                assert [line["params"] for line in peer.unread()] == [[n] for n in range(100)]
                assert peer.at_eof.is_set()

        run(main())

    def test_a_peer_that_does_not_read_holds_it_up_for_a_bounded_time(self, run, caplog):
        """LC-05, PY-62: and then it says what was lost."""

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near", limits=acprt.Limits(drain_seconds=0.05)).open(transport)
            transport.stall()
            cx.send_notification("never written")
            await asyncio.wait_for(cx.aclose(), 5)
            assert transport.closed

        run(main())
        assert "was not written within 0.05 s" in caplog.text

    def test_nothing_is_waited_for_when_the_cause_is_that_nobody_reads(self, run):
        """PY-40: past the ceiling of the outbox a further wait would bring nothing."""
        limits = acprt.Limits(outbox_max_bytes=1000, drain_seconds=3600)

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near", limits=limits).open(transport)
            transport.stall()
            with pytest.raises(acprt.RpcError, match="outbox_max_bytes"):
                while True:
                    cx.send_notification("n", ["x" * 100])
            await asyncio.wait_for(cx.aclose(), 5)
            assert transport.closed

        run(main())

    def test_a_peer_that_must_write_before_it_reads_gets_on(self, run):
        """TF-05: reading was paused because a handler was slow; while closing, what comes is read and discarded."""
        endpoint = acprt.Endpoint("near", limits=acprt.Limits(inbox_frames=5))
        seen: list[Any] = []

        @endpoint.on_receive_notification("n")
        async def note(params: Any) -> None:
            seen.append(params)
            await asyncio.Event().wait()

        async def main():
            async with raw_server_for(endpoint) as (cx, peer):
                for n in range(10):
                    peer.notify("n", [n])
                    await until_idle()
                drained = asyncio.create_task(peer.transport.drain())
                await until_idle()
                assert not drained.done()
                await asyncio.wait_for(cx.aclose(), 5)
                await asyncio.wait_for(drained, 5)
                assert seen == [[0]]

        run(main())


class TestLoopEnd:
    """A connection that is still open when its loop ends is closed by then, as far as its bounds allow."""

    @pytest.mark.parametrize("work", ["idle", "ordered handler", "method", "close callback", "callback", "closing"])
    def test_connection_left_open_is_closed_and_nothing_hangs(self, run, work):
        """Reference wishes: a forgotten `aclose()` is no hang at exit, and no complaint about pending tasks."""
        endpoint = acprt.Endpoint("near")
        cleaned: list[str] = []

        class TakesItsTime(ScriptedTransport):
            async def aclose(self) -> None:
                await until_idle()
                await super().aclose()

        transport = TakesItsTime()

        async def stay(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(name)

        @endpoint.on_receive_notification("ordered handler")
        async def ordered(_params: Any) -> None:
            await stay("ordered handler")

        @endpoint.method("method")
        async def method(_params: Any) -> None:
            await stay("method")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            await stay("close callback")

        async def main():
            cx = await endpoint.open(transport)
            sent = cx.send_request("m")

            async def callback(_outcome: Outcome) -> None:
                await stay("callback")

            match work:
                case "ordered handler":
                    transport.deliver(notification(work), notification(work))
                case "method":
                    transport.deliver(request(1, work))
                case "close callback":
                    transport.end()
                case "callback":
                    sent.on_receiving_result(callback)
                    transport.deliver(result(sent.id, 1))
                case "closing":
                    transport.stall()
                    asyncio.get_running_loop().call_soon(asyncio.ensure_future, cx.aclose())
            await until_idle()
            return cx, sent

        cx, sent = run(main())
        assert cx.status().state == "ended"
        assert transport.closed
        assert cleaned == ([work] if work not in ("idle", "closing") else [])
        assert sent.id == 1

    def test_dispatch_task_cancelled_by_a_stranger_ends_the_connection(self, run):
        """PY-11: it is a failure of the connection, told to the block and to the waiters."""

        async def main():
            transport = ScriptedTransport()

            async def block() -> None:
                async with acprt.Endpoint("near").connect(transport) as cx:
                    assert cx.dispatch_task is not None
                    cx.dispatch_task.cancel()
                    await asyncio.Event().wait()

            with pytest.raises(acprt.RpcError, match="the dispatch loop was cancelled"):
                await block()
            assert transport.closed

        run(main())


@pytest.mark.parametrize("kind", ["coroutine", "future"])
def test_work_behind_an_answer_given_by_the_end_is_not_begun(run, kind):
    """DEC-25: whatever `after_response` returns to await, the closing goes on and leaves nothing behind."""

    async def main():
        endpoint = acprt.Endpoint("x")
        begun: list[str] = []
        future = asyncio.get_running_loop().create_future()

        async def work() -> None:
            begun.append("work")

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            kept.append(responder)
            cx.after_response(work if kind == "coroutine" else lambda: future)

        kept: list[Any] = []
        transport = ScriptedTransport()
        cx = await endpoint.open(transport)
        transport.deliver(request(1, "keep"))
        await until_idle()
        await cx.aclose()
        assert [line["error"] for line in transport.written] == [SHUTTING_DOWN]
        assert begun == []
        assert future.cancelled() is (kind == "future")

    run(main())
