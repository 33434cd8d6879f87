"""`SentRequest`: the ways of taking an answer, exactly one of them, and `block_task`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_server_for, turns
from tests.runtime.ordered import answer, note, noting, upstream_responder


class Reply(msgspec.Struct, rename="camel"):
    line_count: int


class Count(acprt.Request[Reply], method="count"):
    path: str = ""


DECODED: list[str] = []


class Witness(msgspec.Struct):
    """A reply that tells when it is decoded."""

    text: str

    def __post_init__(self) -> None:
        DECODED.append(self.text)


class TestHandle:
    """What a handle tells, and what it is not."""

    def test_id_and_method(self, run):
        """SR-01, ID-08: the id on the wire and the method, from the moment of sending, unchanged by `map`."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request(Count())
                assert (sent.id, sent.method) == (1, "count")
                mapped = sent.map(lambda reply: reply.line_count)
                assert (mapped.id, mapped.method) == (1, "count")
                other = cx.send_request("other")
                assert (other.id, other.method) == (2, "other")
                assert repr(other) == "<SentRequest other id=2 pending>"
                line = await peer.receive()
                assert (line["id"], line["method"]) == (1, "count")

        run(main())

    def test_awaiting_it_names_the_four_ways(self, run):
        """PY-22: `await sent` is a TypeError that says what to do instead."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                sent = cx.send_request("work")
                with pytest.raises(TypeError) as caught:
                    await sent  # type: ignore[misc]  # that is the case
                for way in ("block_task()", "on_receiving_result", "forward_response_to", "detach()"):
                    assert way in str(caught.value)

        run(main())


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


class TestOneWay:
    """The answer is taken once (DEC-19, PY-23)."""

    @pytest.mark.parametrize("first", WAYS)
    def test_second_way_is_refused(self, run, first):
        """DEC-19: whatever came first, every further consumption raises `AlreadyConsumed` and names both."""

        async def main():
            async with (
                upstream_responder(acprt.Endpoint()) as (responder, up),
                raw_server_for(acprt.Endpoint()) as (cx, _peer),
            ):
                sent = cx.send_request("work")
                WAYS[first](sent, responder)
                for second in WAYS.keys() - {"with"}:
                    with pytest.raises(acprt.AlreadyConsumed, match=rf"work \(id 1\).*{second}"):
                        WAYS[second](sent, responder)
                responder.respond(None)
                await up.receive()

        run(main())

    @pytest.mark.parametrize("way", ["block_task", "on_receiving_result", "detach", "map"])
    def test_cancel_stays_legal(self, run, way):
        """DEC-19: asking the peer to stop is no consumption, before or after one."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                taken: list[Any] = []
                if way == "block_task":
                    taken.append(sent.block_task())
                elif way == "on_receiving_result":
                    sent.on_receiving_result(_ignore)
                elif way == "map":
                    taken.append(sent.map(_ignore))
                else:
                    sent.detach()
                sent.cancel()
                assert [line["method"] for line in await peer.settled()] == ["work", "$/cancel_request"]
                if way == "block_task":
                    taken[0].close()

        run(main())

    def test_with_block_leaves_a_consumed_handle_alone(self, run):
        """PY-01: leaving the block cancels, unless the answer was taken inside."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with cx.send_request("work") as sent:
                    waiter = asyncio.create_task(sent.block_task())
                    await turns()
                    peer.send(answer(1, "x"))
                    assert await waiter == "x"
                with cx.send_request("more") as sent:
                    sent.detach()
                assert [line["method"] for line in await peer.settled()] == ["work", "more"]

        run(main())


class TestBlockTask:
    """`await sent.block_task()`."""

    def test_typed_result(self, run):
        """SR-02, API: the reply type of the request class, camelCase on the wire."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request(Count(path="a")).block_task())
                assert (await peer.receive())["params"] == {"path": "a"}
                peer.send(answer(1, {"lineCount": 3, "unknown": True}))
                assert await waiter == Reply(line_count=3)

        run(main())

    def test_reply_type_of_an_untyped_request(self, run):
        """API: `reply_type=` decodes; without it plain values come."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                typed = asyncio.create_task(cx.send_request("count", {"path": "a"}, reply_type=Reply).block_task())
                plain = asyncio.create_task(cx.send_request("count", {"path": "a"}).block_task())
                await turns()
                peer.send(answer(1, {"lineCount": 3}), answer(2, {"lineCount": 3}))
                assert await typed == Reply(line_count=3)
                assert await plain == {"lineCount": 3}

        run(main())

    def test_error_of_the_peer_is_raised_as_it_is(self, run):
        """SR-02, ER-06: code, message and data of the peer, unknown codes included."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.respond_error(1, -1, "", data={"a": [1]})
                with pytest.raises(acprt.RpcError) as caught:
                    await waiter
                assert caught.value == acprt.RpcError(-1, "", {"a": [1]})

        run(main())

    def test_decoding_waits_for_the_waiter(self, run):
        """SR-02: the dispatch loop goes on before a result is decoded."""

        async def main():
            DECODED.clear()
            async with raw_server_for(noting(DECODED)) as (cx, peer):
                sent = cx.send_request("work", reply_type=Witness)
                peer.send(answer(1, {"text": "decoded"}), note("next message"))
                await turns()
                assert DECODED == ["next message"]
                assert (await sent.block_task()).text == "decoded"
                assert DECODED == ["next message", "decoded"]

        run(main())

    def test_result_of_another_shape_fails_here_only(self, run):
        """SR-03 diverges: -32603 with error, json and phase; nothing goes on the wire."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request(Count()).block_task())
                await turns()
                peer.send(answer(1, {"lineCount": "many"}))
                with pytest.raises(acprt.RpcError) as caught:
                    await waiter
                assert caught.value.code == acprt.ErrorCode.INTERNAL_ERROR
                assert caught.value.data.keys() == {"error", "json", "phase"}
                assert "lineCount" in caught.value.data["error"]
                assert caught.value.data["json"] == {"lineCount": "many"}
                assert caught.value.data["phase"] == "deserialization"
                assert [line["method"] for line in await peer.settled()] == ["count"]

        run(main())

    def test_timeout_cancels_and_names_the_request(self, run):
        """`block_task(timeout=…)` cancels and raises TimeoutError, with what is known of the silence."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with pytest.raises(TimeoutError, match=r"no answer to work \(id 1\) after 0\.0"):
                    await cx.send_request("work").block_task(timeout=0.01)
                lines = await peer.settled()
                assert [line["method"] for line in lines] == ["work", "$/cancel_request"]
                assert lines[1]["params"] == {"requestId": 1}

        run(main())

    def test_silence_can_be_described_for_a_timeout_of_ones_own(self, run):
        """The same text, however the answer is waited for."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                sent = cx.send_request("work")
                peer.send_raw(b"Welcome!\n")
                await peer.settled()
                text = sent.describe_silence()
                assert text.startswith("no answer to work (id 1) after 0.")
                assert text.endswith("1 line of the peer were no JSON-RPC, the first: 'Welcome!'")
                sent.detach()

        run(main())

    @pytest.mark.parametrize("later", range(5))
    def test_answer_and_timeout_in_the_same_moment(self, run, later):
        """Either the answer is returned, or TimeoutError is raised and the request cancelled; never neither."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task(timeout=0))
                await turns(later)
                peer.send(answer(1, "there"))
                await asyncio.wait([waiter])
                methods = [line["method"] for line in await peer.settled()]
                if waiter.exception() is None:
                    assert (waiter.result(), methods) == ("there", ["work"])
                else:
                    assert isinstance(waiter.exception(), TimeoutError)
                    assert methods == ["work", "$/cancel_request"]

        run(main())

    def test_answer_in_time_leaves_nothing_behind(self, run):
        """No cancel, no timer."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task(timeout=60))
                await turns()
                peer.send(answer(1, "x"))
                assert await waiter == "x"
                assert [line["method"] for line in await peer.settled()] == ["work"]

        run(main())

    def test_late_reply_is_counted_and_nothing_else(self, run, caplog):
        """DEC-24: the answer to an abandoned request comes later: no warning, a counter, the next request works."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with pytest.raises(TimeoutError):
                    await cx.send_request("work").block_task(timeout=0)
                peer.send(answer(1, "late"))
                await peer.settled()
                assert cx.status().counters.late_responses == 1
                assert cx.status().counters.unmatched_responses == 0
                waiter = asyncio.create_task(cx.send_request("next").block_task())
                await turns()
                peer.send(answer(2, "in time"))
                assert await waiter == "in time"

        run(main())
        assert not [record for record in caplog.records if record.levelname != "DEBUG"]
