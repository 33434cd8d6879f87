"""When the array of a batch is written, and what fills a slot whose handler does not answer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

import acprt
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Say,
    Stash,
    batch,
    brief,
    briefs,
    call,
    endpoint,
    note,
    ok,
    replies_to,
)

INTERNAL = -32603


class TestWhenItIsWritten:
    """When every slot is filled and every member was dispatched to its end, and not before."""

    def test_a_trailing_notification_withholds_the_array(self, run):
        """BA-09."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(call("1", "stash"), note("hold")))
                await stash.stashed.wait()
                stash.responders[0].respond("early")
                for _ in range(5):
                    await asyncio.sleep(0)
                assert peer.unread() == []
                stash.release.set()
                assert briefs(await peer.receive()) == [ok(1, "early")]

        run(main())

    def test_an_unfilled_slot_withholds_the_array_but_nothing_else(self, run):
        """BA-10: later calls and later batches are served meanwhile."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(call("1"), call("2", "stash")), call("3"), batch(call("4")))
                assert [briefs(line) for line in await peer.settled()] == [ok(3), [ok(4)]]
                stash.responders[0].respond(None)
                assert briefs(await peer.receive()) == [ok(1), ok(2)]

        run(main())

    def test_the_array_takes_its_place_when_its_last_slot_is_filled(self, run):
        """BA-21: among everything else that is sent."""

        async def main():
            stash = Stash()
            async with raw_server_for(stash.endpoint) as (cx, peer):
                peer.send(batch(call("1"), call("2", "stash")))
                await peer.settled()
                cx.send_notification("before")
                stash.responders[0].respond(None)
                cx.send_notification("after")
                lines = [await peer.receive() for _ in range(3)]
            assert lines[0]["method"] == "before"
            assert briefs(lines[1]) == [ok(1), ok(2)]
            assert lines[2]["method"] == "after"

        run(main())

    def test_a_handler_that_dropped_its_responder_does_not_strand_the_others(self, run):
        """BA-14: the slot says which method's handler it was."""

        async def main():
            async with raw_client_of(Stash().endpoint) as peer:
                peer.send(batch(call("1", "drop"), call("2")))
                first, second = await peer.receive()
            assert brief(first) == (1, INTERNAL)
            assert first["error"]["message"] == "Internal error"
            assert first["error"]["data"] == "request handler dropped its responder for `drop`"
            assert brief(second) == ok(2)

        run(main())

    def test_an_error_raised_after_dropping_the_responder_is_the_answer(self, run):
        """BA-15: code, message and data as they were raised."""

        async def main():
            async with raw_client_of(Stash().endpoint) as peer:
                peer.send(batch(call("1", "drop and raise")))
                ((reply),) = await peer.receive()
            assert reply["error"] == {"code": 7, "message": "mine", "data": {"a": 1}}

        run(main())

    def test_a_failing_handler_fills_its_slot(self, run):
        """BA-13: an exception that is no answer is not shown to the peer."""

        async def main():
            async with raw_client_of(Stash().endpoint) as peer:
                peer.send(batch(call("1", "crash"), call("2")))
                raw = await peer.receive_raw()
            assert b"secret detail" not in raw
            return briefs(msgspec.json.decode(raw))

        assert run(main()) == [(1, INTERNAL), ok(2)]

    def test_a_responder_dropped_later_fills_its_slot_at_once(self, run):
        """BA-17: from a stash or a task, after everything was dispatched."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(call("1", "stash"), call("2")))
                assert await peer.settled() == []
                stash.responders.clear()
                assert briefs(await peer.receive()) == [(1, INTERNAL), ok(2)]

        run(main())

    def test_the_first_answer_wins(self, run, caplog):
        """BA-18: an error that comes second is ignored with a warning and never reaches the wire."""

        async def main():
            return await replies_to(batch(call("1", "respond and raise")), call("2"), served=Stash().endpoint)

        with caplog.at_level(logging.WARNING, "acprt"):
            assert run(main()) == [[ok(1, "first")], ok(2)]
        assert any("second answer" in record.getMessage() for record in caplog.records)

    def test_an_answer_after_the_array_is_ignored(self, run):
        """BA-18."""

        async def main():
            stash = Stash()
            async with raw_client_of(stash.endpoint) as peer:
                peer.send(batch(call("1", "stash")))
                await stash.stashed.wait()
                stash.responders[0].respond("first")
                assert briefs(await peer.receive()) == [ok(1, "first")]
                stash.responders[0].respond("second")
                stash.responders[0].respond_with_error(acprt.RpcError(1, "third"))
                assert await peer.settled() == []

        run(main())


class TestParkedMembers:
    """A member that asked for a retry keeps its slot open until somebody takes it, or nobody can any more."""

    @staticmethod
    def parking() -> tuple[acprt.Endpoint, asyncio.Event]:
        served = endpoint()
        parked = asyncio.Event()

        @served.on_receive_request("later")
        async def later(_params: Any, _responder: acprt.Responder[Any], cx: acprt.Connection) -> acprt.Handled:
            parked.set()
            return acprt.Handled.no(retry=True)

        return served, parked

    def test_the_error_of_a_dynamic_handler_beats_the_dropped_responder(self, run):
        """BA-16: and the array is written then."""

        async def main():
            served, parked = self.parking()
            async with raw_server_for(served) as (cx, peer):
                peer.send(batch(call("1", "later"), call("2")))
                await parked.wait()
                assert await peer.settled() == []

                async def take(dispatch: acprt.Dispatch[Any], _cx: acprt.Connection) -> None:
                    raise acprt.RpcError(7, "mine")

                with cx.add_dynamic_handler(take):
                    assert briefs(await peer.receive()) == [(1, 7), ok(2)]

        run(main())

    def test_a_dynamic_handler_fills_the_slot(self, run):
        """BA-16."""

        async def main():
            served, parked = self.parking()
            async with raw_server_for(served) as (cx, peer):
                peer.send(batch(call("1", "later")))
                await parked.wait()

                async def take(dispatch: acprt.Dispatch[Any], _cx: acprt.Connection) -> None:
                    assert dispatch.responder is not None
                    dispatch.responder.respond(dispatch.method)

                with cx.add_dynamic_handler(take):
                    assert briefs(await peer.receive()) == [ok(1, "later")]

        run(main())

    def test_a_member_that_nobody_takes_is_answered_at_the_end(self, run):
        """BA-19: the array is withheld while a handler may come, and written when none can."""

        async def main():
            served, parked = self.parking()
            async with raw_client_of(served) as peer:
                peer.send(batch(call("1", "later"), call("2")))
                await parked.wait()
                assert await peer.settled() == []
                peer.close_write()
                assert briefs(await peer.receive()) == [(1, METHOD_NOT_FOUND), ok(2)]

        run(main())


class TestCancelsAndRefusals:
    """What ends a member without its handler."""

    def test_a_cancel_in_the_same_batch_fills_the_slot(self, run):
        """DEC-10: it is applied at receipt, before the member's turn."""
        cancel = note("$/cancel_request", '{"requestId":1}')
        assert run(replies_to(batch(call("1"), cancel, call("2")))) == [[(1, -32800), ok(2)]]

    def test_a_cancel_of_a_running_member_fills_its_slot_only(self, run):
        """CA-01: under the same id."""

        async def main():
            served = endpoint()
            begun = asyncio.Event()

            @served.method("wait")
            async def wait(_params: Any) -> None:
                begun.set()
                await asyncio.Event().wait()

            async with raw_client_of(served) as peer:
                peer.send(batch(call("1", "wait"), call("2")))
                await begun.wait()
                peer.cancel(1)
                assert briefs(await peer.receive()) == [(1, -32800), ok(2)]

        run(main())

    def test_members_past_the_limit_in_flight_are_refused_in_their_slots(self, run):
        """DEC-12."""

        async def main():
            async with raw_client_of(endpoint(acprt.Limits(in_flight_requests=2))) as peer:
                peer.send(batch(*(call(str(number)) for number in range(4))))
                assert briefs(await peer.receive()) == [ok(0), ok(1), (2, INTERNAL), (3, INTERNAL)]
                peer.send(call("9"))
                assert briefs(await peer.receive()) == ok(9)

        run(main())

    def test_a_dialect_without_batches_refuses_the_whole(self, run):
        """BA-01: one answer, nothing of it is served."""

        class NoBatches(acprt.Dialect):
            accepts_batches = False

        async def main():
            heard: list[str] = []
            served = acprt.Endpoint("served", dialect=NoBatches())

            @served.on_receive_request
            async def say(request: Say, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                heard.append(request.text)
                responder.respond(None)

            text = '{"text":"x"}'
            replies = await replies_to(batch(call("1", "say", text)), call("2", "say", text), served=served)
            assert replies == [(None, INVALID_REQUEST), ok(2)]
            assert heard == ["x"]

        run(main())
