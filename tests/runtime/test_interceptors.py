"""Dispatch handlers that meet responses: they keep the router, fail, or park the response."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import acprt
from tests.rawpeer import raw_server_for, turns
from tests.runtime.ordered import Held, answer, note, noting


class TestRetainedRouter:
    """An interceptor keeps the router of a response and delivers it later."""

    @staticmethod
    def keeping(log: list[str]) -> tuple[acprt.Endpoint, list[acprt.ResponseRouter]]:
        endpoint, kept = noting(log), []

        @endpoint.on_receive_dispatch
        async def keep(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
            if dispatch.router is None:
                return acprt.Handled.no(dispatch)
            kept.append(dispatch.router)
            return None

        return endpoint, kept

    def test_callback_runs_without_a_barrier(self, run):
        """OB-10: later messages were released when the interceptor returned; they are not held again."""

        async def main():
            log: list[str] = []
            endpoint, kept = self.keeping(log)
            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1, "x"), note("after"))
                await turns()
                assert log == ["after"]
                kept.pop().route("later")
                await held.entered.wait()
                assert held.result == acprt.Ok("later")
                peer.send(note("meanwhile"))
                await turns()
                assert log == ["after", "callback starts", "meanwhile"]
                held.release.set()

        run(main())

    def test_waiter_of_a_kept_response_fails_when_the_connection_ends(self, run):
        """RR-03: a router that is kept for ever does not keep its waiter for ever."""

        async def main():
            log: list[str] = []
            endpoint, kept = self.keeping(log)
            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1))
                await turns()
                assert len(kept) == 1
            with pytest.raises(acprt.RpcError) as caught:
                await asyncio.wait_for(waiter, 5)
            assert caught.value.data["reason"] == "connection_closed"

        run(main())

    def test_second_delivery_is_ignored(self, run):
        """RR-02: the first one stands."""

        async def main():
            endpoint, kept = self.keeping([])
            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1))
                await turns()
                router = kept.pop()
                router.route("first")
                router.route_with_internal_error("second")
                assert await waiter == "first"

        run(main())


class TestFailingInterceptor:
    """A dispatch handler that raises on a response."""

    @staticmethod
    def failing(log: list[str], before: Callable[[acprt.ResponseRouter], None], error: Exception) -> acprt.Endpoint:
        endpoint = noting(log)

        @endpoint.on_receive_dispatch
        async def fail(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
            if dispatch.router is None:
                return acprt.Handled.no(dispatch)
            before(dispatch.router)
            raise error

        return endpoint

    def test_error_after_routing_is_ignored(self, run):
        """OB-11: the response that was routed stands, and so does its barrier."""

        async def main():
            log: list[str] = []
            endpoint = self.failing(log, lambda router: router.route("routed"), acprt.RpcError(5, "too late"))
            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1), note("after"))
                await held.entered.wait()
                await turns()
                assert held.result == acprt.Ok("routed")
                assert log == ["callback starts"]
                held.release.set()
                await turns()
                assert log == ["callback starts", "callback ends", "after"]

        run(main())

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (acprt.RpcError(5, "mine", {"a": 1}), acprt.RpcError(5, "mine", {"a": 1})),
            (ValueError("secret"), acprt.RpcError.internal_error()),
        ],
    )
    def test_error_without_routing_goes_to_the_waiter(self, run, error, told):
        """OB-12, RR-07: the waiter gets that error, behind the barrier; the peer is told nothing."""

        async def main():
            log: list[str] = []
            endpoint = self.failing(log, lambda router: None, error)
            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1), note("after"))
                await held.entered.wait()
                await turns()
                assert held.result == acprt.Err(told)
                assert log == ["callback starts"]
                held.release.set()
                await turns()
                assert log == ["callback starts", "callback ends", "after"]
                assert [line["method"] for line in await peer.settled()] == ["work"]

        run(main())


class TestParkedResponse:
    """A response that a handler asked to offer again later."""

    @staticmethod
    def parking(log: list[str]) -> acprt.Endpoint:
        endpoint = noting(log)

        @endpoint.on_receive_dispatch
        async def park(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
            return acprt.Handled.no(dispatch, retry=dispatch.kind == "response")

        return endpoint

    def test_callback_runs_without_a_barrier(self, run):
        """OB-13: parked counts as after its dispatch; what a later handler routes holds nothing."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.parking(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1), note("after"))
                await turns()
                assert log == ["after"]

                async def take(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
                    if dispatch.router is None:
                        return acprt.Handled.no()
                    dispatch.router.route(dispatch.result.unwrap() + "!")
                    return None

                with cx.add_dynamic_handler(take):
                    await held.entered.wait()
                    assert held.result == acprt.Ok("ok!")
                    peer.send(note("meanwhile"))
                    await turns()
                    assert log == ["after", "callback starts", "meanwhile"]
                    held.release.set()
                    await turns()

        run(main())

    def test_parked_response_that_nobody_takes_is_delivered_at_the_end(self, run):
        """OB-13, DY-09: no waiter is lost with the park."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.parking(log)) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1, "kept"), note("after"))
                await turns()
                assert log == ["after"]
                assert not waiter.done()
                peer.close_write()
                assert await waiter == "kept"

        run(main())

    def test_handler_that_drops_a_replayed_response_loses_it(self, run):
        """RR-03, DY-06: claimed at its second offer and dropped: the waiter is told."""

        async def main():
            async with raw_server_for(self.parking([])) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1))
                await turns()

                async def swallow(dispatch: acprt.Dispatch, cx: acprt.Connection) -> None: ...

                cx.add_dynamic_handler(swallow).detach()
                with pytest.raises(acprt.RpcError, match="response to `work` never received"):
                    await waiter

        run(main())
