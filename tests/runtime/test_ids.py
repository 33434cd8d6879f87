"""Request ids: ours are counted up, the peer's are echoed exactly as they came and never meet each other."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import Stash, brief, call, endpoint, ok

VERBATIM = ["1", 1, "init-1", 0, -1, "", 2**53 + 1, 2**63 - 1, -(2**63), None, "\u00e9\U0001f600", "null", "0"]


class TestOurs:
    """Integers from 1, never used again."""

    def test_ids_count_up_from_one(self, run):
        """ID-01."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                handles = [cx.send_request("ask") for _ in range(3)]
                assert [sent.id for sent in handles] == [1, 2, 3]
                assert [(await peer.receive())["id"] for _ in handles] == [1, 2, 3]

        run(main())

    def test_an_id_is_never_used_again(self, run):
        """ID-01, ID-07: whatever became of its request."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                answered = cx.send_request("ask")
                peer.respond(answered.id, None)
                await answered.block_task()
                dropped = cx.send_request("ask").id
                refused = cx.send_request("ask", "scalar").id
                detached = cx.send_request("ask")
                detached.detach()
                assert [answered.id, dropped, refused, detached.id, cx.send_request("ask").id] == [1, 2, 3, 4, 5]

        run(main())

    def test_each_connection_counts_for_itself(self, run):
        """ID-01."""

        async def main():
            shared = endpoint()
            async with raw_server_for(shared) as (one, _), raw_server_for(shared) as (other, _):
                assert [one.send_request("ask").id, other.send_request("ask").id] == [1, 1]

        run(main())

    @pytest.mark.parametrize("id", ["1", 1.0, True, None, [1], {"id": 1}, 2, 0, -1])
    def test_a_reply_under_another_id_is_not_ours(self, run, id):
        """ID-05, DL-04: `"1"`, `1.0` and `true` are not 1."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask")
                assert sent.id == 1
                peer.respond(id, "wrong")
                assert [line for line in await peer.settled() if "method" not in line] == []
                assert [pending.id for pending in cx.status().pending] == [1]
                counters = cx.status().counters
                assert counters.bad_lines + counters.unmatched_responses == 1
                peer.respond(1, "right")
                assert await sent.block_task() == "right"

        run(main())

    def test_a_second_answer_is_not_ours(self, run):
        """DL-04."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask")
                peer.respond(1, "first")
                peer.respond(1, "second")
                assert await sent.block_task() == "first"
                await peer.settled()
                assert cx.status().counters.unmatched_responses == 1

        run(main())

    def test_an_unmatched_reply_is_logged_with_its_id_and_not_for_ever(self, run, caplog):
        """DEC-24."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                for number in range(1_000):
                    peer.respond(f"stray-{number}", None)
                await peer.settled()
                assert cx.status().counters.unmatched_responses == 1_000

        run(main())
        logged = [record.getMessage() for record in caplog.records if "stray-" in record.getMessage()]
        assert "stray-0" in logged[0]
        assert len(logged) <= 30


class TestTheirs:
    """Echoed with their type; equal ones are served each for itself."""

    @pytest.mark.parametrize("id", VERBATIM)
    def test_an_id_is_echoed_as_it_came(self, run, id):
        """ID-02, ID-03, ID-05."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.request(id, "echo", [])
                raw = await peer.receive_raw()
            assert b'"id":' + msgspec.json.encode(id) + b"," in raw

        run(main())

    def test_ids_that_look_alike_do_not_mix(self, run):
        """ID-05: open at the same time, answered in another order."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                for id in VERBATIM:
                    peer.request(id, "stash")
                await peer.settled()
                for place in reversed(range(len(VERBATIM))):
                    responder = stash.responders[place]
                    assert (type(responder.id), responder.id) == (type(VERBATIM[place]), VERBATIM[place])
                    responder.respond(place)
                replies = [await peer.receive() for _ in VERBATIM]
            assert [(reply["id"], reply["result"]) for reply in replies] == [
                (VERBATIM[place], place) for place in reversed(range(len(VERBATIM)))
            ]

        run(main())

    def test_a_null_id_makes_a_request(self, run):
        """ID-03: answered with id null, and it can be cancelled."""

        async def main():
            served = endpoint()
            begun = asyncio.Event()

            @served.method("wait")
            async def wait(_params: Any) -> None:
                begun.set()
                await asyncio.Event().wait()

            async with raw_client_of(served) as peer:
                peer.request(None, "wait")
                await begun.wait()
                peer.cancel(None)
                assert brief(await peer.receive()) == (None, -32800)

        run(main())

    def test_an_id_in_flight_may_be_used_again(self, run):
        """ID-06: each request is served and answered for itself."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                for _ in range(3):
                    peer.request(7, "stash")
                await peer.settled()
                for place in (1, 0, 2):
                    stash.responders[place].respond(place)
                assert [brief(await peer.receive()) for _ in range(3)] == [ok(7, 1), ok(7, 0), ok(7, 2)]

        run(main())

    def test_an_id_may_be_used_again_after_its_answer(self, run):
        """ID-06."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(*[call("1")] * 3)
                assert [brief(line) for line in await peer.settled()] == [ok(1)] * 3

        run(main())

    def test_handles_tell_ids_as_values(self, run):
        """ID-08, SR-01, RS-10: the same value on the wire, in the handle and in the handler."""

        async def main():
            seen: list[Any] = []
            served = acprt.Endpoint("served")

            @served.on_receive_dispatch
            async def see(dispatch: acprt.Dispatch[Any], cx: acprt.Connection) -> acprt.Handled:
                seen.append((dispatch.kind, dispatch.id))
                return acprt.Handled.no(dispatch)

            @served.on_receive_request("id")
            async def tell(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(responder.id)

            async with raw_server_for(served) as (cx, peer):
                peer.request("abc", "id")
                assert (await peer.receive())["result"] == "abc"
                peer.notify("n")
                sent = cx.send_request("ask")
                asked = await peer.receive()
                peer.respond(sent.id, None)
                await sent.block_task()
            assert asked["id"] == sent.id == 1
            assert seen == [("request", "abc"), ("notification", None), ("response", 1)]

        run(main())
