"""The peer's EOF: what still happens behind it, and what fails because of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import keeper, notification, outcome_of, request, result, scripted, until_idle

Outcome = acprt.Result[Any]


class TestEndOfInput:
    """EOF is an event at the tail of the frames (EO-01, EO-02)."""

    def test_everything_before_it_is_dispatched_first(self, run):
        """EO-01: a response in the same chunk beats it, a handler that takes its time is waited for."""
        endpoint = acprt.Endpoint("near")
        order: list[str] = []

        @endpoint.on_receive_notification("slow")
        async def slow(_params: Any) -> None:
            await until_idle()
            order.append("handled")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            order.append("closed")

        async def main():
            async with scripted(endpoint) as (cx, transport):
                sent, never = cx.send_request("m"), cx.send_request("never")
                transport.deliver(notification("slow"), result(sent.id, "in time"))
                transport.end()
                assert await sent.block_task() == "in time"
                with pytest.raises(acprt.RpcError, match="Incoming transport closed"):
                    await never.block_task()
                await cx.incoming_closed()
                assert order == ["handled", "closed"]

        run(main())

    def test_it_waits_behind_a_held_callback(self, run):
        """OB-14, EO-01: callback, close callback, failure of the other waiter, in that order."""
        endpoint = acprt.Endpoint("near")
        order: list[str] = []
        release = asyncio.Event()

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            order.append("closed")

        async def main():
            async with scripted(endpoint) as (cx, transport):
                sent, other = cx.send_request("m"), cx.send_request("other")

                async def callback(_outcome: Outcome) -> None:
                    await release.wait()
                    order.append("callback")

                async def wait() -> None:
                    with pytest.raises(acprt.RpcError):
                        await other.block_task()
                    order.append("waiter")

                sent.on_receiving_result(callback)
                waiting = asyncio.create_task(wait())
                transport.deliver(result(sent.id, 1))
                transport.end()
                await until_idle()
                assert order == []
                release.set()
                await waiting
                assert order == ["callback", "closed", "waiter"]

        run(main())

    def test_close_callbacks_see_everything_failed_already(self, run):
        """EO-02, EO-05, EO-13: old requests, new requests; `is_incoming_closed` only when they are done."""
        endpoint = acprt.Endpoint("near")
        seen: list[Any] = []

        @endpoint.on_close
        async def bye(cx: acprt.Connection) -> None:
            assert cx.status().pending == []
            assert cx.status().state == "input_closing"
            assert not cx.is_incoming_closed
            seen.append(await outcome_of(cx.send_request("new")))
            await asyncio.sleep(0)
            assert not cx.is_incoming_closed

        async def main():
            async with scripted(endpoint) as (cx, transport):
                old = cx.send_request("old")
                transport.end()
                await asyncio.wait_for(cx.incoming_closed(), 5)
                assert acprt.is_incoming_transport_closed(seen[0].error)
                assert acprt.is_incoming_transport_closed((await outcome_of(old)).error)  # type: ignore[union-attr]  # an Ok fails

        run(main())

    def test_eof_stays_the_reason_after_the_close(self, run):
        """EO-07: what happened first is what is told, also for requests made when all is over."""

        async def main():
            async with scripted(acprt.Endpoint("near")) as (cx, transport):
                old = cx.send_request("old")
                transport.end()
                await cx.incoming_closed()
                await cx.aclose()
                for sent in (old, cx.send_request("new")):
                    with pytest.raises(acprt.RpcError) as caught:
                        await sent.block_task()
                    assert acprt.is_incoming_transport_closed(caught.value)

        run(main())

    def test_request_not_written_yet_is_not_written_any_more(self, run):
        """EO-06: its answer could never arrive; notifications and answers around it still leave."""
        endpoint = acprt.Endpoint("near")

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            return "answer"

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.stall()
                cx.send_notification("before")
                sent = cx.send_request("useless", {"n": 1})
                cx.send_notification("after", {"id": 1, "method": "looks like one"})
                transport.deliver(request(7, "ask"))
                await until_idle()
                transport.end()
                await cx.incoming_closed()
                transport.flow()
                await until_idle()
                assert transport.written == [
                    notification("before"),
                    notification("after", {"id": 1, "method": "looks like one"}),
                    result(7, "answer"),
                ]
                with pytest.raises(acprt.RpcError, match="Incoming transport closed"):
                    await sent.block_task()

        run(main())

    def test_the_connection_lives_on_in_the_other_direction(self, run):
        """EO-16, PY-66: notifications, answers, spawned work and dynamic handlers; only requests are refused."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"))
                transport.end()
                await cx.incoming_closed()
                cx.send_notification("still")
                done = asyncio.Event()

                async def work() -> None:
                    done.set()

                async def handler(_dispatch: acprt.Dispatch[Any]) -> None: ...

                cx.spawn(work())
                await asyncio.wait_for(done.wait(), 5)
                cx.add_dynamic_handler(handler).close()
                kept.pop().respond("answered")
                await until_idle()
                assert transport.written == [notification("still"), result(1, "answered")]

        run(main())

    def test_parked_messages_are_lost_by_name(self, run, caplog):
        """EO-02, DY-09, PY-36: nobody will take them; the request is answered, the loss is logged."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_receive_dispatch
        async def park(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            return acprt.Handled.no(dispatch, retry=True)

        async def main():
            async with scripted(endpoint) as (cx, transport):
                sent = cx.send_request("m")
                transport.deliver(request(1, "ask"), notification("note"), result(sent.id, "kept back"))
                transport.end()
                assert await sent.block_task(timeout=5) == "kept back"
                await cx.incoming_closed()
                assert transport.written[1]["error"]["code"] == -32601

        run(main())
        assert caplog.text.count("was parked and no handler took it") == 3
