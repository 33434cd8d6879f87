"""Input that comes faster than it is handled: read ahead up to a limit, pushed back past it, fair to everybody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import brief, call, endpoint, ok
from tests.runtime.scripted import notification, result, scripted, until_idle


class TestBounds:
    """Input is read ahead of a handler that takes its time, up to a limit; then the pipe pushes back."""

    @staticmethod
    def holding(limits: Limits | None = None) -> tuple[acprt.Endpoint, asyncio.Event, list[Any]]:
        served = acprt.Endpoint("served", limits=limits)
        release = asyncio.Event()
        heard: list[Any] = []

        @served.on_receive_notification("n")
        async def n(params: Any, cx: acprt.Connection) -> None:
            await release.wait()
            heard.append(params[0])

        return served, release, heard

    def test_reading_goes_on_while_a_handler_holds_the_loop(self, run):
        """M-06: what came is counted, and a cancel among it is applied at once."""

        async def main():
            served, release, heard = self.holding()
            cancelled = asyncio.Event()

            @served.method("task")
            async def task(_params: Any) -> None:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.set()
                    raise

            async with scripted(served) as (cx, transport):
                transport.deliver(call("7", "task"), notification("n", [0]))
                await until_idle()
                for number in range(1, 10):
                    transport.deliver(notification("n", [number]))
                transport.deliver(notification("$/cancel_request", {"requestId": 7}))
                await asyncio.wait_for(cancelled.wait(), 5)
                inbox = cx.status().inbox
                assert inbox.count >= 10
                assert inbox.bytes >= 10 * len(b'{"jsonrpc":"2.0","method":"n","params":[0]}')
                assert heard == []
                release.set()
                await until_idle()
                assert heard == list(range(10))

        run(main())

    def test_members_of_a_batch_count_each_and_broken_ones_are_not_kept(self, run):
        """M-05, BA-03: a line of thousands is no single frame, and what is answered already is only counted."""

        async def main():
            served, release, _heard = self.holding(Limits(inbox_frames=100))
            async with scripted(served) as (cx, transport):
                transport.deliver(notification("n", [0]))
                await until_idle()
                transport.deliver([1] * 200)
                assert cx.status().inbox.count == 201
                assert transport.calls == ["pause_reading"]
                assert cx.status().counters.bad_lines == 200
                release.set()
                await until_idle()
                assert transport.calls == ["pause_reading", "resume_reading"]
                assert cx.status().inbox.count == 0
                assert [line["error"]["code"] for line in transport.written[0]] == [-32600] * 200

        run(main())

    @pytest.mark.parametrize("limits", [Limits(inbox_frames=10), Limits(inbox_bytes=1_000)], ids=["frames", "bytes"])
    def test_past_the_limit_reading_pauses_and_nothing_is_lost(self, run, limits):
        """M-05: it resumes when half of it is done, and order is kept."""

        async def main():
            served, release, heard = self.holding(limits)
            async with scripted(served) as (cx, transport):
                for number in range(40):
                    transport.deliver(notification("n", [number, "x" * 20]))
                assert transport.calls == ["pause_reading"]
                await until_idle()
                assert transport.calls == ["pause_reading"]
                release.set()
                while len(heard) < 40:
                    await asyncio.sleep(0)
                await until_idle()
                assert heard == list(range(40))
                assert transport.calls == ["pause_reading", "resume_reading"]
                assert cx.status().inbox.count == 0

        run(main())

    def test_a_flood_is_read_no_further_than_the_limit(self, run):
        """M-05, M-06: the rest stays where it is, in the pipe, until there is room."""

        async def main():
            served, release, heard = self.holding(Limits(inbox_frames=100))
            async with raw_server_for(served) as (cx, peer):
                for number in range(5_000):
                    peer.notify("n", [number])
                await until_idle()
                assert cx.status().inbox.count <= 110
                release.set()
                await peer.settled()
                assert heard == list(range(5_000))

        run(main())

    def test_a_paused_reader_still_delivers_the_end(self, run):
        """M-05: EOF waits behind what was held back, and is not lost."""

        async def main():
            served, release, heard = self.holding(Limits(inbox_frames=10))
            async with raw_client_of(served) as peer:
                for number in range(100):
                    peer.notify("n", [number])
                peer.close_write()
                await until_idle()
                release.set()
                await asyncio.wait_for(peer.at_eof.wait(), 5)
            assert heard == list(range(100))

        run(main())


class TestFairness:
    """A burst that never suspends does not starve the rest of the program."""

    def test_other_tasks_run_between_the_chunks_of_a_burst(self, run):
        """M-09: one read is dispatched in one go, then everybody else has a turn."""

        async def main():
            ticks = 0
            seen: set[int] = set()
            served = acprt.Endpoint("served")

            @served.on_receive_notification("n")
            async def n(_params: Any, cx: acprt.Connection) -> None:
                seen.add(ticks)

            @served.with_spawned
            async def ticking(cx: acprt.Connection) -> None:
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0)

            async with scripted(served) as (_, transport):
                for _ in range(50):
                    transport.deliver(*[notification("n")] * 10)
                await until_idle()
                while ticks < 100:
                    await asyncio.sleep(0)
            assert len(seen) >= 40

        run(main())

    def test_answers_of_a_burst_leave_while_it_lasts(self, run):
        """M-09: so a failure later in it takes none of them back."""

        async def main():
            served = endpoint()

            @served.on_receive_request("fail")
            async def fail(_params: Any, _responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                cx.fail(OSError("broken on purpose"))

            async with scripted(served) as (_, transport):
                transport.deliver(*(call(str(number)) for number in range(100)))
                transport.deliver(call("100", "fail"))
                await until_idle()
                assert [brief(line) for line in transport.written[:100]] == [ok(number) for number in range(100)]

        run(main())

    def test_a_request_is_answered_while_replies_keep_coming(self, run):
        """M-09, DL-08: both ends are client and server at once."""

        async def main():
            async with scripted(endpoint()) as (cx, transport):
                handles = [cx.send_request("ask", [number]) for number in range(200)]
                for sent in handles:
                    transport.deliver(result(sent.id, sent.id), call(f'"{sent.id}"'))
                values = [await sent.block_task() for sent in handles]
                await until_idle()
                assert values == [sent.id for sent in handles]
                answered = [line["id"] for line in transport.written if "method" not in line]
                assert answered == [str(sent.id) for sent in handles]

        run(main())
