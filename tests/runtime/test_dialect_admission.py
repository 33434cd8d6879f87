"""Dialects that say which messages are let in."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Any

import pytest

import acprt
from acprt.wire.frames import NotificationFrame, RequestFrame
from tests.runtime.scripted import cancel, error, notification, request, result, until_idle
from tests.runtime.speaking import speaking, waiting_endpoint


def seeing_endpoint() -> tuple[acprt.Endpoint, list[str]]:
    """It answers every request with "ok", and the methods of what it was given, in order."""
    endpoint = acprt.Endpoint("x")
    seen: list[str] = []

    @endpoint.on_receive_dispatch
    async def see(dispatch: acprt.Dispatch[Any]) -> None:
        seen.append(dispatch.method)
        if dispatch.responder is not None:
            dispatch.responder.respond("ok")

    return endpoint, seen


class TestAdmission:
    def test_batches_may_be_refused(self, run):
        """One -32600 for the array, its members are not looked at."""

        class NoBatches(acprt.Dialect):
            accepts_batches = False

        endpoint, steps = waiting_endpoint()

        async def main():
            async with speaking(NoBatches(), endpoint) as (cx, transport):
                transport.deliver([request(1, "slow"), notification("n")], request(2, "nobody"))
                await until_idle()
                assert [(line["id"], line["error"]["code"]) for line in transport.written] == [
                    (None, -32600),
                    (2, -32601),
                ]
                assert "batches" in str(transport.written[0]["error"]["data"])
                assert steps == []
                assert cx.status().in_flight == []

        run(main())

    def test_admit_refuses_requests_with_its_error_and_notifications_silently(self, run):
        """Reference hook `classify_opening`: what comes before the handshake, say."""

        class Handshake(acprt.Dialect):
            def __init__(self) -> None:
                self.opened = False

            def for_connection(self) -> acprt.Dialect:
                return Handshake()

            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                self.opened = self.opened or frame.method == "initialize"
                return None if self.opened else acprt.RpcError.invalid_request({"reason": "not initialized"})

        endpoint, seen = seeing_endpoint()

        async def talk():
            async with speaking(Handshake(), endpoint) as (cx, transport):
                transport.deliver(
                    request(1, "early"),
                    notification("early"),
                    request(2, "initialize"),
                    request(3, "now"),
                    notification("now"),
                )
                await until_idle()
                assert transport.written == [
                    error(1, -32600, "Invalid request", {"reason": "not initialized"}),
                    result(2, "ok"),
                    result(3, "ok"),
                ]
                assert cx.status().in_flight == []

        async def main():
            for _ in range(2):  # the state of one connection is no other's
                seen.clear()
                await talk()
                assert seen == ["initialize", "now", "now"]

        run(main())

    def test_notifications_before_the_first_request_may_wait_for_it(self, run, caplog):
        """Reference hook `pre_era_buffer`: bounded, offered to `admit` in front of the request that decides; a request
        that is refused decides nothing, and a cancel that came too early hits nothing (CA-06).
        """

        class Buffering(acprt.Dialect):
            opening_buffer = 3

            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return acprt.RpcError.invalid_request() if frame.method.startswith("refused") else None

        endpoint, seen = seeing_endpoint()

        async def main():
            async with speaking(Buffering(), endpoint) as (_cx, transport):
                transport.deliver(notification("a"), notification("refused too"), cancel(2), notification("too many"))
                transport.deliver(request(1, "refused"))
                await until_idle()
                assert seen == []
                transport.deliver(request(2, "first"), notification("b"))
                await until_idle()
                assert seen == ["a", "$/cancel_request", "first", "b"]
                assert transport.written == [error(1, -32600, "Invalid request"), result(2, "ok")]

        run(main())
        assert "dropped too many" in caplog.text

    def test_first_request_inside_a_batch_ends_the_waiting(self, run):
        """Reference hook `pre_era_buffer`: an array is no other door; what waited goes in front of its request."""

        class Buffering(acprt.Dialect):
            opening_buffer = 3

        endpoint, seen = seeing_endpoint()

        async def main():
            async with speaking(Buffering(), endpoint) as (_cx, transport):
                transport.deliver(notification("a"), [notification("b"), request(1, "first"), notification("c")])
                transport.deliver(notification("d"))
                await until_idle()
                assert seen == ["a", "b", "first", "c", "d"]
                assert transport.written == [[result(1, "ok")]]

        run(main())

    @pytest.mark.parametrize("hook", ["admit", "key", "parse_cancel"])
    def test_error_of_a_hook_ends_the_connection(self, run, hook):
        """TF-01: a defect of a dialect is never a connection that is open and hears nothing."""

        class Broken(acprt.Dialect):
            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return None

            def key(self, id: Any) -> Hashable:
                return super().key(id)

        def fail(self: Any, *_args: Any) -> Any:
            raise ZeroDivisionError("in the dialect")

        setattr(Broken, hook, fail)

        async def main():
            with pytest.raises(ZeroDivisionError, match="in the dialect"):
                async with speaking(Broken()) as (_cx, transport):
                    transport.deliver(cancel(1) if hook == "parse_cancel" else request(1, "nobody"))
                    await asyncio.Event().wait()
            assert transport.closed

        run(main())

    def test_refused_member_of_a_batch_has_its_slot(self, run):
        """BA-02, BA-03."""

        class Picky(acprt.Dialect):
            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return acprt.RpcError.method_not_found("refused") if frame.method == "refused" else None

        async def main():
            async with speaking(Picky()) as (_cx, transport):
                transport.deliver([request(1, "refused"), request(2, "nobody")])
                await until_idle()
                assert transport.written == [
                    [error(1, -32601, "Method not found", "refused"), error(2, -32601, "Method not found", "nobody")]
                ]

        run(main())

    def test_outgoing_request_may_be_refused_without_sending(self, run):
        """Reference hook: a version that has no such method, say; the error comes through the handle."""

        class Guarded(acprt.Dialect):
            def on_request_sent(self, id: Any, method: str, params: Any) -> acprt.RpcError | None:
                return acprt.RpcError.method_not_found(method) if method == "newer" else None

        async def main():
            async with speaking(Guarded()) as (cx, transport):
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request("newer").block_task()
                assert caught.value == acprt.RpcError.method_not_found("newer")
                cx.send_request("known").detach()
                await until_idle()
                assert [line["method"] for line in transport.written] == ["known"]

        run(main())
