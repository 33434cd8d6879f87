"""Taking an answer by callback: decoded results, failing callbacks, dead connections, and `map`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import RawPeer, raw_server_for, turns
from tests.runtime.ordered import answer, until_it_ends, upstream_responder


class Reply(msgspec.Struct, rename="camel"):
    line_count: int


class Count(acprt.Request[Reply], method="count"):
    path: str = ""


def _ignore(*_args: Any) -> Any:
    raise AssertionError("never called")


WAYS: dict[str, Callable[[acprt.SentRequest[Any], acprt.Responder[Any]], Any]] = {
    "block_task": lambda sent, responder: sent.block_task().close(),
    "on_receiving_result": lambda sent, responder: sent.on_receiving_result(_ignore),
    "on_receiving_ok_result": lambda sent, responder: sent.on_receiving_ok_result(responder, _ignore),
    "forward_response_to": lambda sent, responder: sent.forward_response_to(responder),
    "detach": lambda sent, responder: sent.detach(),
    "map": lambda sent, responder: sent.map(_ignore).detach(),
    "with": lambda sent, responder: sent.__exit__(None, None, None),
}


class TestCallbacks:
    """`on_receiving_result` and `on_receiving_ok_result`."""

    def test_result_is_decoded(self, run):
        """SR-04: Ok with the decoded value, Err with the peer's error, Err for a result of another shape."""

        async def main():
            results: list[Any] = []

            async def callback(result: acprt.Result[Reply]) -> None:
                match result:
                    case acprt.Ok(value):
                        results.append(value.line_count)
                    case acprt.Err(error):
                        results.append(error.code)

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                for _ in range(3):
                    cx.send_request(Count()).on_receiving_result(callback)
                peer.send(answer(1, {"lineCount": 3}))
                peer.respond_error(2, 17, "no")
                peer.send(answer(3, "no object"))
                await turns()
                assert results == [3, 17, acprt.ErrorCode.INTERNAL_ERROR]

        run(main())

    def test_unwrap(self):
        """`unwrap` gives the value or raises the error."""
        assert acprt.Ok(3).unwrap() == 3
        with pytest.raises(acprt.RpcError, match="no"):
            acprt.Err(acprt.RpcError(1, "no")).unwrap()

    def test_failing_callback_ends_its_connection(self, run):
        """SR-06, PY-15: the block raises the very error, not a group and not a copy."""

        async def main():
            mine = ValueError("mine")

            async def callback(result: Any) -> None:
                raise mine

            def script(cx: acprt.Connection, peer: RawPeer) -> None:
                cx.send_request("work").on_receiving_result(callback)
                peer.send(answer(1))

            with pytest.raises(ValueError, match="mine") as caught:
                await until_it_ends(acprt.Endpoint(), script)
            assert caught.value is mine
            assert caught.traceback[-1].name == "callback", "the traceback leads to where it failed"

        run(main())

    def test_callback_belongs_to_the_connection_that_sent(self, run):
        """SR-05: a failing callback of a bridge ends the downstream connection; upstream lives."""

        async def main():
            upstream = acprt.Endpoint("upstream")
            async with upstream_responder(upstream) as (responder, up):

                def script(cx: acprt.Connection, peer: RawPeer) -> None:
                    async def callback(value: Any, responder: acprt.Responder[Any]) -> None:
                        raise ValueError("of the bridge")

                    cx.send_request("work").on_receiving_ok_result(responder, callback)
                    peer.send(answer(1))

                with pytest.raises(ValueError, match="of the bridge"):
                    await until_it_ends(acprt.Endpoint("downstream"), script)
                up.request("still", "there")
                assert (await up.receive())["error"]["code"] == acprt.ErrorCode.METHOD_NOT_FOUND
                responder.respond(None)
                await up.receive()

        run(main())

    def test_registration_on_a_dead_connection_raises(self, run):
        """SR-07: nothing can run the callback any more, so the caller is told at once."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                pass
            with pytest.raises(acprt.RpcError) as caught:
                cx.send_request("work").on_receiving_result(_ignore)
            assert caught.value.data["reason"] == "connection_closed"

        run(main())

    @pytest.mark.parametrize("way", ["forward_response_to", "on_receiving_ok_result"])
    def test_responder_is_answered_by_a_dead_connection(self, run, way):
        """SR-07, SR-09: who waits upstream learns the reason, not that somebody dropped a responder."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                pass
            async with upstream_responder(acprt.Endpoint()) as (responder, up):
                WAYS[way](cx.send_request("work"), responder)
                del responder
                line = await up.receive()
                assert line["id"] == "up-1"
                assert line["error"]["data"] == {"reason": "downstream_closed", "method": "work"}

        run(main())

    @pytest.mark.parametrize("outcome", ["result", "error", "eof"])
    def test_ok_callback_gets_success_only(self, run, outcome):
        """SR-09: errors of the peer and of this side answer the responder, and the callback is not called."""

        async def main():
            called: list[Any] = []

            async def callback(value: Reply, responder: acprt.Responder[Any]) -> None:
                called.append(value)
                responder.respond(value.line_count + 1)

            async with (
                upstream_responder(acprt.Endpoint()) as (responder, up),
                raw_server_for(acprt.Endpoint()) as (cx, peer),
            ):
                cx.send_request(Count()).on_receiving_ok_result(responder, callback)
                del responder
                if outcome == "result":
                    peer.send(answer(1, {"lineCount": 3}))
                    assert (await up.receive())["result"] == 4
                elif outcome == "error":
                    peer.respond_error(1, 9, "no", data="d")
                    assert (await up.receive())["error"] == {"code": 9, "message": "no", "data": "d"}
                else:
                    peer.close_write()
                    assert (await up.receive())["error"]["data"]["reason"] == "downstream_closed"
                assert called == ([Reply(3)] if outcome == "result" else [])

        run(main())

    @pytest.mark.parametrize("when", ["in time", "late"])
    def test_responder_that_the_callback_drops_is_answered(self, run, when):
        """SR-09, RS-05: also when somebody still holds the handle of the request."""

        async def main():
            async def callback(value: Any, responder: acprt.Responder[Any]) -> None: ...

            async with (
                upstream_responder(acprt.Endpoint()) as (responder, up),
                raw_server_for(acprt.Endpoint()) as (cx, peer),
            ):
                sent = cx.send_request("work")
                if when == "late":
                    peer.send(answer(1))
                    await turns()
                sent.on_receiving_ok_result(responder, callback)
                del responder
                if when == "in time":
                    peer.send(answer(1))
                line = await up.receive()
                assert line["error"]["data"] == "request handler dropped its responder for `up`"
                assert sent.id == 1

        run(main())


class TestMap:
    """`map`: a handle of another type."""

    def test_function_runs_once_and_only_on_success(self, run):
        """SR-08: after decoding; errors bypass it; maps compose."""

        async def main():
            calls: list[Any] = []

            def count(reply: Reply) -> int:
                calls.append(reply)
                return reply.line_count

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                good = asyncio.create_task(cx.send_request(Count()).map(count).map(lambda n: n * 2).block_task())
                bad = asyncio.create_task(cx.send_request(Count()).map(count).block_task())
                await turns()
                peer.send(answer(1, {"lineCount": 3}))
                peer.respond_error(2, 5, "no")
                assert await good == 6
                with pytest.raises(acprt.RpcError, match="no"):
                    await bad
                assert calls == [Reply(3)]

        run(main())

    def test_callbacks_get_the_mapped_value(self, run):
        """SR-08 in the ordered ways; an RpcError of the function becomes the result."""

        async def main():
            results: list[Any] = []

            async def callback(result: acprt.Result[int]) -> None:
                results.append(result)

            def refuse(reply: Reply) -> int:
                raise acprt.RpcError(8, "refused")

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.send_request(Count()).map(lambda reply: reply.line_count).on_receiving_result(callback)
                cx.send_request(Count()).map(refuse).on_receiving_result(callback)
                peer.send(answer(1, {"lineCount": 3}), answer(2, {"lineCount": 3}))
                await turns()
                assert results == [acprt.Ok(3), acprt.Err(acprt.RpcError(8, "refused"))]

        run(main())

    def test_error_of_the_function_is_the_result(self, run):
        """SR-08: whatever it raises, the waiter gets it."""

        async def main():
            def fail(reply: Any) -> int:
                raise ValueError("in map")

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").map(fail).block_task())
                await turns()
                peer.send(answer(1))
                with pytest.raises(ValueError, match="in map"):
                    await waiter

        run(main())


class TestEnds:
    """What waits when the connection ends."""

    def test_callback_of_a_closed_connection_is_never_called(self, run):
        """SR-23: the block ends under a waiting callback: it is not called, and no cancel reaches the wire."""

        async def main():
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            async with acprt.Endpoint().connect(near) as cx:
                cx.send_request("work").on_receiving_result(_ignore)
            await peer.at_eof.wait()
            assert [line["method"] for line in peer.unread()] == ["work"]
            await peer.aclose()

        run(main())

    def test_handle_that_outlives_its_connection_fails(self, run):
        """SR-24, PY-60: it never hangs, and tells that the connection was closed here."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                sent = cx.send_request("work")
            with pytest.raises(acprt.RpcError) as caught:
                await sent.block_task()
            assert caught.value.data == {"reason": "connection_closed", "method": "work"}

        run(main())

    def test_waiter_learns_why_the_connection_failed(self, run):
        """SR-24, PY-60: a failure is the cause of what waits."""

        async def main():
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await acprt.Endpoint().open(near)
            waiter = asyncio.create_task(cx.send_request("work").block_task())
            await turns()
            cx.fail(ValueError("the reason"))
            with pytest.raises(acprt.RpcError, match="the reason") as caught:
                await waiter
            assert isinstance(caught.value.__cause__, ValueError)
            await cx.aclose()
            await peer.aclose()

        run(main())
