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
