"""Lines that are no message: who is answered, what a broken reply does to its request, what an over-long line costs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import BOM, INVALID_REQUEST, PARSE_ERROR, brief, call, endpoint, ok, replies_to

MIB = 1024 * 1024


class TestOneBadLineCostsOneLine:
    """The neighbours of a bad line are served, and what is counted can be seen."""

    @pytest.mark.parametrize("bad", [b"\xff\xff", b"hello", b"[" * 100_000, b'{"id":', BOM * 3_000])
    def test_the_request_before_and_the_request_after_are_answered(self, run, bad):
        """FR-04, FR-10: invalid bytes are a bad line, not a broken transport."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(call("1"), bad, call("2"))
                assert [brief(line) for line in await peer.settled()] == [ok(1), (None, PARSE_ERROR), ok(2)]

        run(main())

    def test_a_pretty_printed_value_is_several_bad_lines(self, run):
        """FR-09: one answer for each that is neither blank nor a message."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(b'{\n  "jsonrpc": "2.0",\n\n  "id": 1\n}')
                assert [brief(line) for line in await peer.settled()] == [(None, PARSE_ERROR)] * 4

        run(main())

    def test_bad_lines_are_counted_and_logged_in_short(self, run, caplog):
        """FR-06, LG-03: at most 200 characters of each."""

        async def main():
            served = endpoint()

            @served.on_receive_request("count")
            async def count(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(cx.status().counters.bad_lines)

            async with raw_client_of(served) as peer:
                peer.send(b"z" * 10_000, b"", b"{}")
                peer.request(1, "count")
                assert (await peer.settled())[-1]["result"] == 2

        with caplog.at_level(logging.WARNING, "acprt"):
            run(main())
        assert max(record.getMessage().count("z") for record in caplog.records) == 200


class TestWhoAnswersTheUnreadable:
    """A serving endpoint does; one that spawned its peer only tells a caller that waits for it."""

    UNREADABLE = (b"hello", b"{}", b"null", b'{"jsonrpc":"2.0","method":"x","params":1}', b'{"jsonrpc":"2.0","id":1')

    @pytest.mark.parametrize("line", UNREADABLE)
    def test_a_spawner_answers_no_rubbish(self, run, line):
        """CH-03, DEC-23: an echoing child must not start a storm."""

        async def main():
            async with raw_server_for(endpoint(), spawned=True) as (cx, peer):
                peer.send(line)
                assert await peer.settled() == []
                assert cx.status().counters.bad_lines == 1

        run(main())

    @pytest.mark.parametrize("line", UNREADABLE)
    def test_a_serving_endpoint_answers_each_line_once(self, run, line):
        """CH-03, DEC-23."""
        assert len(run(replies_to(line))) == 1

    @pytest.mark.parametrize(
        ("line", "answered"),
        [
            (call("7", params="1"), [7]),
            (b'{"id":7,"method":"echo"}', [7]),
            (call("7", params="[1,"), [7]),
            (b'{"jsonrpc":"2.0","id":7,"method":"m', []),
            (call("null", params="1"), []),
            (call("1.5"), []),
        ],
    )
    def test_a_spawner_answers_a_call_that_somebody_waits_for(self, run, line, answered):
        """DEC-23: an object with a string method and a legal id that is not null, and nothing else."""

        async def main():
            async with raw_server_for(endpoint(), spawned=True) as (_, peer):
                peer.send(line)
                return [brief(reply)[0] for reply in await peer.settled()]

        assert run(main()) == answered

    def test_two_endpoints_that_do_not_understand_each_other_fall_silent(self, run):
        """ER-04: an answer to rubbish is never answered."""

        async def main():
            near, far = acprt.memory_pair()
            left = await endpoint().open(near)
            right = await endpoint().open(far)
            near.write(b'rubbish\n{}\n{"result":1}\n[1,2]\n')
            reply = await left.send_request("echo", [1]).block_task()
            assert reply == [1]
            assert right.status().counters.bad_lines >= 3
            assert left.status().counters.bad_lines == 0
            await left.aclose()
            await right.aclose()

        run(main())

    def test_an_echoing_child_ends_no_conversation(self, run):
        """CH-03, FR-22: every line comes back; the requests among them are answered, and that is all."""

        async def main():
            client = endpoint()
            async with raw_server_for(client, spawned=True) as (cx, peer):
                sent = cx.send_request("echo", {"a": 1})
                echoed = await peer.receive_raw()
                peer.send(echoed)
                answer = await peer.receive_raw()
                peer.send(answer)
                assert await sent.block_task() == {"a": 1}
                peer.send(b"plain text", b"plain text")
                assert await peer.settled() == []

        run(main())


class TestBrokenReplies:
    """A reply that cannot be used fails the request it was meant for; nobody waits for ever, nothing is written."""

    @pytest.mark.parametrize(
        "reply",
        [
            '"error":{"code":1}',
            '"error":{"code":1.5,"message":"m"}',
            '"error":{"code":"1","message":"m"}',
            '"error":"text"',
            '"error":[1,"m"]',
            '"error":null',
            '"error":{"code":1,"message":"m"},"result":1',
            '"method":"m","result":1',
            '"result":NaN',
            '"result":{"a"',
        ],
    )
    def test_a_malformed_reply_fails_its_request(self, run, reply):
        """FR-27, FR-28, FR-30, DEC-22."""

        async def main():
            async with raw_server_for(endpoint(), spawned=True) as (cx, peer):
                sent = cx.send_request("ask")
                await peer.receive()
                peer.send(f'{{"jsonrpc":"2.0","id":{sent.id},{reply}}}')
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task(timeout=5)
                assert caught.value.code == -32603
                assert caught.value.data["reason"] == "malformed_response"
                assert caught.value.data["method"] == "ask"
                answers = [brief(line) for line in await peer.settled()]
                assert answers == ([(sent.id, INVALID_REQUEST)] if '"method"' in reply else [])

        run(main())

    @pytest.mark.parametrize("line", ['{"id":1,"result":5}', '{"jsonrpc":"2.0","id":1}', '{"jsonrpc":"2.0","id":1,'])
    def test_a_reply_without_version_or_outcome_fails_its_request(self, run, line):
        """FR-27, DEC-22."""

        async def main():
            async with raw_server_for(endpoint(), spawned=True) as (cx, peer):
                sent = cx.send_request("ask")
                peer.send(line)
                with pytest.raises(acprt.RpcError, match="malformed_response"):
                    await sent.block_task(timeout=5)

        run(main())

    def test_a_malformed_reply_to_nobody_is_counted(self, run):
        """FR-22: also one whose id is the text of a pending id."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask")
                peer.send('{"jsonrpc":"2.0","id":"1","result":1,"error":{}}', '{"jsonrpc":"2.0","id":99,"error":1}')
                peer.respond(sent.id, "good")
                assert await sent.block_task() == "good"
                assert cx.status().counters.bad_lines == 2

        run(main())

    @pytest.mark.parametrize(
        ("members", "outcome"),
        [
            ('"result":null', acprt.Ok(None)),
            ('"result":{"a":1},"error":null', acprt.Ok({"a": 1})),
            ('"result":1,"extra":[]', acprt.Ok(1)),
            ('"error":{"code":1,"message":"m"},"result":null', acprt.Err(acprt.RpcError(1, "m"))),
            ('"error":{"code":1,"message":"m","data":null}', acprt.Err(acprt.RpcError(1, "m"))),
            (
                '"error":{"code":1,"message":"m","data":{"a":[1]},"extra":1}',
                acprt.Err(acprt.RpcError(1, "m", {"a": [1]})),
            ),
        ],
    )
    def test_replies_that_are_unusual_and_good(self, run, members, outcome):
        """FR-29, DEC-22."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                got: asyncio.Future[Any] = cx.loop.create_future()

                async def take(result: acprt.Result[Any]) -> None:
                    got.set_result(result)

                sent = cx.send_request("ask")
                sent.on_receiving_result(take)
                peer.send(f'{{"jsonrpc":"2.0","id":{sent.id},{members}}}')
                assert await got == outcome

        run(main())

    def test_a_positional_result_does_not_fill_a_struct(self, run):
        """FR-30: the caller is told so."""

        class Reply(msgspec.Struct):
            text: str

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask", reply_type=Reply)
                peer.respond(sent.id, ["x"])
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                assert caught.value.code == -32603
                assert caught.value.data["json"] == ["x"]

        run(main())

    def test_a_positional_cancel_is_dropped(self, run):
        """FR-30, CA-07."""

        async def main():
            served = acprt.Endpoint("served")
            cancelled = asyncio.Event()
            release = asyncio.Event()

            @served.method("wait")
            async def wait(_params: Any) -> str:
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    cancelled.set()
                    raise
                return "done"

            async with raw_client_of(served) as peer:
                peer.request(7, "wait")
                peer.notify("$/cancel_request", [7])
                await peer.settled()
                release.set()
                assert brief(await peer.receive()) == ok(7, "done")
                assert not cancelled.is_set()

        run(main())


class TestOverLongLines:
    """A line past the limit costs one message, by name; its neighbours and the connection live."""

    LIMITS = Limits(line_bytes=MIB)

    @pytest.mark.parametrize("spawned", [True, False])
    @pytest.mark.parametrize("id_first", [True, False])
    def test_an_over_long_reply_fails_its_request_only(self, run, spawned, id_first):
        """FR-05: the id is read from the head or from the tail; the error names size, limit and option."""

        async def main():
            async with raw_server_for(endpoint(self.LIMITS), spawned=spawned) as (cx, peer):
                first, second = cx.send_request("a"), cx.send_request("b")
                result = '"result":"' + "x" * 3 * MIB + '"'
                id = f'"jsonrpc":"2.0","id":{first.id}'
                line = "{" + ",".join([id, result] if id_first else [result, id]) + "}"
                peer.send(line)
                peer.respond(second.id, "short")
                with pytest.raises(acprt.RpcError) as caught:
                    await first.block_task(timeout=5)
                assert await second.block_task(timeout=5) == "short"
                data = caught.value.data
                assert (data["size"], data["limit"], data["option"]) == (len(line), MIB, "Limits.line_bytes")
                assert data["method"] == "a"
                for named in (str(len(line)), str(MIB), "Limits(line_bytes="):
                    assert named in str(caught.value)
                assert [line for line in await peer.settled() if "method" not in line] == []

        run(main())

    @pytest.mark.parametrize("spawned", [True, False])
    def test_an_over_long_request_is_answered_under_its_id(self, run, spawned):
        """FR-05: its sender waits."""

        async def main():
            async with raw_server_for(endpoint(self.LIMITS), spawned=spawned) as (_, peer):
                peer.request(7, "echo", ["x" * 2 * MIB])
                peer.request(8, "echo", ["short"])
                first, second = await peer.receive(), await peer.receive()
                assert brief(first) == (7, INVALID_REQUEST)
                assert first["error"]["data"]["option"] == "Limits.line_bytes"
                assert brief(second) == ok(8, ["short"])

        run(main())

    def test_an_over_long_notification_is_told_by_who_serves(self, run):
        """FR-05, FR-23: a spawner counts it."""

        async def main():
            for spawned, replies in ((False, [(None, INVALID_REQUEST)]), (True, [])):
                async with raw_server_for(endpoint(self.LIMITS), spawned=spawned) as (cx, peer):
                    peer.notify("heard", {"text": "x" * 2 * MIB})
                    assert [brief(line) for line in await peer.settled()] == replies
                    assert cx.status().counters.bad_lines == 1

        run(main())

    def test_a_line_of_exactly_the_limit_passes(self, run):
        """FR-05."""

        async def main():
            async with raw_client_of(endpoint(self.LIMITS)) as peer:
                empty = call("1", "say", '{"text":""}')
                line = empty.replace(b'""', b'"' + b"x" * (MIB - len(empty)) + b'"')
                assert len(line) == MIB
                peer.send(line, line.replace(b"x", b"xx", 1))
                assert [reply[0] for reply in map(brief, await peer.settled())] == [1, 1]
                assert peer.unread() == []

        run(main())
