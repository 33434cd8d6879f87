"""What a cancel of the peer names: one request, several of one id, none; and malformed ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of
from tests.runtime.scripted import cancel, error, keeper, notification, request, result, scripted, until_idle

CANCELLED_1 = error(1, -32800, "Request cancelled")


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
        assert "malformed $/cancel_request, or one that is not allowed here" in caplog.text

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
