"""Answering the peer's requests: one answer each, whoever gives it."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.scripted import error, keeper_by_id, request, result, scripted, until_idle

Requests = acprt.Responder[Any]


class Reply(msgspec.Struct, rename="camel"):
    full_text: str


class TestAnswer:
    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            (lambda r: r.respond({"a": 1}), {"result": {"a": 1}}),
            (lambda r: r.respond(Reply(full_text="x")), {"result": {"fullText": "x"}}),
            (lambda r: r.respond_with_result(acprt.Ok([1])), {"result": [1]}),
            (
                lambda r: r.respond_with_result(acprt.Err(acprt.RpcError(-5, "no"))),
                {"error": {"code": -5, "message": "no"}},
            ),
            (
                lambda r: r.respond_with_error(acprt.RpcError.invalid_params({"why": 1})),
                {"error": {"code": -32602, "message": "Invalid params", "data": {"why": 1}}},
            ),
            (
                lambda r: r.respond_with_internal_error("oops"),
                {"error": {"code": -32603, "message": "Internal error", "data": "oops"}},
            ),
        ],
    )
    def test_each_way_of_answering_is_one_line(self, run, answer, expected):
        """RS-01, RS-09: a value, typed or plain, a result, an error, a text."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == []
                answer(kept[1])
                assert await peer.settled() == [{"jsonrpc": "2.0", "id": 1} | expected]

        run(main())

    @pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "text", [], [None], {}, {"a": {"b": []}}])
    def test_any_json_value_is_a_result(self, run, value):
        """RS-04."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                kept[1].respond(value)
                assert await peer.receive() == result(1, value)

        run(main())

    def test_neither_ok_nor_err_is_a_type_error_and_no_answer(self, run):
        """RS-01: a mistake of ours is not sent to the peer."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                with pytest.raises(TypeError, match=r"acprt\.Ok or acprt\.Err"):
                    kept[1].respond_with_result("value")  # type: ignore[arg-type]  # the mistake under test
                kept[1].respond("fine")
                assert await peer.settled() == [result(1, "fine")]

        run(main())

    def test_answers_may_come_later_from_elsewhere_and_in_any_order(self, run):
        """RS-03: from another handler, from a task, after later requests."""
        endpoint, kept = keeper_by_id()

        @endpoint.on_receive_notification("answer")
        async def answer(params: Any, _cx: acprt.Connection) -> None:
            kept.pop(params["id"]).respond("from a handler")

        async def main():
            async with raw_client_of(endpoint) as peer:
                for id in (1, 2, 3):
                    peer.request(id, "ask")
                await peer.settled()
                peer.notify("answer", {"id": 3})
                assert await peer.receive() == result(3, "from a handler")

                async def answer_in_a_task() -> None:
                    kept.pop(1).respond("from a task")

                await asyncio.create_task(answer_in_a_task())
                assert await peer.receive() == result(1, "from a task")
                kept.pop(2).respond("last")
                assert await peer.settled() == [result(2, "last")]

        run(main())

    def test_accessors_tell_id_method_and_cancellation(self, run):
        """RS-10: the id as the peer wrote it."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request("five", "ask")
                await peer.settled()
                responder = kept["five"]
                assert (responder.id, responder.method) == ("five", "ask")
                assert not responder.cancellation.is_cancelled
                assert "ask" in repr(responder)
                assert "five" in repr(responder)
                assert "ask" in repr(responder.cancellation)
                responder.respond(None)
                await peer.receive()

        run(main())

    def test_unusual_error_passes_unchanged(self, run):
        """RS-11, ER-06: any code, an empty message, no data member when there is no data."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                kept[1].respond_with_error(acprt.RpcError(-1, ""))
                assert await peer.receive_raw() == b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}'

        run(main())

    def test_answering_puts_the_request_out_of_flight(self, run):
        """RS-12: answered, failed or dropped, it is gone from the table."""
        endpoint, kept = keeper_by_id()
        connections: list[acprt.Connection] = []

        @endpoint.on_receive_notification("look")
        async def look(_params: Any, cx: acprt.Connection) -> None:
            connections.append(cx)

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.notify("look")
                for id in (1, 2, 3):
                    peer.request(id, "ask")
                await peer.settled()
                cx = connections[0]
                assert [entry.id for entry in cx.status().in_flight] == [1, 2, 3]
                kept.pop(1).respond(None)
                kept.pop(2).respond_with_internal_error("x")
                assert [entry.id for entry in cx.status().in_flight] == [3]
                del kept[3]
                gc.collect()
                assert cx.status().in_flight == []
                assert len(await peer.settled()) == 3

        run(main())

    def test_answering_after_the_end_of_the_connection_is_harmless(self, run):
        """RS-02, PY-64: a peer that is gone is nobody's failure; what was owed was answered at the end."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_server_for(endpoint) as (cx, peer):
                peer.request(1, "ask")
                await peer.settled()
                await cx.aclose()
                kept[1].respond("late")
                assert (await peer.receive())["error"]["data"] == {"reason": "shutting_down"}
                assert peer.unread() == []

        run(main())


class TestFirstAnswerWins:
    def test_second_answer_is_ignored_with_a_warning(self, run, caplog):
        """RS-01, RS-07: it never reaches the wire."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                kept[1].respond("first")
                kept[1].respond("second")
                kept[1].respond_with_internal_error("third")
                assert await peer.settled() == [result(1, "first")]

        with caplog.at_level(logging.WARNING, "acprt.dispatch"):
            run(main())
        assert sum("a second answer to ask (id 1) was ignored" in message for message in caplog.messages) == 2

    def test_answer_then_error_from_the_handler_is_one_answer(self, run):
        """RS-07: the first stands, whatever the handler raises afterwards."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            responder.respond("first")
            raise acprt.RpcError(-1, "too late")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == [result(1, "first")]

        run(main())

    def test_drop_then_error_from_the_handler_is_that_error(self, run):
        """RS-06: dropping is not final while the handler still runs."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            del responder
            gc.collect()
            raise acprt.RpcError(-7, "because")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == [error(1, -7, "because")]

        run(main())


class TestDropped:
    """A request whose last responder is gone is answered, once (RS-05, DEC-14)."""

    EXPECTED = error(1, -32603, "Internal error", "request handler dropped its responder for `ask`")

    def test_handler_that_returns_without_answering_is_answered_for(self, run):
        """RS-05, PY-05: silence would leave the peer waiting."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, _responder: Requests) -> None: ...

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == [self.EXPECTED]

        run(main())

    def test_stashed_responder_that_is_dropped_later_is_answered_for(self, run):
        """RS-05, DEC-14: nothing but the stash holds it; the loop does not."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == []
                kept.clear()
                assert await peer.settled() == [self.EXPECTED]

        run(main())

    def test_failed_handler_does_not_keep_its_responder_alive(self, run):
        """DEC-14: a logged traceback holds no frames; the error answers at once and nothing is left behind."""
        endpoint = acprt.Endpoint("x")
        dropped = asyncio.Event()

        class Held:
            def __del__(self) -> None:
                dropped.set()

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, _responder: Requests) -> None:
            _held = Held()
            raise ValueError("broken")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == [error(1, -32603, "Internal error")]
                assert dropped.is_set()

        run(main())

    def test_parked_request_is_not_dropped_however_often_it_is_declined(self, run):
        """RS-05, DY-07: who passes a request on, with its dispatch or without, has not thrown it away."""
        endpoint = acprt.Endpoint("x")
        connections: list[acprt.Connection] = []

        @endpoint.on_receive_dispatch
        async def park(dispatch: acprt.Dispatch[Any], cx: acprt.Connection) -> acprt.Handled | None:
            if dispatch.method != "ask":
                return acprt.Handled.no(dispatch)
            connections.append(cx)
            return acprt.Handled.no(dispatch, retry=True)

        async def decline(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            return acprt.Handled.no(dispatch)

        async def take(dispatch: acprt.Dispatch[Any]) -> None:
            assert dispatch.responder is not None
            dispatch.responder.respond("taken")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == []
                with connections[0].add_dynamic_handler(decline):
                    assert await peer.settled() == []
                with connections[0].add_dynamic_handler(take):
                    assert await peer.receive() == result(1, "taken")

        run(main())


class TestUnwritableAnswer:
    def test_value_that_is_no_json_becomes_an_error_for_that_id(self, run):
        """RS-08, OU-13: the reason is told, the connection lives."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                peer.request(2, "ask")
                await peer.settled()
                kept[1].respond(object())
                line = await peer.receive()
                assert line["id"] == 1
                assert line["error"]["code"] == -32603
                assert line["error"]["data"]["phase"] == "serialization"
                kept[2].respond("fine")
                assert await peer.receive() == result(2, "fine")

        run(main())

    @pytest.mark.parametrize("value", ["\ud800", {"deep": ["\udfff"]}, {"\ud800": 1}])
    def test_lone_surrogate_becomes_an_error_for_that_id(self, run, value):
        """RS-08."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                kept[1].respond(value)
                assert (await peer.receive())["error"]["data"]["phase"] == "serialization"
                peer.request(2, "ask")
                await peer.settled()
                kept[2].respond(math.nan)
                assert await peer.receive() == result(2, None)

        run(main())

    def test_error_data_that_is_no_json_becomes_a_bare_internal_error(self, run):
        """OU-13."""
        endpoint, kept = keeper_by_id()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                kept[1].respond_with_error(acprt.RpcError(-5, "x", data=object()))
                assert await peer.receive() == error(1, -32603, "Internal error")

        run(main())


class TestAnsweringTheRest:
    """At the end of an endpoint."""

    def test_one_failure_leaves_the_others_their_answers(self, run, caplog):
        """DEC-25: a dialect that fails for one method costs that one request."""

        class Failing(acprt.Dialect):
            def answer_on_shutdown(self, method: str) -> acprt.RpcError | None:
                if method == "bad":
                    raise ValueError("no idea")
                return super().answer_on_shutdown(method)

        async def main():
            endpoint = acprt.Endpoint("x", dialect=Failing())
            kept: list[acprt.Responder[Any]] = []

            @endpoint.on_receive_request("bad", "good")
            async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                kept.append(responder)

            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "bad"), request(2, "good"))
                await until_idle()
                await cx.aclose()
                assert [line["id"] for line in transport.written] == [2]

        run(main())
        assert "bad (id 1) could not be answered at the end" in caplog.text
