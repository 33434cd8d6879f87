"""A dispatch handler that gets the response to one of our own requests: it may look, change, keep or lose it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_server_for
from tests.runtime.scripted import result


class Reply(msgspec.Struct, rename="camel"):
    full_text: str


class Ask(acprt.Request[Reply], method="ask"):
    pass


class TestResponseRouter:
    """A dispatch handler that gets the response to one of our own requests."""

    @staticmethod
    def _endpoint(handler: Any) -> acprt.Endpoint:
        endpoint = acprt.Endpoint("x")
        endpoint.on_receive_dispatch(handler)
        return endpoint

    @pytest.mark.parametrize(
        ("deliver", "expected"),
        [
            (lambda router: router.route({"n": 1}), acprt.Ok({"n": 1})),
            (lambda router: router.route_with_result(acprt.Ok(2)), acprt.Ok(2)),
            (
                lambda router: router.route_with_result(acprt.Err(acprt.RpcError(-3, "c"))),
                acprt.Err(acprt.RpcError(-3, "c")),
            ),
            (lambda router: router.route_with_error(acprt.RpcError(-4, "d")), acprt.Err(acprt.RpcError(-4, "d"))),
            (
                lambda router: router.route_with_internal_error("e"),
                acprt.Err(acprt.RpcError(-32603, "Internal error", "e")),
            ),
        ],
    )
    def test_router_delivers_to_the_waiter_and_writes_nothing(self, run, deliver, expected):
        """RR-01."""

        async def handler(dispatch: acprt.Dispatch[Any]) -> None:
            assert dispatch.router is not None
            deliver(dispatch.router)

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                await peer.receive()
                peer.respond(sent.id, "original")
                waiter = sent.block_task()
                outcome: acprt.Result[Any]
                try:
                    outcome = acprt.Ok(await waiter)
                except acprt.RpcError as caught:
                    outcome = acprt.Err(caught)
                assert outcome == expected
                assert await peer.settled() == []

        run(main())

    def test_routing_twice_delivers_the_first(self, run):
        """RR-02."""

        async def handler(dispatch: acprt.Dispatch[Any]) -> None:
            assert dispatch.router is not None
            dispatch.router.route("first")
            dispatch.router.route("second")
            dispatch.router.route_with_internal_error("third")

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                peer.respond(sent.id, "original")
                assert await sent.block_task() == "first"

        run(main())

    def test_routing_for_nobody_is_no_error(self, run):
        """RR-01: the waiter may be gone."""
        routed = asyncio.Event()

        async def handler(dispatch: acprt.Dispatch[Any]) -> None:
            assert dispatch.router is not None
            dispatch.router.route("x")
            routed.set()

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                sent.detach()
                peer.respond(sent.id, "original")
                await asyncio.wait_for(routed.wait(), 5)
                again = cx.send_request("again")
                peer.respond(again.id, "original")
                assert await again.block_task() == "x"

        run(main())

    def test_claimed_and_dropped_response_fails_its_waiter_by_name(self, run):
        """RR-03: the error says so, and is not that of an EOF."""

        async def handler(_dispatch: acprt.Dispatch[Any]) -> None: ...

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                peer.respond(sent.id, "original")
                with pytest.raises(acprt.RpcError, match=r"response to `m` never received") as caught:
                    await sent.block_task()
                assert caught.value.code == -32603
                assert not acprt.is_incoming_transport_closed(caught.value)

        run(main())

    def test_response_kept_and_dropped_after_eof_is_not_reported_as_eof(self, run):
        """RR-03: what was answered was answered."""
        kept: list[Any] = []

        async def handler(dispatch: acprt.Dispatch[Any]) -> None:
            kept.append(dispatch.router)

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                peer.respond(sent.id, "original")
                peer.close_write()
                await asyncio.wait_for(cx.incoming_closed(), 5)
                waiter = asyncio.create_task(sent.block_task())
                await asyncio.sleep(0)
                assert not waiter.done()
                kept.clear()
                with pytest.raises(acprt.RpcError, match="never received") as caught:
                    await waiter
                assert not acprt.is_incoming_transport_closed(caught.value)

        run(main())

    def test_lost_response_reaches_its_callback_and_costs_nothing_else(self, run):
        """RR-04, PY-60: the callback gets the error; the connection lives."""

        async def handler(dispatch: acprt.Dispatch[Any]) -> acprt.Handled | None:
            return None if dispatch.kind == "response" and dispatch.method == "m" else acprt.Handled.no(dispatch)

        async def main():
            got: asyncio.Future[acprt.Result[Any]] = asyncio.get_running_loop().create_future()

            async def callback(outcome: acprt.Result[Any]) -> None:
                got.set_result(outcome)

            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                sent.on_receiving_result(callback)
                peer.respond(sent.id, "original")
                outcome = await asyncio.wait_for(got, 5)
                assert isinstance(outcome, acprt.Err)
                assert "never received" in str(outcome.error)
                other = cx.send_request("other")
                peer.respond(other.id, "fine")
                assert await other.block_task() == "fine"

        run(main())

    def test_passing_a_changed_result_on_changes_what_the_waiter_gets(self, run):
        """RR-06: a value for a value, or an error for it."""

        async def double(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            if dispatch.method == "fail":
                return acprt.Handled.no(dispatch.replace(acprt.RpcError(-9, "rewritten")))
            return acprt.Handled.no(dispatch.replace(dispatch.result.unwrap() * 2))

        async def main():
            async with raw_server_for(self._endpoint(double)) as (cx, peer):
                sent, failing = cx.send_request("m"), cx.send_request("fail")
                peer.respond(sent.id, 21)
                peer.respond(failing.id, 21)
                assert await sent.block_task() == 42
                with pytest.raises(acprt.RpcError, match="rewritten"):
                    await failing.block_task()

        run(main())

    def test_error_of_a_response_handler_goes_to_the_waiter_and_not_to_the_peer(self, run):
        """RR-07: code and data as they are."""

        async def handler(_dispatch: acprt.Dispatch[Any]) -> None:
            raise acprt.RpcError(-77, "refused", {"by": "handler"})

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                sent = cx.send_request("m")
                await peer.receive()
                peer.respond(sent.id, 1)
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                assert caught.value == acprt.RpcError(-77, "refused", {"by": "handler"})
                assert peer.unread() == []

        run(main())

    def test_dispatch_tells_what_it_is(self, run):
        """RR-08: id, method, message, has_field, result; what does not apply says so."""
        seen: dict[str, acprt.Dispatch[Any]] = {}

        async def handler(dispatch: acprt.Dispatch[Any]) -> acprt.Handled | None:
            seen[dispatch.kind] = dispatch
            if dispatch.kind == "request":
                assert dispatch.responder is not None
                dispatch.responder.respond(dispatch.has_field("x"))
                return None
            return acprt.Handled.no(dispatch)

        async def main():
            async with raw_server_for(self._endpoint(handler)) as (cx, peer):
                peer.request("i", "req", {"x": 1})
                assert await peer.receive() == result("i", True)
                peer.notify("note", [1])
                sent = cx.send_request("mine")
                await peer.receive()
                peer.respond(sent.id, {"v": 2})
                assert await sent.block_task() == {"v": 2}
                assert sent.id == 1
            request, note, response = seen["request"], seen["notification"], seen["response"]
            assert (request.id, request.method, request.params) == ("i", "req", {"x": 1})
            assert (note.id, note.method, note.params, note.has_field("x")) == (None, "note", [1], False)
            assert (response.id, response.method, response.message, response.params) == (1, "mine", None, None)
            assert response.result == acprt.Ok({"v": 2})
            assert note.responder is None
            assert note.router is None
            for dispatch in (request, note):
                with pytest.raises(TypeError, match="has no result"):
                    _ = dispatch.result
            assert "response" in repr(response)

        run(main())

    def test_typed_dispatch_has_the_message(self, run):
        """RR-08: `message` is decoded where the annotation names a type."""
        endpoint = acprt.Endpoint("x")
        seen: list[Any] = []

        @endpoint.on_receive_dispatch
        async def handler(dispatch: acprt.Dispatch[Ask]) -> None:
            seen.append(dispatch.message if dispatch.kind == "request" else dispatch.result)
            if dispatch.responder is not None:
                dispatch.responder.respond(Reply(full_text="hi"))
            elif dispatch.router is not None:
                dispatch.router.route(Reply(full_text="routed"))

        async def main():
            async with raw_server_for(endpoint) as (cx, peer):
                peer.request(1, "ask", {})
                assert await peer.receive() == result(1, {"fullText": "hi"})
                sent = cx.send_request(Ask())
                await peer.receive()
                peer.respond(sent.id, {"fullText": "raw"})
                assert await sent.block_task() == Reply(full_text="routed")
            assert seen == [Ask(), acprt.Ok(Reply(full_text="raw"))]

        run(main())
