"""What becomes of running work when a connection is closed: cancelled, waited for, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import ScriptedTransport, cancel, notification, request, result, scripted, until_idle

Outcome = acprt.Result[Any]


@pytest.fixture
def short_moments(monkeypatch):
    """What swallows a cancel is given less than the second that it has."""
    monkeypatch.setattr("acprt.runtime.tasks._LAST_WAIT", 0.05)


class TestTearingDown:
    """What becomes of running work when the connection ends."""

    @staticmethod
    async def _close_while(
        start: Callable[[acprt.Connection, ScriptedTransport], Awaitable[None]], endpoint: acprt.Endpoint
    ):
        async with scripted(endpoint) as (cx, transport):
            await start(cx, transport)
            await asyncio.wait_for(cx.aclose(), 10)
            return transport

    def test_every_task_is_cancelled_and_waited_for(self, run):
        """M-02, SP-01: handlers of every kind, spawned work, callbacks; their clean-up runs before the close ends."""
        endpoint = acprt.Endpoint("near")
        ended: list[str] = []

        async def until_cancelled(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        @endpoint.method("method")
        async def method(_params: Any) -> None:
            await until_cancelled("method")

        @endpoint.on_receive_notification("ordered")
        async def ordered(_params: Any) -> None:
            await until_cancelled("ordered")

        @endpoint.with_spawned
        async def background(_cx: acprt.Connection) -> None:
            await until_cancelled("background")

        async def start(cx: acprt.Connection, transport: ScriptedTransport) -> None:
            cx.spawn(until_cancelled("spawned"))
            transport.deliver(request(1, "method"), notification("ordered"))
            await until_idle()

        run(self._close_while(start, endpoint))
        assert sorted(ended) == ["background", "method", "ordered", "spawned"]

    @pytest.mark.usefixtures("short_moments")
    def test_one_that_swallows_the_first_cancel_is_cancelled_again(self, run):
        """Such work is waited for."""
        endpoint = acprt.Endpoint("near")
        cancels: list[int] = []

        @endpoint.method("stubborn")
        async def stubborn(_params: Any) -> None:
            while len(cancels) < 2:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancels.append(1)

        async def start(_cx: acprt.Connection, transport: ScriptedTransport) -> None:
            transport.deliver(request(1, "stubborn"))
            await until_idle()

        transport = run(self._close_while(start, endpoint))
        assert len(cancels) == 2
        assert transport.written == [result(1, None)]

    @pytest.mark.usefixtures("short_moments")
    def test_one_that_swallows_every_cancel_is_left_behind_and_answered_for(self, run, caplog):
        """The close is bounded whatever a handler does."""
        endpoint = acprt.Endpoint("near")
        release = asyncio.Event()

        @endpoint.method("immortal")
        async def immortal(_params: Any) -> str:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            return "too late"

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "immortal"))
                await until_idle()
                await asyncio.wait_for(cx.aclose(), 10)
                assert transport.closed
                assert [line["error"]["data"] for line in transport.written] == [{"reason": "shutting_down"}]
                release.set()
                await until_idle()
                assert len(transport.written) == 1

        run(main())
        assert "did not end although it was cancelled" in caplog.text

    def test_handler_that_swallows_its_cancellation_is_the_last_to_run(self, run):
        """DEC-18: nothing behind it is dispatched on a connection that is being torn down."""
        endpoint = acprt.Endpoint("near")
        seen: list[Any] = []

        @endpoint.on_receive_notification("n")
        async def note(params: Any) -> None:
            seen.append(params)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

        async def start(_cx: acprt.Connection, transport: ScriptedTransport) -> None:
            transport.deliver(*[notification("n", [n]) for n in range(3)])
            await until_idle()

        run(self._close_while(start, endpoint))
        assert seen == [[0]]

    def test_queued_requests_and_unfinished_batches_are_answered(self, run):
        """DEC-25, BA-19: what was accepted and never dispatched, and arrays that miss a slot or a trailing handler."""
        endpoint = acprt.Endpoint("near")
        kept: list[acprt.Responder[Any]] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: acprt.Responder[Any]) -> None:
            kept.append(responder)

        @endpoint.on_receive_notification("stall")
        async def stall(_params: Any) -> None:
            await asyncio.Event().wait()

        @endpoint.on_receive_request("quick")
        async def quick(_params: Any, responder: acprt.Responder[Any]) -> None:
            responder.respond("quick")

        async def start(_cx: acprt.Connection, transport: ScriptedTransport) -> None:
            transport.deliver(
                [request(1, "keep"), request(2, "quick")],
                [request(3, "quick"), notification("stall")],
                request(4, "quick"),
                [request(5, "quick"), request(6, "quick"), cancel(6)],
                [request(7, "quick"), cancel(7)],
            )
            await until_idle()

        transport = run(self._close_while(start, endpoint))
        answers = {}
        for line in transport.written:
            members = line if isinstance(line, list) else [line]
            answers[tuple(member["id"] for member in members)] = [
                member.get("result") or member["error"].get("data") or member["error"]["code"] for member in members
            ]
        shutting_down = {"reason": "shutting_down"}
        assert answers == {
            (1, 2): [shutting_down, "quick"],
            (3,): ["quick"],
            (4,): [shutting_down],
            (5, 6): [shutting_down, -32800],
            (7,): [-32800],
        }

    def test_transport_whose_close_fails_still_ends_the_connection(self, run, caplog):
        """TF-07, DEC-16: the waiters learn of the end, `aclose()` does not raise, the failure is logged."""

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near").open(transport)
            sent = cx.send_request("m")
            transport.close_error = RuntimeError("cannot close")
            await cx.aclose()
            with pytest.raises(acprt.RpcError, match="Connection closed"):
                await sent.block_task()
            assert cx.is_incoming_closed

        run(main())
        assert "cannot close" in caplog.text

    @pytest.mark.usefixtures("short_moments")
    def test_callback_that_never_returns_does_not_hold_up_the_close(self, run):
        """Callbacks of requests that the end fails get a moment, no more."""

        async def main():
            async with scripted(acprt.Endpoint("near")) as (cx, transport):
                called = asyncio.Event()

                async def callback(_outcome: Outcome) -> None:
                    called.set()
                    await asyncio.Event().wait()

                cx.send_request("m").on_receiving_result(callback)
                await asyncio.wait_for(cx.aclose(), 10)
                assert called.is_set()
                assert transport.closed

        run(main())

    def test_callback_that_raises_at_the_end_changes_nothing(self, run):
        """SR-06, DEC-16: the connection has ended already, with its own reason."""

        async def main():
            async with scripted(acprt.Endpoint("near")) as (cx, _transport):

                async def callback(outcome: Outcome) -> None:
                    outcome.unwrap()

                cx.send_request("m").on_receiving_result(callback)
                await cx.aclose()
                assert cx.ends.cause is None

        run(main())

    def test_what_still_comes_in_is_discarded(self, run):
        """TF-05: lines, EOF and errors after the end reach nobody and break nothing."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_receive_dispatch
        async def never(_dispatch: acprt.Dispatch[Any]) -> None:
            raise AssertionError("dispatched after the end")

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.stall()
                closing = asyncio.create_task(cx.aclose())
                await until_idle()
                transport.deliver(request(1, "m"), notification("n"), b"garbage")
                transport.flow()
                await closing
                transport.deliver(request(2, "m"))
                transport.end()
                transport.lose(OSError("cannot read"))
                await until_idle()
                assert transport.written == []

        run(main())
