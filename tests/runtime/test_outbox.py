"""The outbox alone: whatever is put, paused, withdrawn and flushed in whatever order, the frames leave as they came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acprt
from acprt.limits import Limits
from acprt.runtime.outbox import Outbox
from acprt.wire.frames import encode_notification, encode_request, encode_response
from acprt.wire.lines import LongLine
from tests.runtime.scripted import ScriptedTransport, keeper, request, until_idle


class Withdrawing(acprt.Dialect):
    """The one difference that the outbox asks for."""

    withdraws_queued = True


class Shouting(acprt.Dialect):
    """Writes other lines than the runtime's."""

    def to_wire(self, line: bytes) -> bytes:
        return line.upper()


class PipeTransport(ScriptedTransport):
    """Says that it is full once it has taken `room` bytes, from inside `write`, as a pipe does."""

    def __init__(self, outbox_of: list[Outbox], room: int) -> None:
        super().__init__()
        self._outbox_of = outbox_of
        self._room = room
        self.chunks: list[bytes] = []
        self.is_full = False

    def write(self, data: bytes) -> None:
        super().write(data)
        self.chunks.append(data)
        self._room -= len(data)
        if self._room < 0 and not self.is_full:
            self.is_full = True
            self._outbox_of[0].pause()

    def make_room(self, room: int) -> None:
        self._room = room
        if self.is_full:
            self.is_full = False
            self._outbox_of[0].resume()


def outbox(room: int, **limits: Any) -> tuple[Outbox, PipeTransport, list[acprt.RpcError]]:
    made: list[Outbox] = []
    failures: list[acprt.RpcError] = []
    transport = PipeTransport(made, room)
    made.append(Outbox(transport, Limits(**limits), Withdrawing(), asyncio.get_running_loop(), failures.append))
    return made[0], transport, failures


class TestOrder:
    """First in, first out; withdrawn frames leave no trace."""

    @given(
        room=st.integers(0, 400),
        steps=st.lists(
            st.one_of(
                st.tuples(st.just("put"), st.integers(0, 3), st.sampled_from([1, 20, 70_000, None])),
                st.tuples(st.just("withdraw"), st.integers(0, 3)),
                st.tuples(st.just("room"), st.integers(0, 200_000)),
                st.tuples(st.just("turn")),
            ),
            max_size=40,
        ),
    )
    @settings(max_examples=200)
    def test_frames_leave_once_in_order_as_whole_lines(self, room, steps):
        """OU-10, OU-12: through any pauses; what was withdrawn is what had not been handed to the transport."""

        async def main() -> None:
            box, transport, failures = outbox(room)
            expected: list[bytes] = []
            queued: list[tuple[int, bytes]] = []  # put since, by owner, and not handed over as far as we can tell
            number = 0
            for step in steps:
                if step[0] == "put":
                    number += 1
                    long = LongLine(b"<%d:" % number, b"x" * 70_000, b">")
                    frame = bytes(long) if step[2] is None else b"%d:" % number + b"x" * step[2]
                    box.put(long if step[2] is None else frame, step[1])
                    expected.append(frame)
                    queued.append((step[1], frame))
                elif step[0] == "withdraw":
                    mine = [frame for owner, frame in queued if owner == step[1]]
                    count = box.withdraw(step[1])
                    assert count <= len(mine)
                    for frame in mine[len(mine) - count :]:
                        expected.remove(frame)
                        queued.remove((step[1], frame))
                elif step[0] == "room":
                    transport.make_room(step[1])
                else:
                    await asyncio.sleep(0)
                small = [chunk for chunk in transport.chunks if 0 < len(chunk) < 64 * 1024]
                assert all(chunk.endswith(b"\n") or chunk.startswith(b"<") for chunk in small)
            transport.make_room(10**9)
            await asyncio.sleep(0)
            assert b"".join(transport.chunks) == b"".join(frame + b"\n" for frame in expected)
            assert (box.count, box.size, failures) == (0, 0, [])

        asyncio.run(main())

    def test_a_frame_after_a_silence_leaves_at_once(self, run):
        """OU-12: before `put` returns."""

        async def main():
            box, transport, _ = outbox(10**9)
            box.put(b"1")
            assert transport.chunks == [b"1\n"]

        run(main())

    def test_a_long_line_is_not_copied(self, run):
        """What a text of megabytes stands between is written apart."""

        async def main():
            box, transport, _ = outbox(10**9)
            text = "x" * 100_000
            line = encode_notification("note", [text])
            assert isinstance(line, LongLine)
            box.put(line)
            assert any(chunk is part for chunk in transport.chunks for part in line.parts if len(part) > len(text))
            assert msgspec.json.decode(b"".join(transport.chunks))["params"] == [text]

        run(main())

    def test_a_long_line_is_shown_and_rewritten_whole(self, run):
        """CH-02: a tap and a dialect know lines as bytes."""

        async def main():
            line = encode_notification("note", ["x" * 100_000])
            transport = PipeTransport([], 10**9)
            tapped: list[Any] = []
            box = Outbox(transport, Limits(), Shouting(), asyncio.get_running_loop(), tapped.append)
            box.tap = tapped.append
            box.put(line)
            assert tapped == [bytes(line).upper()]
            assert b"".join(transport.chunks) == bytes(line).upper() + b"\n"

        run(main())

    def test_a_burst_leaves_in_few_writes_by_the_next_turn(self, run):
        """OU-12: and so does every burst after it, and what comes alone behind one."""

        async def main():
            box, transport, _ = outbox(10**9)
            for size in (100, 1, 50, 1, 1):
                transport.chunks.clear()
                for number in range(size):
                    box.put(b"%d" % number)
                await asyncio.sleep(0)
                assert b"".join(transport.chunks) == b"".join(b"%d\n" % number for number in range(size))
                assert len(transport.chunks) <= max(1, size // 2)
                assert box.count == 0

        run(main())

    def test_a_handler_that_never_waits_streams_all_the_same(self, run):
        """M-05: what it sends in one tick is not held until the tick ends."""

        async def main():
            box, transport, _ = outbox(10**9)
            for _ in range(100):
                box.put(b"x" * 10_000)
                assert box.size < 100_000
            assert len(transport.chunks) > 10

        run(main())

    def test_withdrawing_everything_writes_nothing(self, run):
        """DEC-11."""

        async def main():
            box, transport, _ = outbox(0)
            box.put(b"first", 1)
            box.put(b"second", 1)
            box.put(b"third", 1)
            assert box.withdraw(1) == 2
            assert box.withdraw(1) == 0
            transport.make_room(100)
            await asyncio.sleep(0)
            assert b"".join(transport.chunks) == b"first\n"

        run(main())

    def test_withdrawing_requests_leaves_everything_else(self, run):
        """OU-05, EO-06: answers and notifications, whatever they are about; and what was withdrawn counts once."""

        async def main():
            box, transport, _ = outbox(0)
            request = encode_request(1, "m", {"id": 2})
            others = [encode_response(2, {"method": "m"}), encode_notification("m", {"id": 2}), b'[{"jsonrpc":"2.0"}]']
            for frame in (b"first", request, *others):
                box.put(frame, "owner of them all")
            box.put(request, "owner of one")
            box.put(request, "owner of another")
            assert box.withdraw("owner of one") == 1
            assert box.withdraw_requests() == 2
            assert box.withdraw("owner of another") == 0
            assert box.withdraw_requests() == 0
            assert box.count == 3
            transport.make_room(10_000)
            await asyncio.sleep(0)
            assert b"".join(transport.chunks) == b"\n".join([b"first", *map(bytes, others), b""])
            assert (box.count, box.size) == (0, 0)

        run(main())


class InterruptedTransport(ScriptedTransport):
    """A collection strikes inside `write`: what `interrupt` does comes before the bytes are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.interrupts: list[Callable[[], object]] = []

    def write(self, data: bytes) -> None:
        if self.interrupts:
            self.interrupts.pop()()
        super().write(data)


class TestFinalizers:
    """A finalizer sends from wherever the collector strikes, which may be the midst of a write."""

    @pytest.mark.parametrize("size", [10, 100_000])
    @pytest.mark.parametrize("what", ["responder", "request"])
    def test_line_is_not_torn_by_what_a_finalizer_sends(self, run, monkeypatch, what, size):
        """PY-03: the answer or the cancel of the dropped handle comes behind the frame on its way."""
        monkeypatch.setattr("acprt.runtime.outbox._LONE_SECONDS", -1.0)  # each frame would be written at once

        async def main():
            endpoint, responders = keeper()
            kept: list[Any] = responders  # a request of its own, too

            transport = InterruptedTransport()
            cx = await endpoint.open(transport)
            if what == "responder":
                transport.deliver(request(1, "ask"))
                await until_idle()
            else:
                kept.append(cx.send_request("ask"))
                await until_idle()
            before = len(transport.written)
            transport.interrupts.append(kept.clear)
            for n in range(3):
                cx.send_notification("note", ["x" * size, n])
            await until_idle()
            lines = transport.written[before:]
            assert not kept
            assert [line["params"][1] for line in lines if line.get("method") == "note"] == [0, 1, 2]
            assert lines[0].get("method") == "note"
            assert len(lines) == 4
            await cx.aclose()

        run(main())

    def test_waiting_frame_is_not_torn_either(self, run, monkeypatch):
        """PY-03: so it is with a frame that leaves when the peer reads again."""
        monkeypatch.setattr("acprt.runtime.outbox._LONE_SECONDS", -1.0)

        async def main():
            transport = InterruptedTransport()
            cx = await acprt.Endpoint().open(transport)
            kept = [cx.send_request("ask")]
            await until_idle()
            before = len(transport.written)
            transport.stall()
            cx.send_notification("note", ["x" * 50_000])
            transport.interrupts.append(kept.clear)
            transport.flow()
            await until_idle()
            lines = transport.written[before:]
            assert [line["method"] for line in lines] == ["note", "$/cancel_request"]
            await cx.aclose()

        run(main())


class TestFullPipe:
    """Frames wait here while the transport is full: counted, bounded, handed over at the end."""

    def test_nothing_is_written_while_the_transport_is_full(self, run):
        """M-05."""

        async def main():
            box, transport, _ = outbox(0)
            box.put(b"1")
            box.put(b"2")
            await asyncio.sleep(0)
            box.put(b"3")
            await asyncio.sleep(0)
            assert transport.chunks == [b"1\n"]
            assert box.count == 2
            assert box.size >= 4
            assert box.oldest_age >= 0.0
            transport.make_room(100)
            assert transport.chunks == [b"1\n", b"2\n3\n"]
            assert (box.count, box.size, box.oldest_age) == (0, 0, 0.0)

        run(main())

    def test_drained_waits_for_the_high_mark_and_not_for_the_last_byte(self, run):
        """M-05: a producer goes on before the outbox is empty."""

        async def main():
            box, transport, _ = outbox(0, outbox_high_bytes=100)
            box.put(b"x" * 50)
            await box.drained()
            box.put(b"y" * 90)
            waiting = asyncio.ensure_future(box.drained())
            for _ in range(3):
                await asyncio.sleep(0)
            assert not waiting.done()
            transport.make_room(10)
            await waiting
            assert transport.is_full

        run(main())

    def test_drained_ends_when_the_burst_is_written_or_withdrawn(self, run):
        """M-05: also below what the outbox collects for one write, where no pipe is full."""

        async def main():
            box, transport, _ = outbox(10**9, outbox_high_bytes=10)
            for _ in range(20):
                box.put(b"x" * 50, 1)
            await asyncio.wait_for(box.drained(), 5)
            assert b"".join(transport.chunks) == b"x" * 50 + (b"\n" + b"x" * 50) * 19 + b"\n"
            box, _, _ = outbox(10**9, outbox_high_bytes=10)
            box.pause()
            box.put(b"y" * 50, 2)
            waiting = asyncio.ensure_future(box.drained())
            await asyncio.sleep(0)
            assert not waiting.done()
            box.withdraw(2)
            await asyncio.wait_for(waiting, 5)

        run(main())

    def test_drained_ends_with_the_outbox(self, run):
        """EO-14: nobody is left waiting."""

        async def main():
            box, _, _ = outbox(0, outbox_high_bytes=1)
            box.put(b"x" * 50)
            box.put(b"x" * 50)
            waiting = [asyncio.ensure_future(box.drained()) for _ in range(2)]
            await asyncio.sleep(0)
            box.close()
            await asyncio.gather(*waiting)
            await box.drained()

        run(main())

    def test_a_cancelled_waiter_does_not_hold_up_the_others(self, run):
        """M-05."""

        async def main():
            box, transport, _ = outbox(0, outbox_high_bytes=1)
            box.put(b"x" * 50)
            box.put(b"x" * 50)
            first, second = (asyncio.ensure_future(box.drained()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
            transport.make_room(1_000)
            await second

        run(main())

    def test_past_the_ceiling_the_connection_is_told_to_fail(self, run):
        """M-05: by an error that names what to do."""

        async def main():
            box, _, failures = outbox(0, outbox_max_bytes=1_000)
            box.put(b"x")
            for _ in range(9):
                box.put(b"x" * 99)
            assert failures == []
            box.put(b"y" * 99)
            (failure,) = failures
            assert failure.data["reason"] == "outbox_full"
            assert failure.data["option"] == "Limits.outbox_max_bytes"
            assert failure.data["limit"] == 1_000
            assert "drain()" in str(failure)

        run(main())

    def test_at_the_end_everything_is_handed_over(self, run):
        """LC-02: full or not; the transport bounds the rest."""

        async def main():
            box, transport, _ = outbox(0)
            box.put(b"1")
            box.put(b"2")
            box.put(b"3")
            box.hand_over()
            assert transport.chunks == [b"1\n", b"2\n3\n"]
            box.hand_over()
            assert transport.chunks == [b"1\n", b"2\n3\n"]

        run(main())

    def test_a_closed_outbox_takes_nothing(self, run):
        """LC-06."""

        async def main():
            box, transport, _ = outbox(0)
            box.put(b"1")
            box.put(b"2")
            box.close()
            box.put(b"3")
            await asyncio.sleep(0)
            assert transport.chunks == [b"1\n"]
            assert box.count == 0

        run(main())
