"""`cx.status()`: a snapshot for a person who asks why nothing moves."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

import acprt
from tests.runtime.scripted import ScriptedTransport, error, notification, request, result, scripted, until_idle


class TestStatus:
    def test_it_tells_who_waits_for_what(self, run):
        """Our pending requests and the peer's, with ages."""
        endpoint = acprt.Endpoint("near")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request("theirs", "slow"), notification("$/cancel_request", {"requestId": "x"}))
                cx.send_request("ours").detach()
                sent = cx.send_request("waited for")
                await until_idle()
                status = cx.status()
                assert (status.name, status.state) == ("near", "open")
                assert [(call.id, call.method) for call in status.pending] == [(2, "waited for")]
                assert [(call.id, call.method, call.is_cancelled) for call in status.in_flight] == [
                    ("theirs", "slow", False)
                ]
                ages = [call.age for call in status.pending] + [call.age for call in status.in_flight]
                assert all(0 <= age < 10 for age in ages)
                assert status.child is None
                assert status.running_handler is None
                transport.deliver(result(2, None))
                await sent.block_task()
                assert cx.status().pending == []

        run(main())

    def test_it_tells_how_full_the_queues_are(self, run):
        """Frames, bytes and the age of the oldest; and what holds the loop."""
        endpoint = acprt.Endpoint("near")
        release = asyncio.Event()

        @endpoint.on_receive_notification("hold")
        async def hold_everything(_params: Any) -> None:
            await release.wait()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(notification("hold"))
                await until_idle()
                transport.deliver(notification("a"), notification("b"))
                transport.stall()
                cx.send_notification("c")
                cx.send_notification("d")
                status = cx.status()
                assert status.inbox.count == 3
                assert status.inbox.bytes == sum(
                    len(msgspec.json.encode(notification(name))) for name in ("hold", "a", "b")
                )
                assert status.outbox.count == 2
                assert status.outbox.bytes == sum(len(msgspec.json.encode(notification(name))) + 1 for name in "cd")
                assert status.inbox.oldest_age >= 0
                assert status.outbox.oldest_age >= 0
                assert status.running_handler is not None
                assert "hold_everything" in status.running_handler
                release.set()
                transport.flow()
                await until_idle()
                status = cx.status()
                assert (status.inbox.count, status.inbox.bytes) == (0, 0)
                assert (status.outbox.count, status.outbox.bytes) == (0, 0)

        run(main())

    def test_it_counts_what_goes_wrong_quietly(self, run):
        """DEC-24: bad lines, answers that match nothing, answers that come too late."""

        async def main():
            async with scripted(acprt.Endpoint("near")) as (cx, transport):
                cx.send_request("dropped")
                await until_idle()
                transport.deliver(b"garbage", b"more", error(99, 1, "unknown"), result(1, "late"))
                await until_idle()
                counters = cx.status().counters
                assert counters.bad_lines == 2
                assert counters.unmatched_responses == 1
                assert counters.late_responses == 1
                assert counters.stderr_dropped == 0

        run(main())

    def test_it_tells_how_far_the_end_has_come(self, run):
        """EO-13: open, input_closing, input_closed, ending, ended."""
        endpoint = acprt.Endpoint("near")
        states: list[str] = []

        @endpoint.on_close
        async def bye(cx: acprt.Connection) -> None:
            states.append(cx.status().state)

        async def main():
            transport = ScriptedTransport()
            cx = await endpoint.open(transport)
            states.append(cx.status().state)
            transport.end()
            await cx.incoming_closed()
            states.append(cx.status().state)
            transport.stall()
            closing = asyncio.create_task(cx.aclose())
            await until_idle()
            states.append(cx.status().state)
            transport.flow()
            await closing
            states.append(cx.status().state)
            assert states == ["open", "input_closing", "input_closed", "ending", "ended"]
            assert repr(cx) == "<Connection near ended>"

        run(main())

    def test_it_prints_well_and_is_plain_data(self, run):
        """Text for a person, plain values for JSON."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: acprt.Responder[Any]) -> None:
            kept.append(responder)

        kept: list[acprt.Responder[Any]] = []

        async def main():
            async with scripted(endpoint) as (cx, transport):
                transport.deliver(request(5, "ask"), b"garbage")
                await until_idle()
                transport.deliver(notification("$/cancel_request", {"requestId": 5}))
                sent = cx.send_request("ours")
                text = str(cx.status())
                for part in ("near: open", "pending  ours (id 1)", "serving  ask (id 5)", "(cancelled)", "bad_lines 1"):
                    assert part in text
                assert "child" not in text
                plain = cx.status().as_dict()
                assert msgspec.json.decode(msgspec.json.encode(plain))["pending"][0]["method"] == "ours"
                sent.detach()
                kept.clear()

        run(main())
