"""`memory_pair()`: what one end writes the other reads, in order, with the flow control and the ends of a real pipe."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt.limits import DEFAULT_LIMITS, Limits
from acprt.transports.memory import MemoryTransport, memory_pair
from acprt.wire.lines import OversizedLine

MIB = 1024 * 1024


class Sink:
    """Remembers what it was told, in order; `when` wakes whoever waits for one of these words."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.error: Exception | None = None
        self._events: dict[object, asyncio.Event] = {}

    def when(self, word: object) -> asyncio.Event:
        event = self._events.setdefault(word, asyncio.Event())
        if word in self.told:
            event.set()
        return event

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        assert lines
        for line in lines:
            self._tell(line)

    def eof_received(self) -> None:
        self._tell("eof")

    def connection_lost(self, error: Exception) -> None:
        self.error = error
        self._tell("lost")

    def pause_writing(self) -> None:
        self._tell("pause")

    def resume_writing(self) -> None:
        self._tell("resume")

    def _tell(self, word: object) -> None:
        self.told.append(word)
        if word in self._events:
            self._events[word].set()


class PausingSink(Sink):
    """Pauses its transport whenever it is given lines."""

    def __init__(self, transport: MemoryTransport) -> None:
        super().__init__()
        self._transport = transport

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        super().lines_received(lines)
        self._transport.pause_reading()


def opened(limits: Limits = DEFAULT_LIMITS) -> tuple[MemoryTransport, Sink, MemoryTransport, Sink]:
    left, right = memory_pair()
    left_sink, right_sink = Sink(), Sink()
    left.open(left_sink, limits)
    right.open(right_sink, limits)
    return left, left_sink, right, right_sink


async def turns(count: int = 5) -> None:
    """Let the loop turn: what was scheduled happens."""
    for _ in range(count):
        await asyncio.sleep(0)


class TestDelivery:
    """Bytes in, lines out."""

    def test_lines_arrive_in_order_in_both_directions(self, run):
        """CH-06."""

        async def main():
            left, left_sink, right, right_sink = opened()
            left.write(b"one\ntw")
            left.write(b"o\nthree\n")
            right.write(b"back\n")
            await right_sink.when(b"three").wait()
            await left_sink.when(b"back").wait()
            assert right_sink.told == [b"one", b"two", b"three"]

        run(main())

    def test_nothing_is_delivered_inside_write(self, run):
        """CH-06: the reader runs on the next turn, never inside a call of the writer."""

        async def main():
            left, _, _, right_sink = opened()
            left.write(b"one\n")
            assert right_sink.told == []
            await right_sink.when(b"one").wait()

        run(main())

    def test_what_was_written_before_the_other_end_opens_is_kept(self, run):
        """M-04."""

        async def main():
            left, right = memory_pair()
            left.open(Sink(), DEFAULT_LIMITS)
            left.write(b"early\n")
            left.close_write()
            await turns()
            sink = Sink()
            right.open(sink, DEFAULT_LIMITS)
            await sink.when("eof").wait()
            assert sink.told == [b"early", "eof"]

        run(main())

    def test_an_over_long_line_is_reported(self, run):
        """FR-05."""

        async def main():
            left, _, _, right_sink = opened(Limits(line_bytes=10))
            left.write(b"x" * 11 + b"\nnext\n")
            await right_sink.when(b"next").wait()
            (long, _) = right_sink.told
            assert isinstance(long, OversizedLine)

        run(main())

    def test_an_end_opens_once(self, run):
        """CH-06."""

        async def main():
            left, *_ = opened()
            with pytest.raises(RuntimeError, match="open already"):
                left.open(Sink(), DEFAULT_LIMITS)

        run(main())

    def test_who_spawned_whom_is_said_when_the_pair_is_made(self):
        """DEC-23."""
        assert [end.peer_is_child for end in memory_pair()] == [False, False]
        assert [end.peer_is_child for end in memory_pair(left_is_parent=True)] == [True, False]

    def test_there_is_no_process_behind_it(self):
        """DEC-23."""
        left, _ = acprt.memory_pair()
        assert (left.facts(), left.child_status()) == ({}, None)


class TestFlowControl:
    """A reader that pauses holds back the writer, and nothing is lost."""

    def test_a_paused_reader_gets_nothing_until_it_resumes(self, run):
        """M-05."""

        async def main():
            left, _, right, right_sink = opened()
            right.pause_reading()
            left.write(b"one\n")
            left.close_write()
            await turns()
            assert right_sink.told == []
            right.resume_reading()
            await right_sink.when("eof").wait()
            assert right_sink.told == [b"one", "eof"]

        run(main())

    def test_pausing_during_a_delivery_holds_back_the_rest_and_eof(self, run):
        """M-05: a reader that pauses on the last line gets EOF when it resumes, not before."""

        async def main():
            left, right = memory_pair()
            right_sink = PausingSink(right)
            left.open(Sink(), DEFAULT_LIMITS)
            right.open(right_sink, DEFAULT_LIMITS)
            left.write(b"one\n")
            left.write(b"two\ntail")
            left.close_write()
            await turns()
            assert right_sink.told == [b"one"]
            right.resume_reading()
            await turns()
            assert right_sink.told == [b"one", b"two"]
            right.resume_reading()
            await turns()
            assert right_sink.told == [b"one", b"two", b"tail", "eof"]

        run(main())

    def test_a_writer_is_paused_and_resumed(self, run):
        """M-05: paused while the reader is far behind, resumed once it has read everything."""

        async def main():
            left, left_sink, right, right_sink = opened()
            right.pause_reading()
            left.write(b"x" * MIB + b"\n")
            left.write(b"y\n")
            assert left_sink.told == ["pause"]
            right.resume_reading()
            await right_sink.when(b"y").wait()
            assert left_sink.told == ["pause", "resume"]

        run(main())

    def test_drain_waits_until_everything_was_read(self, run):
        """LC-02."""

        async def main():
            left, _, right, right_sink = opened()
            right.pause_reading()
            left.write(b"one\n")
            draining = asyncio.ensure_future(left.drain())
            await turns()
            assert not draining.done()
            right.resume_reading()
            await draining
            assert right_sink.told == [b"one"]
            await left.drain()

        run(main())


class TestEnds:
    """Half-close, close, and a vanished reader."""

    def test_half_close_leaves_the_other_direction_open(self, run):
        """CH-06."""

        async def main():
            left, left_sink, right, right_sink = opened()
            left.write(b"last")
            left.close_write()
            left.close_write()
            await right_sink.when("eof").wait()
            assert right_sink.told == [b"last", "eof"]
            right.write(b"answer\n")
            await left_sink.when(b"answer").wait()

        run(main())

    def test_nothing_is_written_after_a_half_close(self, run):
        """CH-06."""

        async def main():
            left, _, _, right_sink = opened()
            left.close_write()
            left.write(b"late\n")
            await right_sink.when("eof").wait()
            await turns()
            assert right_sink.told == ["eof"]

        run(main())

    def test_closing_is_eof_for_the_other_end(self, run):
        """CH-06: what was written before arrives first."""

        async def main():
            left, _, _, right_sink = opened()
            left.write(b"last\n")
            await left.aclose()
            await left.aclose()
            await right_sink.when("eof").wait()
            assert right_sink.told == [b"last", "eof"]

        run(main())

    def test_a_closed_end_is_told_nothing_more(self, run):
        """CH-11."""

        async def main():
            left, left_sink, right, _ = opened()
            right.write(b"unread\n")
            right.close_write()
            await left.aclose()
            await turns()
            assert left_sink.told == []

        run(main())

    def test_writing_to_a_closed_end_fails_once_and_not_inside_write(self, run):
        """LC-06, CH-11: an I/O failure comes through the sink."""

        async def main():
            left, left_sink, right, _ = opened()
            await right.aclose()
            left.write(b"one\n")
            left.write(b"two\n")
            assert "lost" not in left_sink.told
            await left_sink.when("lost").wait()
            await turns()
            assert left_sink.told == ["eof", "lost"]
            assert isinstance(left_sink.error, BrokenPipeError)

        run(main())

    def test_nothing_comes_after_the_loss(self, run):
        """CH-11."""

        async def main():
            left, left_sink, right, _ = opened()
            left.pause_reading()
            right.write(b"unread\n")
            await right.aclose()
            left.write(b"one\n")
            await left_sink.when("lost").wait()
            left.resume_reading()
            await turns()
            assert left_sink.told == ["lost"]

        run(main())

    def test_a_loss_is_not_told_to_an_end_that_closes(self, run):
        """CH-11."""

        async def main():
            left, left_sink, right, _ = opened()
            await right.aclose()
            await left_sink.when("eof").wait()
            left.write(b"one\n")
            await left.aclose()
            await turns()
            assert left_sink.told == ["eof"]

        run(main())

    def test_a_paused_writer_learns_that_its_reader_is_gone(self, run):
        """LC-06: it would wait for ever, for room that never comes."""

        async def main():
            left, left_sink, right, _ = opened()
            right.pause_reading()
            left.write(b"x" * (MIB + 1))
            await right.aclose()
            await left_sink.when("lost").wait()
            assert left_sink.told == ["pause", "eof", "lost"]

        run(main())

    def test_drain_fails_when_the_reader_is_gone(self, run):
        """LC-06: what it did not read is lost."""

        async def main():
            left, _, right, _ = opened()
            right.pause_reading()
            left.write(b"one\n")
            draining = asyncio.ensure_future(left.drain())
            await turns()
            await right.aclose()
            with pytest.raises(BrokenPipeError):
                await draining

        run(main())

    def test_a_producer_waiting_in_drain_ends_with_the_connection(self, run):
        """LC-06: `cx.drain()` never outlives the reader."""

        async def main():
            near, far = memory_pair()
            far.open(Sink(), DEFAULT_LIMITS)
            far.pause_reading()
            cx = await acprt.Endpoint("a").open(near)
            for _ in range(40):
                cx.send_notification("n", ["x" * 100_000])
            draining = asyncio.ensure_future(cx.drain())
            await turns()
            assert not draining.done()
            await far.aclose()
            await draining
            await cx.aclose()

        run(main())


def test_error_of_the_receiver_is_a_lost_connection(run) -> None:
    """TF-01: told once, instead of leaving what is unread where it is for ever."""

    class Broken(Sink):
        def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
            raise ValueError("cannot take it")

    async def main() -> None:
        near, far = memory_pair()
        sink = Broken()
        near.open(sink, DEFAULT_LIMITS)
        far.open(Sink(), DEFAULT_LIMITS)
        far.write(b"1\n")
        far.write(b"2\n")
        await asyncio.wait_for(sink.when("lost").wait(), 5)
        assert (sink.told, str(sink.error)) == (["lost"], "cannot take it")
        await near.aclose()
        await far.aclose()

    run(main())
