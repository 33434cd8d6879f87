"""Reactive mode: serve until EOF, and end with what went wrong, if something did."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of
from tests.runtime.scripted import SHUTTING_DOWN, ScriptedTransport, notification, request, result, served, until_idle


class TestEof:
    def test_serve_returns_at_clean_eof(self, run):
        """LC-01: with spawned work still running; that is abandoned (LC-03)."""
        endpoint = acprt.Endpoint("x")
        ended: list[str] = []

        @endpoint.with_spawned
        async def background(_cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("background")

        async def main():
            serving, transport = await served(endpoint)
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert ended == ["background"]
            assert transport.closed

        run(main())

    def test_running_handlers_finish_and_their_messages_are_written(self, run):
        """LC-04, DEC-25: ordered ones and `method` tasks; what close callbacks send leaves too (EO-15)."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ordered")
        async def ordered(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            await until_idle()
            cx.send_notification("from ordered")
            responder.respond("ordered")

        @endpoint.method("own task")
        async def own_task(_params: Any, cx: acprt.Connection) -> str:
            await until_idle()
            await until_idle()
            await until_idle()
            cx.send_notification("from own task")
            return "own task"

        @endpoint.on_close
        async def bye(cx: acprt.Connection) -> None:
            cx.send_notification("bye")

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "own task"), request(2, "ordered"))
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.written == [
                notification("from ordered"),
                result(2, "ordered"),
                notification("bye"),
                notification("from own task"),
                result(1, "own task"),
            ]

        run(main())

    def test_responder_answered_after_eof_by_a_task_is_written(self, run):
        """LC-03 (DEC-25): the task that owes an answer is waited for, within the drain."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            async def later() -> None:
                await cx.incoming_closed()
                await until_idle()
                responder.respond("later")

            cx.spawn(later())

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "ask"))
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.written == [result(1, "later")]

        run(main())

    def test_handlers_left_after_the_drain_are_cancelled_and_answered(self, run, caplog):
        """DEC-25: `drain_seconds` after EOF was read, however they are registered."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(drain_seconds=0.05))
        ended: list[str] = []
        kept: list[acprt.Responder[Any]] = []

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("slow")

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: acprt.Responder[Any]) -> None:
            kept.append(responder)

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "slow"), request(2, "keep"))
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert ended == ["slow"]
            assert sorted(line["id"] for line in transport.written) == [1, 2]
            assert all(line["error"] == SHUTTING_DOWN for line in transport.written)

        run(main())
        assert "2 requests were still running 0.05 s after EOF" in caplog.text

    def test_drain_begins_when_eof_is_read_not_when_its_turn_comes(self, run):
        """DEC-25: a handler that holds the loop does not prolong it; what waits behind it is answered too."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(drain_seconds=0.05))

        @endpoint.on_receive_request("hold")
        async def hold(_params: Any, _responder: acprt.Responder[Any]) -> None:
            await asyncio.Event().wait()

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "hold"), request(2, "hold"), [request(3, "hold")])
            await until_idle()
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.written == [
                {"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN},
                {"jsonrpc": "2.0", "id": 2, "error": SHUTTING_DOWN},
                [{"jsonrpc": "2.0", "id": 3, "error": SHUTTING_DOWN}],
            ]

        run(main())

    def test_nothing_is_waited_for_when_nothing_is_owed(self, run):
        """LC-01: a drain that has nothing to do takes no time, whatever its limit."""

        async def main():
            serving, transport = await served(acprt.Endpoint("x", limits=acprt.Limits(drain_seconds=3600)))
            transport.deliver(notification("n"), request(1, "nobody"))
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.written[0]["error"]["code"] == -32601

        run(main())

    def test_handler_that_asks_the_peer_after_eof_is_not_left_hanging(self, run):
        """EO-05: its own request fails at once, so that it can answer."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask back")
        async def ask_back(_params: Any, cx: acprt.Connection) -> str:
            await cx.incoming_closed()
            try:
                await cx.send_request("name").block_task()
            except acprt.RpcError as error:
                return error.message
            raise AssertionError("nobody can have answered")

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "ask back"))
            await until_idle()
            transport.end()
            await asyncio.wait_for(serving, 5)
            assert transport.written == [result(1, "Incoming transport closed")]

        run(main())

    def test_failure_while_draining_is_raised(self, run):
        """LC-07, TF-03: a task that breaks after EOF makes `serve` fail."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            async def broken() -> None:
                raise ValueError("after EOF")

            await cx.incoming_closed()
            cx.spawn(broken())
            await asyncio.Event().wait()

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "slow"))
            transport.end()
            with pytest.raises(ValueError, match="after EOF"):
                await asyncio.wait_for(serving, 5)
            assert transport.written == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]

        run(main())

    def test_read_error_beats_work_in_progress(self, run):
        """TF-01, TF-03: it is no EOF; the handlers are cancelled and the error is raised as it is."""
        endpoint = acprt.Endpoint("x")
        ended: list[str] = []
        lost = OSError("cannot read")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "slow"))
            await until_idle()
            transport.lose(lost)
            with pytest.raises(OSError, match="cannot read") as caught:
                await asyncio.wait_for(serving, 5)
            assert caught.value is lost
            assert ended == ["cancelled"]

        run(main())

    def test_cancelled_serve_closes_the_connection(self, run):
        """Whoever cancels it leaves nothing behind."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            serving, transport = await served(endpoint)
            transport.deliver(request(1, "slow"))
            await until_idle()
            serving.cancel()
            await asyncio.wait([serving])
            assert serving.cancelled()
            assert transport.closed
            assert transport.written == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]

        run(main())


class TestErrors:
    """What a handler's failure becomes."""

    def test_errors_of_each_kind(self, run, caplog):
        """ER-02, ER-06, PY-13: an `RpcError` as it is, answered or raised; anything else is Internal error, logged."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("rpc")
        async def rpc(_params: Any) -> None:
            raise acprt.RpcError(-12345, "own code", {"k": [1]})

        @endpoint.method("other")
        async def other(_params: Any) -> None:
            raise LookupError("secret detail")

        @endpoint.on_receive_request("explicit")
        async def explicit(_params: Any, responder: acprt.Responder[Any]) -> None:
            responder.respond_with_error(acprt.RpcError.auth_required())

        @endpoint.on_receive_request("ordered rpc")
        async def ordered_rpc(_params: Any, _responder: acprt.Responder[Any]) -> None:
            raise acprt.RpcError.resource_not_found("file:///x")

        @endpoint.on_receive_request("ordered other")
        async def ordered_other(_params: Any, _responder: acprt.Responder[Any]) -> None:
            raise LookupError("secret detail")

        expected = {
            "rpc": {"code": -12345, "message": "own code", "data": {"k": [1]}},
            "other": {"code": -32603, "message": "Internal error"},
            "explicit": {"code": -32000, "message": "Authentication required"},
            "ordered rpc": {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///x"}},
            "ordered other": {"code": -32603, "message": "Internal error"},
        }

        async def main():
            async with raw_client_of(endpoint) as peer:
                for method, error in expected.items():
                    peer.request(method, method)
                    assert await peer.receive() == {"jsonrpc": "2.0", "id": method, "error": error}

        with caplog.at_level(logging.ERROR, "acprt.dispatch"):
            run(main())
        assert caplog.text.count("LookupError: secret detail") == 2

    def test_decode_failures_tell_their_phase(self, run):
        """ER-01: params are answered -32602 with `error`, `json` and `phase`."""
        endpoint = acprt.Endpoint("x")

        class Typed(acprt.Request[str], method="typed"):
            count: int

        @endpoint.method
        async def typed(request: Typed) -> Any:
            return object() if request.count else None

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "typed", {"count": "many"})
                error = (await peer.receive())["error"]
                assert error["code"] == -32602
                assert error["data"].keys() == {"error", "json", "phase"}
                assert (error["data"]["json"], error["data"]["phase"]) == ({"count": "many"}, "deserialization")
                peer.request(2, "typed", {"count": 1})
                error = (await peer.receive())["error"]
                assert error["code"] == -32603
                assert error["data"].keys() == {"error", "phase"}
                assert error["data"]["phase"] == "serialization"

        run(main())

    def test_error_with_id_null_is_tolerated_and_counted(self, run):
        """ER-03: a peer that could not read a line of ours says so under no id; it is logged, never answered."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("x").connect(transport) as cx:
                transport.deliver({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
                await until_idle()
                assert transport.written == []
                assert cx.status().counters.unmatched_responses == 1

        run(main())

    def test_two_endpoints_cannot_bat_errors_to_and_fro(self, run):
        """ER-04: garbage between two serving ends is answered once, and the answer is not."""

        async def main():
            left, right = acprt.memory_pair()
            async with acprt.Endpoint("a").connect(left) as a, acprt.Endpoint("b").connect(right) as b:
                left.write(b"garbage\n")
                await until_idle()
                await until_idle()
                assert b.status().counters.bad_lines == 1
                assert (a.status().counters.unmatched_responses, a.status().counters.bad_lines) == (1, 0)
                assert b.status().counters.unmatched_responses == 0

        run(main())

    @pytest.mark.parametrize("code", [-1, 0, 1, 32000, -(2**31), 2**31 - 1])
    def test_unknown_codes_round_trip(self, run, code):
        """ER-06."""
        server = acprt.Endpoint("server")

        @server.method("fail")
        async def fail(_params: Any) -> None:
            raise acprt.RpcError(code, "text", {"d": 1})

        async def main():
            async with acprt.Endpoint("client").connect(server) as cx:
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request("fail").block_task(timeout=5)
                assert caught.value == acprt.RpcError(code, "text", {"d": 1})

        run(main())

    def test_text_of_an_error_shows_code_message_and_data(self):
        """ER-05: bounded; an empty message is named."""
        text = str(acprt.RpcError(-5, "broken", {"at": "start"}))
        assert all(part in text for part in ("-5", "broken", '"at":"start"'))
        assert "-6" in str(acprt.RpcError(-6, ""))
        assert len(str(acprt.RpcError(-7, "long", "x" * 100_000))) <= 2000
