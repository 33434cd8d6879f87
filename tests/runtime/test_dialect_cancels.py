"""Dialects with a cancel of their own, in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

import msgspec
import pytest

import acprt
from acprt.wire.frames import NotificationFrame
from tests.runtime.scripted import cancel, error, notification, request, result, until_idle
from tests.runtime.speaking import Silent, speaking, waiting_endpoint

Requests = acprt.Responder[Any]


class OtherCancel(acprt.Dialect):
    """A protocol with a cancel of its own: name, shape, reason."""

    cancel_methods = frozenset({"notifications/cancelled"})

    def parse_cancel(self, frame: NotificationFrame) -> acprt.CancelNotice | None:
        params = msgspec.json.decode(frame.params)
        if not isinstance(params, dict) or type(params.get("requestId")) not in (int, str):
            return None
        return acprt.CancelNotice(params["requestId"], params.get("reason"))

    def build_cancel(self, id: Any, reason: str | None = None) -> tuple[str, Any]:
        params = {"requestId": id}
        return "notifications/cancelled", params if reason is None else params | {"reason": reason}


class TestCancelRules:
    def test_cancel_has_the_name_and_shape_of_the_dialect(self, run):
        """Reference hooks `parse_cancel`, `build_cancel`: in both directions, with the reason of a timeout."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(OtherCancel(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1), notification("notifications/cancelled", {"requestId": True}))
                await until_idle()
                assert transport.written == []
                transport.deliver(notification("notifications/cancelled", {"requestId": 1, "reason": "user"}))
                await until_idle()
                assert transport.written == [error(1, -32800, "Request cancelled")]
                with pytest.raises(TimeoutError):
                    await cx.send_request("m").block_task(timeout=0.01)
                await until_idle()
                assert transport.written[-1] == notification(
                    "notifications/cancelled", {"requestId": 1, "reason": "no answer within 0.01 s"}
                )

        run(main())

    def test_uncancellable_request_of_the_peer_runs_on(self, run):
        """Reference hook `may_cancel`: `initialize`, say; the cancel changes nothing, not even the marker."""

        class Protected(acprt.Dialect):
            def may_cancel_incoming(self, method: str) -> bool:
                return method != "initialize"

        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("initialize")
        async def initialize(_params: Any) -> str:
            await release.wait()
            return "ready"

        async def main():
            async with speaking(Protected(), endpoint) as (cx, transport):
                transport.deliver(request(1, "initialize"), cancel(1))
                await until_idle()
                assert [entry.is_cancelled for entry in cx.status().in_flight] == [False]
                release.set()
                await until_idle()
                assert transport.written == [result(1, "ready")]

        run(main())

    def test_cancelled_request_gets_the_result_that_the_dialect_has_for_its_method(self, run):
        """In the place of any error, in whatever state the cancel finds it; other methods get -32800."""

        class Worded(acprt.Dialect):
            def cancelled_answer(self, method: str) -> Any:
                return "cancelled" if method in ("slow", "keep") else super().cancelled_answer(method)

        endpoint, _steps = waiting_endpoint()
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        @endpoint.method("other")
        async def other(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with speaking(Worded(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"), request(2, "other"), request(3, "keep"))
                await until_idle()
                transport.deliver(cancel(1), cancel(2), cancel(3), request(4, "slow"), cancel(4))
                await until_idle()
                kept.pop().respond_with_error(acprt.RpcError(-1, "not now"))
                await until_idle()
                answers = {answer["id"]: answer for answer in transport.written}
                assert answers == {
                    1: result(1, "cancelled"),
                    2: error(2, -32800, "Request cancelled"),
                    3: result(3, "cancelled"),
                    4: result(4, "cancelled"),
                }

        run(main())

    @pytest.mark.parametrize("how", ["cancel", "drop", "timeout", "task"])
    def test_uncancellable_request_of_ours_is_never_cancelled(self, run, how):
        """Reference hook `may_cancel`: who stops waiting just leaves; a late answer is recognised."""

        class Protected(Silent):
            def may_cancel_outgoing(self, method: str) -> bool:
                return method != "initialize"

        async def main():
            async with speaking(Protected()) as (cx, transport):
                sent = cx.send_request("initialize")
                match how:
                    case "cancel":
                        sent.cancel()
                        sent.detach()
                    case "drop":
                        del sent
                    case "timeout":
                        with pytest.raises(TimeoutError):
                            await sent.block_task(timeout=0.01)
                    case "task":
                        waiting = asyncio.create_task(sent.block_task())
                        await asyncio.sleep(0)
                        waiting.cancel()
                        await asyncio.wait([waiting])
                await until_idle()
                assert transport.written == [request(1, "initialize")]
                transport.deliver(result(1, "late"))
                await until_idle()
                assert cx.status().counters.late_responses == 1

        run(main())

    def test_ids_are_looked_up_by_the_key_of_the_dialect(self, run):
        """Reference hook `key`: under one that folds case, "A" cancels "a"."""

        class Folding(acprt.Dialect):
            def key(self, id: Any) -> Hashable:
                return id.lower() if isinstance(id, str) else id

        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Folding(), endpoint) as (cx, transport):
                transport.deliver(request("a", "slow"), request("b", "slow"))
                await until_idle()
                transport.deliver(cancel("A"))
                await until_idle()
                assert transport.written == [error("a", -32800, "Request cancelled")]
                assert [entry.id for entry in cx.status().in_flight] == ["b"]

        run(main())
