"""Batches: an array in, at most one array out, slot by slot in source order."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from acprt.limits import DEFAULT_LIMITS
from acprt.runtime.joined import EndpointTransport
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Stash,
    batch,
    briefs,
    call,
    endpoint,
    note,
    ok,
    replies_to,
)

BROKEN_REPLY = b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}'


class TestTheArray:
    """One line with exactly the slots, in source order."""

    def test_each_call_gets_its_slot_in_source_order(self, run):
        """BA-01, BA-02, BA-03, BA-13."""
        line = batch(
            call("1", "say", '{"text":"one"}'),
            note(),
            call('"b"', "nope"),
            call("3", "say", "{}"),
            call("4", "echo", "[4]"),
        )
        assert run(replies_to(line)) == [
            {"jsonrpc": "2.0", "method": "was heard", "params": ["hi"]},
            [ok(1, "one"), ("b", METHOD_NOT_FOUND), (3, INVALID_PARAMS), ok(4, [4])],
        ]

    def test_a_long_answer_has_its_slot(self, run):
        """BA-02: however it would be written alone."""
        text = "x" * 100_000
        line = batch(call("1", "echo", f'["{text}"]'), call("2", "echo", "[2]"))
        assert run(replies_to(line)) == [[ok(1, [text]), ok(2, [2])]]

    def test_members_are_dispatched_one_after_another(self, run):
        """BA-01: an ordered handler holds the next member, as it holds the next message."""

        async def main():
            order: list[str] = []
            served = acprt.Endpoint("served")

            @served.on_receive_notification("n")
            async def n(params: Any, cx: acprt.Connection) -> None:
                order.append(f"{params[0]} begins")
                for _ in range(3):
                    await asyncio.sleep(0)
                order.append(f"{params[0]} ends")

            async with raw_client_of(served) as peer:
                peer.send(batch(note("n", "[1]"), note("n", "[2]")), note("n", "[3]"))
                await peer.settled()
            assert order == [f"{number} {what}" for number in (1, 2, 3) for what in ("begins", "ends")]

        run(main())

    def test_order_is_that_of_the_source_whoever_answers_first(self, run):
        """BA-03."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(call("1", "stash"), call("2", "stash"), call("3")))
                await peer.settled()
                stash.responders[1].respond("second")
                stash.responders[0].respond("first")
                assert briefs(await peer.receive()) == [ok(1, "first"), ok(2, "second"), ok(3)]

        run(main())

    def test_method_handlers_fill_their_slots(self, run):
        """BA-03: they run beside each other and end in any order."""

        async def main():
            served = acprt.Endpoint("served")
            turn = [asyncio.Event() for _ in range(3)]

            @served.method("after")
            async def after(params: Any) -> Any:
                if params[0] < 2:
                    await turn[params[0] + 1].wait()
                turn[params[0]].set()
                return params

            async with raw_client_of(served) as peer:
                peer.send(batch(*(call(str(number), "after", f"[{number}]") for number in range(3))))
                assert briefs(await peer.receive()) == [ok(number, [number]) for number in range(3)]

        run(main())

    def test_a_batch_of_one_gets_an_array_of_one(self, run):
        """BA-06."""
        assert run(replies_to(batch(call("1")))) == [[ok(1)]]

    @pytest.mark.parametrize("empty", [b"[]", b"[ ]", b" [\t] "])
    def test_an_empty_array_is_one_invalid_request(self, run, empty):
        """BA-07: an object, not an array."""
        assert run(replies_to(empty, call("1"))) == [(None, INVALID_REQUEST), ok(1)]

    def test_a_batch_that_asks_nothing_gets_nothing(self, run):
        """BA-08: also when its notifications have bad params, unknown methods or failing handlers."""

        async def main():
            stash = Stash()

            @stash.endpoint.on_receive_notification("fail")
            async def fail(_params: Any, cx: acprt.Connection) -> None:
                raise ValueError("on purpose")

            reply = b'{"jsonrpc":"2.0","id":99,"result":1}'
            return await replies_to(
                batch(note("fail"), note("nope"), note("heard", "{}"), reply), served=stash.endpoint
            )

        assert run(main()) == []

    def test_equal_ids_keep_their_own_slots(self, run):
        """BA-11: within a batch, null ids, and across batches in flight."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(
                    batch(call("1", "stash"), call("1", "stash"), call("null", "stash"), call("null", "echo", "[]"))
                )
                peer.send(batch(call("1", "stash")))
                await peer.settled()
                stash.responders[3].respond("other batch")
                assert briefs(await peer.receive()) == [ok(1, "other batch")]
                for number, text in ((2, "third"), (1, "second"), (0, "first")):
                    stash.responders[number].respond(text)
                assert briefs(await peer.receive()) == [
                    ok(1, "first"),
                    ok(1, "second"),
                    ok(None, "third"),
                    ok(None, []),
                ]

        run(main())

    def test_a_batch_survives_an_in_process_join(self, run):
        """BA-22: it is a frame, not a property of one transport."""

        class Collect:
            def __init__(self) -> None:
                self.first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

            def lines_received(self, lines: list[Any]) -> None:
                self.first.set_result(lines[0])

            def eof_received(self) -> None: ...

            def connection_lost(self, error: Exception) -> None: ...

            def pause_writing(self) -> None: ...

            def resume_writing(self) -> None: ...

        async def main():
            joined = EndpointTransport(endpoint().serve, "served")
            sink = Collect()
            joined.open(sink, DEFAULT_LIMITS)
            joined.write(batch(call("1"), call("2")) + b"\n")
            assert briefs(msgspec.json.decode(await sink.first)) == [ok(1), ok(2)]
            await joined.aclose()

        run(main())

    def test_the_runtime_sends_no_batches(self, run):
        """BA-20: its own messages are single objects, also those sent while a batch is served."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                for number in range(3):
                    cx.send_request("ask", [number]).detach()
                    cx.send_notification("tell")
                peer.send(batch(note(), note()))
                lines = await peer.settled()
            assert len(lines) == 8
            assert all(isinstance(line, dict) for line in lines)

        run(main())


class TestInvalidMembers:
    """An invalid member has a slot like a call, unless it is shaped like a reply."""

    @pytest.mark.parametrize("member", [b"1", b"null", b'"x"', b"{}", b"[]", b"[1]", b"true", batch(call("5"))])
    def test_a_member_that_is_no_message_fills_a_slot(self, run, member):
        """BA-02, BA-04: id null, in its place, and its neighbours are served."""
        assert run(replies_to(batch(call("1"), member, call("2")))) == [[ok(1), (None, INVALID_REQUEST), ok(2)]]

    def test_an_invalid_call_with_an_id_is_answered_under_it(self, run):
        """BA-04: as on a line of its own."""
        assert run(replies_to(batch(call("1", params="7"), call("1.5")))) == [
            [(1, INVALID_REQUEST), (None, INVALID_REQUEST)]
        ]

    def test_a_batch_of_rubbish_gets_one_array_and_the_connection_lives(self, run):
        """BA-04: one line for one line."""
        assert run(replies_to(b"[1,2,3]", call("1"))) == [[(None, INVALID_REQUEST)] * 3, ok(1)]

    def test_a_slot_of_rubbish_waits_like_the_others(self, run):
        """BA-09, BA-10."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(b"1", call("1", "stash"), b"2"))
                assert await peer.settled() == []
                stash.responders[0].respond("now")
                assert briefs(await peer.receive()) == [(None, INVALID_REQUEST), ok(1, "now"), (None, INVALID_REQUEST)]

        run(main())

    def test_a_broken_reply_fills_no_slot(self, run):
        """BA-05: its siblings are served."""
        assert run(replies_to(batch(BROKEN_REPLY, call("1"), b'{"result":1}', b"1"))) == [
            [ok(1), (None, INVALID_REQUEST)]
        ]

    def test_a_batch_of_broken_replies_gets_nothing(self, run):
        """BA-05."""
        assert run(replies_to(batch(BROKEN_REPLY, b'{"jsonrpc":"2.0","error":{}}'))) == []

    def test_a_spawner_gives_rubbish_no_slot(self, run):
        """BA-05, DEC-23: only a call that somebody waits for."""

        async def main():
            async with raw_server_for(endpoint(), spawned=True) as (cx, peer):
                peer.send(batch(b"1", call("7", params="1"), call("8"), b"{}"), b"[]", b"[1]")
                lines = [briefs(line) for line in await peer.settled()]
                assert lines == [[(7, INVALID_REQUEST), ok(8)]]
                assert cx.status().counters.bad_lines == 5

        run(main())

    def test_a_batch_of_too_many_members_gets_one_short_answer(self, run):
        """BA-04, FR-06."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(b"[" + b"1," * 1_000_000 + b"1]", call("1"))
                assert len(await peer.receive_raw()) < 2_000
                assert briefs(await peer.receive()) == ok(1)

        run(main())

    def test_text_that_is_no_array_is_one_parse_error(self, run):
        """FR-10: nothing of it is served."""
        assert run(replies_to(b"[" + call("1") + b"," + call("2"))) == [(None, -32700)]


class TestReplies:
    """Replies inside a batch go to their waiters."""

    def test_replies_are_routed_by_id_among_calls(self, run):
        """BA-12."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                first, second = cx.send_request("a"), cx.send_request("b")
                await peer.receive(), await peer.receive()
                replies = [f'{{"jsonrpc":"2.0","id":{sent.id},"result":"{sent.method}"}}' for sent in (second, first)]
                peer.send(batch(replies[0].encode(), call("1"), replies[1].encode(), b"7"))
                assert await second.block_task() == "b"
                assert await first.block_task() == "a"
                assert briefs(await peer.receive()) == [ok(1), (None, INVALID_REQUEST)]

        run(main())

    def test_a_broken_reply_in_a_batch_fails_its_waiter(self, run):
        """BA-05, FR-27."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("a")
                peer.send(batch(b'{"jsonrpc":"2.0","id":%d,"result":1,"error":{}}' % sent.id))
                with pytest.raises(acprt.RpcError, match="malformed_response"):
                    await sent.block_task(timeout=5)

        run(main())

    def test_an_ordered_callback_runs_before_the_next_member(self, run):
        """BA-12, OB-03."""

        async def main():
            order: list[str] = []
            client = acprt.Endpoint("client")

            @client.on_receive_notification("n")
            async def n(_params: Any, cx: acprt.Connection) -> None:
                order.append("next member")

            async def take(result: acprt.Result[Any]) -> None:
                await asyncio.sleep(0)
                order.append("callback")

            async with raw_server_for(client) as (cx, peer):
                sent = cx.send_request("a")
                sent.on_receiving_result(take)
                peer.send(batch(b'{"jsonrpc":"2.0","id":%d,"result":1}' % sent.id, note("n")))
                await peer.settled()
            assert order == ["callback", "next member"]

        run(main())
