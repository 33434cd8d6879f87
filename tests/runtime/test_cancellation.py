"""The peer cancels its own requests: recognised when it is read, and never answered twice."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import Counter
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of
from tests.runtime.scripted import (
    CANCELLED,
    SHUTTING_DOWN,
    ScriptedTransport,
    cancel,
    error,
    keeper,
    notification,
    request,
    result,
    scripted,
    until_idle,
)

Requests = acprt.Responder[Any]

CANCELLED_1 = error(1, -32800, "Request cancelled")


class TestBeforeTheHandlerBegins:
    """Work that was not started is never started; it is answered at receipt (DEC-10)."""

    @pytest.mark.parametrize("turns", range(5))
    def test_method_cancelled_before_its_first_step_never_runs(self, run, turns):
        """CA-04, DEC-10: in the same chunk, or so soon behind that its task exists but has not begun; later it is
        cancelled. One answer in every case.
        """
        endpoint = acprt.Endpoint("x")
        steps: list[str] = []

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            steps.append("started")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                steps.append("cancelled")
                raise

        async def main():
            async with scripted(endpoint) as (cx, transport):
                if turns == 0:
                    transport.deliver(request(1, "slow"), cancel(1))
                else:
                    transport.deliver(request(1, "slow"))
                    for _ in range(turns - 1):
                        await asyncio.sleep(0)
                    transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == [CANCELLED_1]
                assert steps == ([] if turns <= 2 else ["started", "cancelled"])
                assert cx.status().in_flight == []

        run(main())

    def test_ordered_request_queued_behind_a_stalled_handler_is_answered_at_once(self, run):
        """DEC-10, CA-08: the stall is no reason to wait, and its turn is skipped."""
        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()
        seen: list[Any] = []

        @endpoint.on_receive_notification("stall")
        async def stall(_params: Any) -> None:
            await release.wait()

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            seen.append(responder.id)
            responder.respond("answered")

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(notification("stall"), request(1, "ask"), request(2, "ask"))
                await until_idle()
                transport.deliver(cancel(1))
                assert transport.written == [CANCELLED_1]
                release.set()
                await until_idle()
                assert transport.written == [CANCELLED_1, result(2, "answered")]
                assert seen == [2]

        run(main())

    def test_unknown_method_cancelled_in_its_chunk_has_one_answer(self, run):
        """DEC-10: never -32800 and then -32601."""

        async def main():
            async with scripted(acprt.Endpoint("x")) as (_cx, transport):
                transport.deliver(request(1, "nobody"), cancel(1))
                await until_idle()
                assert transport.written == [CANCELLED_1]

        run(main())

    def test_cancel_ahead_of_its_request_is_not_remembered(self, run):
        """CA-06."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            return "ran"

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(cancel(1), request(1, "ask"))
                await until_idle()
                assert transport.written == [result(1, "ran")]

        run(main())

    def test_cancel_in_the_batch_of_its_request_fills_its_slot(self, run):
        """CA-09, BA-11: one array, the sibling unharmed, the handler never begun."""
        endpoint = acprt.Endpoint("x")
        ran: list[Any] = []

        @endpoint.method("ask")
        async def ask(params: Any) -> Any:
            ran.append(params)
            return params

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver([request(1, "ask", ["a"]), request(2, "ask", ["b"]), cancel(1)])
                await until_idle()
                assert transport.written == [[CANCELLED_1, result(2, ["b"])]]
                assert ran == [["b"]]

        run(main())

    def test_parked_request_is_answered_when_it_is_cancelled(self, run):
        """DY-11, DEC-10: no handler has it, so there is nothing to wait for; a later handler is not offered it."""
        endpoint = acprt.Endpoint("x")
        offered: list[Any] = []

        @endpoint.on_receive_dispatch
        async def park(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            return acprt.Handled.no(dispatch, retry=dispatch.method == "ask")

        async def later(dispatch: acprt.Dispatch[Any]) -> None:
            if dispatch.responder is not None:
                offered.append(dispatch.id)
                dispatch.responder.respond("later")

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"), request(2, "ask"))
                await until_idle()
                assert transport.written == []
                transport.deliver(cancel(1))
                assert transport.written == [CANCELLED_1]
                with cx.add_dynamic_handler(later):
                    await until_idle()
                assert transport.written == [CANCELLED_1, result(2, "later")]
                assert offered == [2]

        run(main())

    def test_synchronous_handler_that_was_not_started_never_starts(self, run):
        """DEC-15: it waited for a thread; the answer goes out at once."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(sync_threads=1))
        release = threading.Event()
        ran: list[str] = []

        @endpoint.method("block")
        def block(_params: Any) -> str:
            assert release.wait(10)
            return "unblocked"

        @endpoint.method("note")
        def note(params: Any) -> str:
            ran.append(params["name"])
            return "noted"

        async def main():
            try:
                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "block")
                    peer.request(2, "note", {"name": "cancelled"})
                    peer.request(3, "note", {"name": "wanted"})
                    assert await peer.settled() == []
                    peer.cancel(2)
                    assert await peer.receive() == {"jsonrpc": "2.0", "id": 2, "error": CANCELLED}
                    release.set()
                    assert [await peer.receive(), await peer.receive()] == [result(1, "unblocked"), result(3, "noted")]
                    assert ran == ["wanted"]
            finally:
                release.set()

        run(main())


class TestWhileTheHandlerRuns:
    """A `method` task is cancelled; an ordered handler gets the marker only (DEC-9)."""

    def test_method_is_cancelled_and_answers_request_cancelled(self, run):
        """DEC-9: its clean-up runs first."""
        endpoint = acprt.Endpoint("x")
        cleaned = asyncio.Event()

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning")
                cleaned.set()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.receive() == notification("cleaning")
                assert await peer.receive() == CANCELLED_1
                assert cleaned.is_set()
                assert await peer.settled() == []

        run(main())

    def test_value_returned_in_spite_of_the_cancel_is_the_answer(self, run):
        """DEC-9, SR-21: the work was done after all."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> str:
            try:
                await asyncio.Event().wait()
                return "whole"
            except asyncio.CancelledError:
                return "partial"

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.receive() == result(1, "partial")
                peer.cancel(1)
                assert await peer.settled() == []

        run(main())

    @pytest.mark.parametrize("raised", [ValueError("broken clean-up"), acprt.RpcError(-1, "own error")])
    def test_anything_raised_after_the_cancel_is_request_cancelled(self, run, caplog, raised):
        """DEC-9: what broke is logged, the peer gets the answer to its cancel."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise raised

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.cancel(1)
                assert await peer.settled() == [CANCELLED_1]

        with caplog.at_level(logging.DEBUG, "acprt.dispatch"):
            run(main())
        assert str(raised) in caplog.text

    def test_running_synchronous_handler_is_answered_for_at_once(self, run):
        """DEC-15: a thread cannot be stopped; its value is discarded when it comes."""
        endpoint = acprt.Endpoint("x")
        started, release = threading.Event(), threading.Event()
        returned = threading.Event()

        @endpoint.method("block")
        def block(_params: Any) -> str:
            started.set()
            assert release.wait(10)
            returned.set()
            return "too late"

        async def main():
            try:
                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "block")
                    assert await asyncio.to_thread(started.wait, 5)
                    peer.cancel(1)
                    assert await peer.receive() == CANCELLED_1
                    release.set()
                    assert await asyncio.to_thread(returned.wait, 5)
                    assert await peer.settled() == []
            finally:
                release.set()

        run(main())

    def test_ordered_handler_sees_its_cancel_while_it_holds_the_loop(self, run):
        """CA-01, CA-08 (DEC-10): it is not aborted; it may look at the marker, and the answer is its own."""
        endpoint = acprt.Endpoint("x")
        entered = asyncio.Event()

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            entered.set()
            await responder.cancellation.cancelled()
            responder.respond("as far as I got")

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await asyncio.wait_for(entered.wait(), 5)
                peer.cancel(1)
                assert await peer.settled() == [result(1, "as far as I got")]

        run(main())

    def test_kept_responder_is_only_marked(self, run):
        """CA-01: nobody but its holder answers."""
        endpoint, kept = keeper()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                await peer.settled()
                peer.cancel(1)
                assert await peer.settled() == []
                assert kept[0].cancellation.is_cancelled
                kept[0].respond_with_error(acprt.RpcError.request_cancelled())
                assert await peer.settled() == [CANCELLED_1]

        run(main())

    def test_cancel_of_one_request_leaves_the_others_alone(self, run):
        """CA-02, ID-05: 1 and "1" are two requests."""
        endpoint = acprt.Endpoint("x")
        kept: dict[Any, Requests] = {}

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests) -> None:
            kept[responder.id] = responder

        async def main():
            ids = [1, "1", 0, -1, "", 2**53 + 1, None]
            async with raw_client_of(endpoint) as peer:
                for each in ids:
                    peer.request(each, "ask")
                await peer.settled()
                for count, each in enumerate(ids):
                    peer.cancel(each)
                    await peer.settled()
                    assert [kept[other].cancellation.is_cancelled for other in ids] == [
                        index <= count for index in range(len(ids))
                    ]
                for responder in kept.values():
                    responder.respond(None)
                assert len(await peer.settled()) == len(ids)

        run(main())

    def test_null_id_can_be_cancelled(self, run):
        """CA-10."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(None, "slow")
                await peer.settled()
                peer.cancel(None)
                assert await peer.receive() == {"jsonrpc": "2.0", "id": None, "error": CANCELLED}

        run(main())

    def test_second_cancel_is_nothing(self, run):
        """Reference race: two cancels for one id."""
        endpoint = acprt.Endpoint("x")
        cancels: list[int] = []

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            release = asyncio.Event()
            while True:
                try:
                    await release.wait()
                    return
                except asyncio.CancelledError:
                    cancels.append(1)
                    asyncio.get_running_loop().call_soon(release.set)

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow")
                await peer.settled()
                peer.send(cancel(1), cancel(1), cancel(1))
                assert await peer.receive() == result(1, None)
                assert cancels == [1]

        run(main())

    def test_member_of_a_batch_is_cancelled_by_a_later_line(self, run):
        """CA-09: its slot carries the answer and the array leaves then."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        @endpoint.method("quick")
        async def quick(_params: Any) -> str:
            return "done"

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.send([request(1, "slow"), request(2, "quick")])
                assert await peer.settled() == []
                peer.cancel(1)
                assert await peer.receive() == [CANCELLED_1, result(2, "done")]

        run(main())


class TestDuplicateIds:
    """A peer that uses an id again while it is in flight (CA-12, ID-06)."""

    def test_newest_request_owns_the_id_and_each_is_answered_once(self, run):
        """CA-12: the cancel hits only the newest; the older one's marker never fires, also when it is alone again."""
        endpoint, kept = keeper()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"), request(1, "ask"))
                await until_idle()
                older, newer = kept
                transport.deliver(cancel(1))
                assert (older.cancellation.is_cancelled, newer.cancellation.is_cancelled) == (False, True)
                assert len(cx.status().in_flight) == 2
                newer.respond("newer")
                transport.deliver(cancel(1))
                assert not older.cancellation.is_cancelled
                older.respond("older")
                await until_idle()
                assert transport.written == [result(1, "newer"), result(1, "older")]
                assert cx.status().in_flight == []

        run(main())

    def test_older_method_runs_on_when_the_newer_is_cancelled(self, run):
        """CA-12: generations do not mix."""
        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("slow")
        async def slow(params: Any) -> Any:
            await release.wait()
            return params

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "slow", ["older"])
                peer.request(1, "slow", ["newer"])
                await peer.settled()
                peer.cancel(1)
                assert await peer.receive() == CANCELLED_1
                peer.cancel(1)
                assert await peer.settled() == []
                release.set()
                assert await peer.receive() == result(1, ["older"])

        run(main())

    def test_id_used_again_after_its_answer_is_a_new_request(self, run):
        """Reference race: the old cancel must not hit the new generation."""
        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("quick")
        async def quick(_params: Any) -> str:
            return "first"

        @endpoint.method("slow")
        async def slow(_params: Any) -> str:
            await release.wait()
            return "second"

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "quick"))
                await until_idle()
                transport.deliver(cancel(1), request(1, "slow"))
                await until_idle()
                release.set()
                await until_idle()
                assert transport.written == [result(1, "first"), result(1, "second")]

        run(main())

    def test_reused_ids_count_as_requests_in_flight(self, run):
        """DEC-12: one id, ever again, does not get round the limit."""
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(in_flight_requests=2))

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(*[request(1, "slow") for _ in range(5)])
                await until_idle()
                assert len(cx.status().in_flight) == 2
                assert [line["error"]["code"] for line in transport.written] == [-32603] * 3
                assert "too many requests in flight" in transport.written[0]["error"]["data"]

        run(main())


MALFORMED = [
    notification("$/cancel_request"),
    notification("$/cancel_request", {}),
    notification("$/cancel_request", [1]),
    notification("$/cancel_request", {"requestId": True}),
    notification("$/cancel_request", {"requestId": 1.5}),
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1.0}}',
    notification("$/cancel_request", {"requestId": {"id": 1}}),
    notification("$/cancel_request", {"requestId": [1]}),
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9223372036854775808}}',
    notification("$/cancel_request", {"id": 1}),
    notification("$/cancel_request", {"request_id": 1}),
]


class TestMalformed:
    @pytest.mark.parametrize("line", MALFORMED)
    def test_malformed_cancel_is_dropped_with_a_warning(self, run, caplog, line):
        """CA-07: no answer, nothing cancelled, no handler sees it, the connection lives."""
        endpoint = acprt.Endpoint("x")
        seen: list[str] = []
        release = asyncio.Event()

        @endpoint.method("slow")
        async def slow(_params: Any) -> str:
            await release.wait()
            return "done"

        @endpoint.on_receive_dispatch
        async def look(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            seen.append(dispatch.method)
            return acprt.Handled.no(dispatch)

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"), line, notification("other"))
                await until_idle()
                assert transport.written == []
                assert seen == ["other"]
                release.set()
                await until_idle()
                assert transport.written == [result(1, "done")]

        run(main())
        assert "malformed $/cancel_request" in caplog.text

    def test_malformed_cancel_in_a_batch_costs_no_sibling(self, run):
        """CA-07."""

        async def main():
            async with scripted(acprt.Endpoint("x")) as (_cx, transport):
                transport.deliver([notification("$/cancel_request", {}), request(1, "nobody")])
                await until_idle()
                assert [answer["id"] for answer in transport.written[0]] == [1]

        run(main())

    def test_cancel_sent_as_a_request_cancels_nothing(self, run):
        """UN-06: it is an unknown request."""
        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("slow")
        async def slow(_params: Any) -> str:
            await release.wait()
            return "done"

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"), request(2, "$/cancel_request", {"requestId": 1}))
                await until_idle()
                assert transport.written == [error(2, -32601, "Method not found", "$/cancel_request")]
                release.set()
                await until_idle()
                assert transport.written[1] == result(1, "done")

        run(main())

    @pytest.mark.parametrize("params", [{"requestId": 1, "_meta": {"why": "user"}}, {"requestId": 1, "reason": "x"}])
    def test_further_members_are_welcome(self, run, params):
        """CA-00: `_meta` belongs to it, others are ignored."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"), notification("$/cancel_request", params))
                await until_idle()
                assert transport.written == [CANCELLED_1]

        run(main())


class TestTheNotificationItself:
    """After marking it walks the handler chain like any other (CA-05)."""

    @pytest.mark.parametrize("claim", [True, False])
    def test_handler_observes_what_has_happened_already(self, run, claim):
        """CA-05, CP-05: claiming it changes nothing."""
        endpoint, kept = keeper()
        observed: list[tuple[Any, bool]] = []

        @endpoint.on_receive_dispatch
        async def look(dispatch: acprt.Dispatch[Any]) -> acprt.Handled | None:
            if dispatch.method == "$/cancel_request":
                observed.append((dispatch.params, kept[0].cancellation.is_cancelled))
            return None if claim else acprt.Handled.no(dispatch)

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert observed == [({"requestId": 1}, True)]
                kept.pop().respond("answered")
                await until_idle()
                assert transport.written == [result(1, "answered")]

        run(main())

    def test_it_keeps_its_place_behind_what_was_sent_before(self, run):
        """DEC-10: the effect comes at receipt, the observer's turn in wire order."""
        endpoint = acprt.Endpoint("x")
        order: list[str] = []

        @endpoint.on_receive_dispatch
        async def look(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            order.append(dispatch.method)
            return acprt.Handled.no(dispatch)

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(notification("a"), request(1, "ask"), notification("b"), cancel(1), notification("c"))
                await until_idle()
                assert order == ["a", "b", "$/cancel_request", "c"]

        run(main())

    @pytest.mark.parametrize("id", [99, "1", None])
    def test_cancel_of_an_unknown_request_is_ignored(self, run, id):
        """CA-06."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            await asyncio.sleep(0)
            return "done"

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(request(1, "ask"), cancel(id))
                await until_idle()
                assert transport.written == [result(1, "done")]

        run(main())

    def test_parked_cancel_reaches_a_later_dynamic_handler(self, run):
        """CA-16, UN-04."""
        endpoint = acprt.Endpoint("x")
        got: list[Any] = []

        @endpoint.on_receive_dispatch
        async def park(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
            return acprt.Handled.no(dispatch, retry=True)

        async def later(dispatch: acprt.Dispatch[Any]) -> None:
            got.append((dispatch.method, dispatch.params))

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(cancel(5))
                await until_idle()
                with cx.add_dynamic_handler(later):
                    await until_idle()
                assert got == [("$/cancel_request", {"requestId": 5})]

        run(main())


class TestNeverTwoAnswers:
    @pytest.mark.parametrize("seed", range(4))
    def test_every_request_has_exactly_one_answer_whatever_crosses(self, run, seed):
        """Reference races: requests of every kind, cancelled at random moments or not, in random chunks and batches."""
        chance = random.Random(seed)
        endpoint = acprt.Endpoint("x", limits=acprt.Limits(sync_threads=2))
        kept: list[Requests] = []

        @endpoint.method("sleepy")
        async def sleepy(params: Any) -> Any:
            for _ in range(params["turns"]):
                await asyncio.sleep(0)
            return "awake"

        @endpoint.method("stubborn")
        async def stubborn(params: Any) -> Any:
            for _ in range(params["turns"]):
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    if params["turns"] % 2:
                        raise ValueError("clean-up failed") from None
            return "in spite of it"

        @endpoint.method("threaded")
        def threaded(_params: Any) -> str:
            return "from a thread"

        @endpoint.on_receive_request("ordered")
        async def ordered(params: Any, responder: Requests) -> None:
            await asyncio.sleep(0)
            if params["turns"] % 3 == 0:
                kept.append(responder)
            elif params["turns"] % 3 == 1:
                responder.respond("in order")

        methods = ["sleepy", "stubborn", "threaded", "ordered", "nobody"]
        count = 300

        async def main():
            transport = ScriptedTransport()
            serving = asyncio.create_task(endpoint.serve(transport))
            await asyncio.sleep(0)
            pending: list[int] = []
            for id in range(1, count + 1):
                call = request(id, chance.choice(methods), {"turns": chance.randrange(6)})
                pending.append(id)
                chunk: list[Any] = [call]
                while pending and chance.random() < 0.5:
                    chunk.append(cancel(pending.pop(chance.randrange(len(pending)))))
                transport.deliver(*([chunk] if chance.random() < 0.2 else chunk))
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
                if kept and chance.random() < 0.5:
                    kept.pop().respond("later")
            transport.end()
            while not serving.done():
                kept.clear()
                await asyncio.sleep(0)
            await serving
            answers: Counter[int] = Counter()
            for line in transport.written:
                for answer in line if isinstance(line, list) else [line]:
                    assert answer.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
                    answers[answer["id"]] += 1
            assert answers == Counter(range(1, count + 1))
            assert SHUTTING_DOWN not in [line.get("error") for line in transport.written if isinstance(line, dict)]

        logging.getLogger("acprt.dispatch").disabled = True
        try:
            run(main())
        finally:
            logging.getLogger("acprt.dispatch").disabled = False
