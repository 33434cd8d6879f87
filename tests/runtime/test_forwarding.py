"""Forwarding between two connections: results, errors, cancellation, and what one hop's end means to the other."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for, turns
from tests.runtime.ordered import answer

Forward = Callable[[acprt.Connection, Any, acprt.Responder[Any]], Any]


@asynccontextmanager
async def bridge(forward: Forward) -> AsyncIterator[tuple[RawPeer, acprt.Connection, RawPeer]]:
    """A raw client upstream, an endpoint that hands every `work` to `forward`, and a raw server downstream."""
    upstream = acprt.Endpoint("upstream")
    async with raw_server_for(acprt.Endpoint("downstream")) as (down_cx, down):

        @upstream.on_receive_request("work")
        async def work(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            outcome = forward(down_cx, params, responder)
            del responder
            if outcome is not None:
                cx.spawn(outcome)

        async with raw_client_of(upstream) as up:
            yield up, down_cx, down


def forwarded(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
    cx.send_request("work", params).forward_response_to(responder)


def methods(lines: list[Any]) -> list[str]:
    return [line["method"] for line in lines]


class TestForwardResponse:
    """`forward_response_to(responder)`."""

    @pytest.mark.parametrize(
        "outcome",
        [
            {"result": {"a": [1, None]}},
            {"result": None},
            {"error": {"code": -1, "message": "", "data": {"x": 1}}},
        ],
    )
    def test_outcome_is_forwarded(self, run, outcome):
        """SR-10: result and error arrive upstream as they came, under the upstream id."""

        async def main():
            async with bridge(forwarded) as (up, _cx, down):
                up.request("u", "work", {"p": 1})
                line = await down.receive()
                assert line["params"] == {"p": 1}
                down.send({"jsonrpc": "2.0", "id": line["id"]} | outcome)
                assert await up.receive() == {"jsonrpc": "2.0", "id": "u"} | outcome

        run(main())

    @pytest.mark.parametrize(
        ("came", "told"),
        [
            (b'{"n": 1.50, "n":12345678901234567890123}', b'{"n": 1.50, "n":12345678901234567890123}'),
            (b'"caf\\u00e9 \xc3\xa9"', b'"caf\\u00e9 \xc3\xa9"'),
            (b'["\\ud83d\\ude00", "\\uD800"]', '["\U0001f600","\ufffd"]'.encode()),
        ],
    )
    def test_untyped_result_passes_as_it_came(self, run, came, told):
        """SR-10: byte for byte, except where the next peer could not read it."""

        async def main():
            async with bridge(forwarded) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                down.send_raw(b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % came)
                assert await up.receive_raw() == b'{"jsonrpc":"2.0","id":"u","result":%b}' % told

        run(main())

    def test_result_that_is_no_text_is_refused_here(self, run):
        """SR-10: it would make the whole line unreadable for the next peer."""

        async def main():
            async with bridge(forwarded) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                down.send_raw(b'{"jsonrpc":"2.0","id":1,"result":"\xff"}\n')
                error = (await up.receive())["error"]
                assert (error["code"], error["data"]["phase"]) == (acprt.ErrorCode.INTERNAL_ERROR, "deserialization")

        run(main())

    def test_upstream_cancel_goes_downstream_once(self, run):
        """SR-10, CP-03: with the id of that hop, once; the downstream answer flows back."""

        async def main():
            async with bridge(forwarded) as (up, _cx, down):
                up.request("u", "work")
                line = await down.receive()
                up.cancel("u")
                up.cancel("u")
                await up.settled()
                lines = await down.settled()
                assert methods(lines) == ["$/cancel_request"]
                assert lines[0]["params"] == {"requestId": line["id"]}
                down.send(answer(line["id"], "partial"))
                assert (await up.receive())["result"] == "partial"

        run(main())

    def test_request_cancelled_before_it_is_forwarded(self, run):
        """SR-20: a marker that has fired is heeded when the wait begins: request, then cancel."""

        async def main():
            kept: list[acprt.Responder[Any]] = []

            def keep(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
                kept.append(responder)

            async with bridge(keep) as (up, cx, down):
                up.request("u", "work")
                await up.settled()
                up.cancel("u")
                await up.settled()
                assert kept[0].cancellation.is_cancelled
                cx.send_request("work").forward_response_to(kept.pop())
                assert methods(await down.settled()) == ["work", "$/cancel_request"]
                down.send(answer(1))
                await up.receive()

        run(main())

    def test_cancel_after_the_answer_stays_here(self, run):
        """CA-06, SR-16: a cancel of what is answered goes nowhere."""

        async def main():
            async with bridge(forwarded) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                down.send(answer(1))
                await up.receive()
                up.cancel("u")
                await up.settled()
                assert await down.settled() == []

        run(main())

    @pytest.mark.parametrize("end", ["eof", "closed", "failed"])
    def test_end_of_the_hop_behind_is_told_in_neutral_words(self, run, end):
        """SR-11 diverges (PY-63): -32603 with a reason of its own; upstream's own predicate stays false."""

        async def main():
            near, far = acprt.memory_pair()
            down = RawPeer(far)
            down_cx = await acprt.Endpoint("downstream").open(near)
            upstream = acprt.Endpoint("upstream")

            @upstream.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                forwarded(down_cx, params, responder)

            async with raw_client_of(upstream) as up:
                up.request("u", "work")
                await down.receive()
                if end == "eof":
                    down.close_write()
                elif end == "closed":
                    await down_cx.aclose()
                else:
                    down_cx.fail(ValueError("broken"))
                error = (await up.receive())["error"]
                assert error["code"] == acprt.ErrorCode.INTERNAL_ERROR
                told = acprt.RpcError(error["code"], error["message"], error.get("data"))
                assert not acprt.is_incoming_transport_closed(told)
                reason = "downstream_failed" if end == "failed" else "downstream_closed"
                assert error["data"] == {"reason": reason, "method": "work"}
                up.request("still", "there")
                assert (await up.receive())["error"]["code"] == acprt.ErrorCode.METHOD_NOT_FOUND
            await down_cx.aclose()

        run(main())

    def test_upstream_that_is_gone_does_not_hurt_downstream(self, run):
        """SR-12 diverges (PY-64): the answer has nowhere to go; the downstream connection lives on."""

        async def main():
            async with raw_server_for(acprt.Endpoint("downstream")) as (down_cx, down):
                upstream = acprt.Endpoint("upstream", limits=acprt.Limits(drain_seconds=0))

                @upstream.on_receive_request("work")
                async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                    forwarded(down_cx, params, responder)

                async with raw_client_of(upstream) as up:
                    up.request("u", "work")
                    await down.receive()
                down.send(answer(1))
                waiter = asyncio.create_task(down_cx.send_request("next").block_task())
                assert (await down.receive())["method"] == "next"
                down.send(answer(2, "fine"))
                assert await waiter == "fine"

        run(main())

    def test_response_that_an_interceptor_loses_is_answered(self, run):
        """SR-10: upstream never waits for a response that was claimed and dropped."""

        async def main():
            downstream = acprt.Endpoint("downstream")

            @downstream.on_receive_dispatch
            async def swallow(dispatch: acprt.Dispatch) -> acprt.Handled | None:
                return None if dispatch.kind == "response" else acprt.Handled.no(dispatch)

            async with raw_server_for(downstream) as (down_cx, down):
                upstream = acprt.Endpoint("upstream")

                @upstream.on_receive_request("work")
                async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                    forwarded(down_cx, params, responder)

                async with raw_client_of(upstream) as up:
                    up.request("u", "work")
                    await down.receive()
                    down.send(answer(1))
                    error = (await up.receive())["error"]
                    assert error["data"] == "response to `work` never received: its handler dropped it"

        run(main())


class TestErrorsOfThePeer:
    """What the peer downstream says is passed on, whatever it says."""

    @pytest.mark.parametrize("data", [{"reason": "connection_closed"}, {"reason": "connection_failed", "method": "x"}])
    @pytest.mark.parametrize("way", ["forward_response_to", "on_receiving_ok_result"])
    def test_error_that_names_an_end_is_passed_on(self, run, way, data):
        """SR-10: only an end that this side found itself is put into neutral words."""

        async def ignore(_value: Any, _responder: acprt.Responder[Any]) -> None: ...

        def forward(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
            sent = cx.send_request("work", params)
            if way == "forward_response_to":
                sent.forward_response_to(responder)
            else:
                sent.on_receiving_ok_result(responder, ignore)

        async def main():
            async with bridge(forward) as (up, down_cx, down):
                up.request(7, "work")
                await down.receive()
                down.send({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no", "data": data}})
                assert (await up.receive())["error"] == {"code": 1, "message": "no", "data": data}
                assert not down_cx.is_ending

        run(main())


class TestForwardCancellation:
    """`forward_cancellation_from(marker)` and its absence."""

    def test_custom_forwarding_absorbs_cancels(self, run):
        """CP-04: a bridge that waits by itself decides by itself."""

        async def main():
            def custom(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
                async def callback(result: Any) -> None:
                    responder.respond_with_result(result)

                cx.send_request("work").on_receiving_result(callback)

            async with bridge(custom) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                up.cancel("u")
                await up.settled()
                assert await down.settled() == []
                down.send(answer(1, "done"))
                assert (await up.receive())["result"] == "done"

        run(main())

    @pytest.mark.parametrize("way", ["callback", "task"])
    def test_custom_forwarding_may_opt_in(self, run, way):
        """CP-04, SR-21: after the cancel the wait goes on, and a normal answer is delivered."""

        async def main():
            def custom(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> Any:
                sent = cx.send_request("work")
                sent.forward_cancellation_from(responder.cancellation)

                async def callback(result: Any) -> None:
                    responder.respond_with_result(result)

                async def wait() -> None:
                    responder.respond(await sent.block_task())

                if way == "task":
                    return wait()
                return sent.on_receiving_result(callback)

            async with bridge(custom) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                up.cancel("u")
                await up.settled()
                assert methods(await down.settled()) == ["$/cancel_request"]
                down.send(answer(1, "done"))
                assert (await up.receive())["result"] == "done"

        run(main())

    @pytest.mark.parametrize("when", ["before consumption", "after consumption", "through map", "twice"])
    def test_marker_counts_while_the_answer_is_waited_for(self, run, when):
        """SR-20: nothing is sent until somebody waits; then exactly one cancel, for any marker, however often given."""

        async def main():
            kept: list[acprt.Responder[Any]] = []

            def keep(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
                kept.append(responder)

            async def callback(result: Any) -> None: ...

            async with bridge(keep) as (up, cx, down):
                up.request("a", "work")
                up.request("b", "work")
                await up.settled()
                first, second = kept
                sent = cx.send_request("work")
                if when == "after consumption":
                    sent.on_receiving_result(callback)
                    sent.forward_cancellation_from(first.cancellation)
                    up.cancel("a")
                else:
                    sent.forward_cancellation_from(first.cancellation)
                    if when == "twice":
                        sent.forward_cancellation_from(second.cancellation)
                        up.cancel("b")
                    up.cancel("a")
                    await up.settled()
                    if when == "through map":
                        sent = sent.map(lambda value: value)
                    assert methods(await down.settled()) == ["work"]
                    sent.on_receiving_result(callback)
                    await down.receive()
                    down.send(answer(1))
                await up.settled()
                if when == "after consumption":
                    assert methods(await down.settled()) == ["work", "$/cancel_request"]
                    down.send(answer(1))
                first.respond(None)
                second.respond(None)
                await up.receive()
                await up.receive()
                kept.clear()
                assert await down.settled() == []

        run(main())

    @pytest.mark.parametrize("way", ["detach", "map"])
    def test_nobody_waits_nothing_is_forwarded(self, run, way):
        """SR-20, SR-17: a detached request runs on, whatever is cancelled; so does one that is only mapped."""

        async def main():
            kept: list[Any] = []

            def keep(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
                sent = cx.send_request("work")
                sent.forward_cancellation_from(responder.cancellation)
                kept.append(responder)
                if way == "detach":
                    sent.detach()
                else:
                    kept.append(sent.map(str))

            async with bridge(keep) as (up, _cx, down):
                up.request("u", "work")
                await down.receive()
                up.cancel("u")
                await up.settled()
                assert await down.settled() == []
                down.send(answer(1))
                await down.settled()
                kept[0].respond(None)
                await up.receive()

        run(main())


class TestManyRequests:
    """Request after request over the same two hops."""

    def test_each_is_cancelled_once_answered_once_and_forgotten(self, run):
        """SR-18, PY-07: by reference counting alone; nothing of an answered request is left behind."""

        async def main():
            responders: list[weakref.ref[Any]] = []

            def watched(cx: acprt.Connection, params: Any, responder: acprt.Responder[Any]) -> None:
                responders.append(weakref.ref(responder))
                forwarded(cx, params, responder)

            gc.disable()
            try:
                async with bridge(watched) as (up, cx, down):
                    for i in range(20):
                        up.request(i, "work")
                        line = await down.receive()
                        up.cancel(i)
                        assert (await down.receive())["params"] == {"requestId": line["id"]}
                        down.send(answer(line["id"], i))
                        assert (await up.receive())["result"] == i
                    await turns()
                    assert up.unread() == down.unread() == []
                    assert cx.status().pending == []
                    assert [responder() for responder in responders] == [None] * 20
            finally:
                gc.enable()

        run(main())
