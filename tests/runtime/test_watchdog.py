"""The watchdog names what holds the dispatch loop too long: the deadlocks that cannot be seen directly (DEC-17)."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_server_for, turns
from tests.runtime.ordered import Note, answer, note

SLOW = 0.02  # seconds: the limit in these tests, which wait for the warning, never for the time


class Warned(logging.Handler):
    """Sets `event` at each warning of the watchdog, and keeps the texts."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.event = asyncio.Event()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "has held the dispatch loop" in record.getMessage():
            self.texts.append(record.getMessage())
            self.event.set()


@contextmanager
def watching() -> Iterator[Warned]:
    handler = Warned()
    logger = logging.getLogger("acprt.dispatch")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def slow_endpoint(seconds: float = SLOW) -> acprt.Endpoint:
    return acprt.Endpoint("watched", limits=acprt.Limits(slow_handler_seconds=seconds))


Waiting = Callable[[acprt.Connection], Any]


async def _gather(cx: acprt.Connection) -> None:
    await asyncio.gather(cx.send_request("inner").block_task())


async def _task_group(cx: acprt.Connection) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(cx.send_request("inner").block_task())


async def _wait_for(cx: acprt.Connection) -> None:
    await asyncio.wait_for(cx.send_request("inner").block_task(), 60)


async def _own_task(cx: acprt.Connection) -> None:
    await asyncio.create_task(cx.send_request("inner").block_task())


WAITS: dict[str, Waiting] = {"gather": _gather, "task group": _task_group, "own task": _own_task}
if sys.version_info < (3, 12):
    WAITS["wait_for"] = _wait_for


class TestHiddenDeadlock:
    """A wait in a child task cannot be told from a legal one; it is named once it has taken too long."""

    @pytest.mark.parametrize("wait", WAITS)
    def test_it_names_the_handler_the_requests_and_the_way_out(self, run, wait):
        """DEC-17, DL-09: the text says who holds the loop, what waits, and what to do."""

        async def main():
            endpoint = slow_endpoint()

            @endpoint.on_receive_notification
            async def holds_the_loop(note: Note, cx: acprt.Connection) -> None:
                await WAITS[wait](cx)

            with watching() as warned:
                async with raw_server_for(endpoint) as (cx, peer):
                    peer.send(note("x"))
                    assert (await peer.receive())["method"] == "inner"
                    peer.send(answer(1))
                    await warned.event.wait()
                    assert cx.status().pending[0].method == "inner", "the answer is stuck behind the handler"
            text = warned.texts[0]
            assert "watched: handler" in text
            assert "holds_the_loop" in text
            assert "over 0.02 s" in text
            assert "1 pending: inner (id 1)" in text
            assert "cx.spawn(…)" in text
            assert "`method` handler" in text
            assert "block_task a timeout" in text

        run(main())

    def test_timeout_of_the_wait_ends_it(self, run):
        """DEC-17: `block_task(timeout=…)` is the recommended form: the handler goes on, and so does the loop."""

        async def main():
            endpoint = slow_endpoint(0.01)
            log: list[str] = []

            @endpoint.on_receive_notification
            async def heard(note: Note, cx: acprt.Connection) -> None:
                log.append(note.text)
                if note.text == "wait":
                    with pytest.raises(TimeoutError, match=r"the dispatch loop is held by .*heard"):
                        await asyncio.create_task(cx.send_request("inner").block_task(timeout=0.1))

            with watching() as warned:
                async with raw_server_for(endpoint) as (_cx, peer):
                    peer.send(note("wait"), note("after"))
                    await warned.event.wait()
                    await peer.settled()
                    assert log == ["wait", "after"]

        run(main())

    def test_ordered_callback_is_named_too(self, run):
        """OB-15, OB-19: a callback that waits in a child task, or never ends."""

        async def main():
            async def callback_that_waits(result: Any) -> None:
                await asyncio.Event().wait()

            with watching() as warned:
                async with raw_server_for(slow_endpoint()) as (cx, peer):
                    cx.send_request("work").on_receiving_result(callback_that_waits)
                    peer.send(answer(1))
                    await warned.event.wait()
            assert "callback_that_waits" in warned.texts[0]
            assert "0 pending: none" in warned.texts[0]

        run(main())

    def test_dynamic_handler_that_is_an_object_is_named_by_its_class(self, run):
        """DEC-17: whatever holds the loop has a name."""

        class HoldsTheLoop:
            async def __call__(self, note: Note, cx: acprt.Connection) -> None:
                await asyncio.Event().wait()

        async def main():
            with watching() as warned:
                async with raw_server_for(slow_endpoint()) as (cx, peer):
                    cx.add_dynamic_handler(HoldsTheLoop()).detach()
                    peer.send(note("x"))
                    await warned.event.wait()
            assert "HoldsTheLoop" in warned.texts[0]

        run(main())


class ClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still until a test moves it."""

    def __init__(self) -> None:
        self.ticks = 0
        super().__init__()
        self.slow_callback_duration = float("inf")  # a test that moves the clock is not slow

    def time(self) -> float:
        return 1000 + self.ticks / 10

    async def advance(self, seconds: float) -> None:
        """Move the clock in tenths of a second, and let what is due at each take its turns."""
        for _ in range(round(seconds * 10)):
            self.ticks += 1
            await turns(3)


class Watched:
    """A connection with a watchdog of ten seconds, on a clock of our own, whose handler can be held."""

    def __init__(self) -> None:
        self.endpoint = slow_endpoint(10.0)
        self.release = asyncio.Event()

        @self.endpoint.on_receive_notification
        async def held(note: Note) -> None:
            if note.text == "hold":
                await self.release.wait()
                self.release.clear()

        @self.endpoint.method("work")
        async def work(params: Any) -> None:
            await asyncio.Event().wait()


Script = Callable[[Watched, ClockLoop, acprt.Connection, RawPeer, Warned], Coroutine[Any, Any, None]]


def on_a_clock(script: Script, seconds: float = 10.0) -> None:
    """Run `script` with a watched connection and what the watchdog says."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ClockLoop)
        watched = Watched()
        watched.endpoint.limits = acprt.Limits(slow_handler_seconds=seconds)
        with watching() as warned:
            async with raw_server_for(watched.endpoint) as (cx, peer):
                await script(watched, loop, cx, peer, warned)

    with asyncio.Runner(loop_factory=ClockLoop) as runner:
        runner.run(main())


class TestOnlyWhatIsSlow:
    """No warning without reason, and one for each."""

    def test_one_warning_for_one_turn(self):
        """DEC-17: after its time and less than half more, however long it lasts; the next slow turn gets its own."""

        async def script(watched, loop, cx, peer, warned) -> None:
            for count in (1, 2):
                peer.send(note("hold"))
                await turns()
                await loop.advance(9.9)
                assert len(warned.texts) == count - 1
                await loop.advance(5.2)
                assert len(warned.texts) == count
                await loop.advance(100)
                assert len(warned.texts) == count
                watched.release.set()
                await turns()
                assert cx.status().running_handler is None
            await loop.advance(100)
            assert len(warned.texts) == 2

        on_a_clock(script)

    @pytest.mark.parametrize("as_batch", [False, True])
    def test_many_turns_are_not_one_slow_one(self, as_batch):
        """DEC-17: a busy loop is not a held one, also inside one long batch."""

        async def script(watched, loop, cx, peer, warned) -> None:
            messages = [note("hold")] * 30
            peer.send(*([messages] if as_batch else messages))
            await turns()
            for _ in range(30):
                await loop.advance(4.0)
                watched.release.set()
                await turns()
            assert cx.status().running_handler is None
            assert warned.texts == []

        on_a_clock(script)

    @pytest.mark.parametrize("earlier", ["blank line", "quick turn", "cancel"])
    def test_clock_of_an_earlier_line_is_not_its_own(self, earlier):
        """DEC-17: whatever came before, a handler has its whole time from its own start."""

        async def script(watched, loop, cx, peer, warned) -> None:
            if earlier == "blank line":
                peer.send("")
            elif earlier == "cancel":
                peer.cancel("unknown")
            else:
                peer.send(note("quick"))
            await turns()
            await loop.advance(4.9)
            peer.send(note("hold"))
            await turns()
            await loop.advance(9.9)
            assert warned.texts == []
            await loop.advance(5.2)
            assert len(warned.texts) == 1

        on_a_clock(script)

    @pytest.mark.parametrize("seconds", [0.0, float("inf")])
    def test_it_can_be_switched_off(self, seconds):
        """Limits: zero, negative and infinite seconds mean no watchdog."""

        async def script(watched, loop, cx, peer, warned) -> None:
            peer.send(note("hold"))
            await turns()
            await loop.advance(100)
            assert warned.texts == []

        on_a_clock(script, seconds)

    def test_waiting_method_handlers_are_nobodys_business(self):
        """DEC-17: a task of its own holds no loop, however long it takes."""

        async def script(watched, loop, cx, peer, warned) -> None:
            peer.request(1, "work")
            await turns()
            for _ in range(20):
                await loop.advance(5)
                peer.send(note("quick"))
                await turns()
            assert warned.texts == []

        on_a_clock(script)

    def test_closed_connection_watches_no_more(self):
        """DEC-18: the timer ends with the connection."""

        async def script(watched, loop, cx, peer, warned) -> None:
            peer.send(note("hold"))
            await turns()
            await loop.advance(5.0)
            await cx.aclose()
            await loop.advance(100)
            assert warned.texts == []

        on_a_clock(script)
