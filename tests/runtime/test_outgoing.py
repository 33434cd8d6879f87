"""Sending: what it does at once, where a failure is told, and what is left of it after the end."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import brief, endpoint, ok
from tests.runtime.scripted import scripted, until_idle
from tests.runtime.watching import WatchingTransport

MIB = 1024 * 1024
NOT_AN_OBJECT = "JSON-RPC params must be an object or array"


class Hello(acprt.Request[Any], method="hello/say"):
    first_name: str = ""


class Progress(acprt.Notification, method="hello/progress"):
    percent: int


class Unwritable:
    """A value that has no JSON."""


UNWRITABLE = [{"a": Unwritable()}, {"a": "\ud800"}, {"a": {1, Unwritable()}}, {(1, 2): 3}]


async def failure_of(sent: acprt.SentRequest[Any]) -> acprt.RpcError:
    with pytest.raises(acprt.RpcError) as caught:
        await sent.block_task(timeout=5)
    return caught.value


class TestSending:
    """A send never waits; a request's failure arrives through its handle."""

    def test_a_request_is_registered_before_it_is_visible(self, run):
        """OU-01: no reply, however fast, misses its waiter."""

        async def main():
            transport = WatchingTransport()
            transport.cx = await acprt.Endpoint("a").open(transport)
            sent = transport.cx.send_request("ask")
            assert transport.pending_at_write == [[sent.id]]
            transport.deliver({"jsonrpc": "2.0", "id": sent.id, "result": "fast"})
            assert await sent.block_task() == "fast"
            await transport.cx.aclose()

        run(main())

    def test_sending_never_waits_however_full_the_pipe_is(self, run):
        """OU-02, M-05: a thousand sends in a row, in one step of one task."""

        async def main():
            async with scripted(acprt.Endpoint("a")) as (cx, transport):
                transport.stall()
                for number in range(1_000):
                    cx.send_request("ask", [number]).detach()
                    cx.send_notification("tell", [number])
                assert cx.status().outbox.count == 2_000
                transport.flow()
                assert len(transport.written) == 2_000

        run(main())

    @pytest.mark.parametrize("params", UNWRITABLE, ids=["object", "surrogate", "set", "key"])
    def test_a_request_that_cannot_be_written_fails_its_handle(self, run, params):
        """OU-02, OU-03, OU-13: -32603 with the phase; nothing is written, the connection lives."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask", params)
                error = await failure_of(sent)
                assert (error.code, error.data["phase"]) == (-32603, "serialization")
                assert "json" not in error.data
                assert cx.status().pending == []
                assert await peer.settled() == []

        run(main())

    @pytest.mark.parametrize("params", [7, 1.5, True, "text", b"bytes"])
    def test_scalar_params_fail_the_handle_of_a_request(self, run, params):
        """OU-06, CH-09."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                error = await failure_of(cx.send_request("ask", params))
                assert (error.code, error.message, error.data) == (-32602, "Invalid params", NOT_AN_OBJECT)
                assert await peer.settled() == []

        run(main())

    @pytest.mark.parametrize("params", [7, 1.5, True, "text", b"bytes"])
    def test_scalar_params_of_a_notification_are_refused_at_once(self, run, params):
        """OU-07: not accepted and then lost."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                with pytest.raises(TypeError, match="object or an array"):
                    cx.send_notification("tell", params)
                assert await peer.settled() == []

        run(main())

    @pytest.mark.parametrize("params", UNWRITABLE, ids=["object", "surrogate", "set", "key"])
    def test_a_notification_that_cannot_be_written_is_refused_at_once(self, run, params):
        """OU-09, OU-13."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                with pytest.raises(acprt.RpcError) as caught:
                    cx.send_notification("tell", params)
                assert caught.value.data["phase"] == "serialization"
                assert await peer.settled() == []

        run(main())

    def test_a_message_of_the_wrong_kind_is_a_type_error(self, run):
        """DEC-20: a mistake in the program, told where it is made."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                for wrong in (Progress(percent=1), object(), 7, Hello):
                    with pytest.raises(TypeError):
                        cx.send_request(wrong)  # type: ignore[call-overload]  # that it is refused is the point
                for wrong in (Hello(), object(), 7):
                    with pytest.raises(TypeError):
                        cx.send_notification(wrong)  # type: ignore[arg-type]  # as above
                assert await peer.settled() == []
                assert cx.status().pending == []

        run(main())

    def test_a_line_past_the_limit_is_refused_where_it_is_sent(self, run):
        """FR-05: the other side would refuse it, too; the error names size, limit and option."""

        async def main():
            async with raw_server_for(endpoint(Limits(line_out_bytes=MIB))) as (cx, peer):
                error = await failure_of(cx.send_request("ask", ["x" * MIB]))
                with pytest.raises(acprt.RpcError) as caught:
                    cx.send_notification("tell", ["x" * MIB])
                for each in (error, caught.value):
                    assert each.data["reason"] == "line_too_long"
                    assert (each.data["limit"], each.data["option"]) == (MIB, "Limits.line_out_bytes")
                    assert each.data["size"] > MIB
                assert await peer.settled() == []

        run(main())

    def test_an_answer_past_the_limit_becomes_an_error_for_its_request(self, run):
        """FR-05, OU-13: the caller would otherwise lose the reply to its own limit."""

        async def main():
            async with raw_client_of(endpoint(Limits(line_out_bytes=1_000))) as peer:
                peer.request(7, "echo", ["x" * 2_000])
                peer.request(8, "echo", ["short"])
                first, second = await peer.receive(), await peer.receive()
            assert (first["id"], first["error"]["code"]) == (7, -32603)
            assert first["error"]["data"]["option"] == "Limits.line_out_bytes"
            assert brief(second) == ok(8, ["short"])

        run(main())


class TestAnswersPastTheLimit:
    """`Limits.line_out_bytes` holds for whatever answers, a batch included."""

    @pytest.mark.parametrize("way", ["error", "unknown method"])
    def test_an_error_past_the_limit_becomes_a_short_one(self, run, way):
        """FR-05, OU-13: an error is a line like any other."""

        async def main():
            served = endpoint(Limits(line_out_bytes=1_000))

            @served.method("fail")
            async def fail(params: Any) -> None:
                raise acprt.RpcError(5, "no", "x" * 2_000)

            async with raw_client_of(served) as peer:
                peer.request(7, "fail" if way == "error" else "no" * 1_000)
                line = await peer.receive_raw()
                assert b"Limits.line_out_bytes" in line
                assert len(line) <= 1_000
                assert (await peer.settled()) == []

        run(main())

    def test_batch_past_the_limit_loses_its_largest_answers(self, run):
        """FR-05, BA-09: each would fit, together they do not; the array keeps its order, and the short ones arrive."""

        async def main():
            async with raw_client_of(endpoint(Limits(line_out_bytes=2_000))) as peer:
                sizes = [10, 950, 800, 900, 20]
                peer.send([{"jsonrpc": "2.0", "id": n, "method": "echo", "params": ["x" * n]} for n in sizes])
                line = await peer.receive_raw()
                assert len(line) <= 2_000
                replies = msgspec.json.decode(line)
                assert [reply["id"] for reply in replies] == sizes
                assert [size for size, reply in zip(sizes, replies, strict=True) if "error" in reply] == [950, 900]
                assert replies[1]["error"]["data"]["reason"] == "line_too_long"

        run(main())

    def test_batch_that_no_shortening_helps_is_still_answered(self, run):
        """BA-09: errors of errors would not be shorter; the peer gets what there is."""

        async def main():
            async with raw_client_of(endpoint(Limits(line_out_bytes=500))) as peer:
                peer.send([{"jsonrpc": "2.0", "id": n, "method": "none"} for n in range(20)])
                assert [brief(reply) for reply in await peer.receive()] == [(n, -32601) for n in range(20)]

        run(main())


class TestAfterTheEnd:
    """The handle of a request sent too late has failed; a notification is refused."""

    def test_after_eof_a_request_fails_with_the_eof(self, run):
        """OU-01, OU-04: writing may still work, but no answer can come."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                peer.close_write()
                await cx.incoming_closed()
                error = await failure_of(cx.send_request("ask"))
                assert acprt.is_incoming_transport_closed(error)
                assert error.data["method"] == "ask"
                cx.send_notification("tell")
                assert (await peer.receive())["method"] == "tell"
                assert peer.unread() == []

        run(main())

    def test_after_a_close_a_request_fails_and_a_notification_is_refused(self, run):
        """OU-04, OU-09, DEC-20."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, _):
                pass
            error = await failure_of(cx.send_request("ask"))
            assert (error.code, error.data["reason"], error.data["method"]) == (-32603, "connection_closed", "ask")
            assert not acprt.is_incoming_transport_closed(error)
            with pytest.raises(acprt.RpcError) as caught:
                cx.send_notification("tell")
            assert caught.value.data["reason"] == "connection_closed"

        run(main())

    def test_after_a_failure_the_cause_is_named(self, run):
        """OU-04, OU-14: reading or writing failed; whoever waits learns why."""

        async def main():
            async with scripted(acprt.Endpoint("a")) as (cx, transport):
                waiting = cx.send_request("ask")
                transport.lose(BrokenPipeError("the reader is gone"))
                for error in (await failure_of(waiting), await failure_of(cx.send_request("ask"))):
                    assert error.data["reason"] == "connection_failed"
                    assert "the reader is gone" in error.data["error"]
                    assert isinstance(error.__cause__, BrokenPipeError)

        run(main())

    def test_a_failed_write_ends_the_connection_with_its_error(self, run):
        """OU-14."""

        async def main():
            near, far = acprt.memory_pair()
            with pytest.raises(BrokenPipeError):
                async with acprt.Endpoint("a").connect(near) as cx:
                    await far.aclose()
                    cx.send_notification("tell")
                    await asyncio.Event().wait()

        run(main())

    def test_a_request_still_queued_at_eof_fails_with_it_and_is_not_written(self, run):
        """OU-05: nobody could answer it any more; everything else that was queued leaves."""

        async def main():
            async with scripted(acprt.Endpoint("a")) as (cx, transport):
                transport.stall()
                cx.send_notification("fills the pipe")
                sent = cx.send_request("ask")
                cx.send_notification("tell", {"id": 1, "method": "ask"})
                transport.end()
                assert acprt.is_incoming_transport_closed(await failure_of(sent))
                transport.flow()
                await until_idle()
                assert [line["method"] for line in transport.written] == ["fills the pipe", "tell"]

        run(main())
