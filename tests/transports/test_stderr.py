"""Stderr of a child: a bounded tail for errors, lines for a callback that may be slow or raise."""

from __future__ import annotations

import logging
import threading

import pytest

from acprt.limits import Limits
from acprt.transports.stderr import StderrLines, StderrTail

KIB = 1024


def tail_of(*pieces: bytes, limit: int = 64 * KIB) -> str:
    tail = StderrTail(limit)
    for piece in pieces:
        tail.feed(piece)
    return tail.text()


class TestTail:
    """The text that is put into the error of a request."""

    def test_short_stderr_is_kept_as_it_is(self):
        """AG-32."""
        assert tail_of(b"one\r\n", b"two\n", b"three") == "one\r\ntwo\nthree"

    def test_nothing_written_is_an_empty_text(self):
        """AG-32."""
        assert tail_of() == ""

    def test_exactly_the_limit_is_not_cut(self):
        """AG-32."""
        assert tail_of(b"x" * 64 * KIB) == "x" * 64 * KIB

    def test_one_byte_more_is_cut_and_says_so(self):
        """AG-32: with the line in front it is still no longer than the limit."""
        first, _, rest = tail_of(b"x" * 64 * KIB, b"\n").partition("\n")
        assert first == f"[stderr truncated; showing last {len(rest)} bytes]"
        assert rest == "x" * (len(rest) - 1) + "\n"
        assert len(first) + 1 + len(rest) == 64 * KIB

    @pytest.mark.parametrize("size", [1, 1_000, 64 * KIB])
    def test_the_last_bytes_are_the_ones_kept(self, size):
        """AG-32: however they were written."""
        written = b"".join(b"%d\n" % number for number in range(40_000))
        pieces = [written[start : start + size] for start in range(0, len(written), size)]
        text = tail_of(*pieces)
        assert text.endswith("39998\n39999\n")
        assert written.decode().endswith(text.partition("\n")[2])

    def test_memory_is_bounded(self):
        """AG-32."""
        tail = StderrTail(KIB)
        for _ in range(1_000):
            tail.feed(b"x" * 100)
        assert len(tail._tail) <= 2 * KIB

    def test_undecodable_bytes_are_replaced(self):
        """AG-33."""
        assert tail_of(b"a\xff\xfeb\xe2\x82") == "a\ufffd\ufffdb\ufffd"

    def test_replacements_do_not_make_it_longer_than_the_limit(self):
        """At most 64 KiB, encoded as it would be in a log or an answer."""
        text = tail_of(b"\xff" * 64 * KIB)
        assert len(text.encode()) <= 64 * KIB
        assert text.startswith("[stderr truncated; showing last ")

    def test_a_character_is_not_cut_in_half(self):
        """AG-33: what was written well is not shown as damaged."""
        for extra in range(4):
            text = tail_of("€".encode() * 1_000, b"x" * extra, limit=200)
            assert "\ufffd" not in text
            assert len(text.encode()) <= 200

    def test_a_tiny_limit_keeps_the_end(self):
        """AG-32: the line in front does not take the place of the text."""
        assert tail_of(b"abcdefgh", limit=4).endswith("\nefgh")

    def test_no_limit_left_keeps_nothing(self):
        """AG-32: 0 bytes are a legal limit."""
        assert "a" not in tail_of(b"aaaa", limit=0).partition("\n")[2]


def lines_of(*pieces: bytes, limits: Limits = Limits()) -> list[str]:  # noqa: B008 - it is immutable
    lines: list[str] = []
    splitter = StderrLines(lines.append, limits, name="a test")
    for piece in pieces:
        splitter.feed(piece)
    splitter.close()
    if splitter._thread is not None:
        splitter._thread.join(10)
        assert not splitter._thread.is_alive()
    return lines


class TestLines:
    """The lines that the callback sees."""

    def test_lines_end_at_lf_and_come_without_it(self):
        """AG-41: also one that comes in pieces."""
        assert lines_of(b"one\ntw", b"o", b"\nthree\n") == ["one", "two", "three"]

    def test_one_cr_before_lf_is_removed(self):
        """AG-41: also when they are read apart."""
        assert lines_of(b"one\r\ntwo\r", b"\nthree\r\r\n") == ["one", "two", "three\r"]

    def test_a_lone_cr_is_kept(self):
        """AG-41: progress bars."""
        assert lines_of(b"10%\r20%\r30%\n", b"end\r") == ["10%\r20%\r30%", "end\r"]

    def test_empty_lines_are_lines(self):
        """AG-41."""
        assert lines_of(b"\n\r\nx\n\n") == ["", "", "x", ""]

    def test_other_separators_are_not(self):
        """AG-41."""
        assert lines_of("a\u2028b\x0bc\x85d\n".encode()) == ["a\u2028b\x0bc\x85d"]

    def test_undecodable_bytes_are_replaced(self):
        """AG-41."""
        assert lines_of(b"a\xff\n\xe2\x82\n") == ["a\ufffd", "\ufffd"]

    def test_a_character_in_two_pieces_is_one(self):
        """AG-41."""
        assert lines_of(b"\xe2\x82", b"\xac\n") == ["€"]

    def test_the_unterminated_last_line_is_reported_at_the_end(self):
        """AG-41."""
        assert lines_of(b"one\ntwo") == ["one", "two"]

    def test_nothing_written_is_no_line(self):
        """AG-41."""
        assert lines_of() == []
        assert lines_of(b"") == []

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
    def test_exactly_the_limit_is_not_cut(self, end):
        """AG-42."""
        assert lines_of(b"x" * 64 * KIB, end) == ["x" * 64 * KIB]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
    def test_one_byte_more_is_cut_and_marked(self, end):
        """AG-42: and the next line is unharmed."""
        lines = lines_of(b"x" * 64 * KIB, b"y", end or b"\n", b"next")
        assert lines == ["x" * 64 * KIB + "… [stderr line truncated]", "next"]

    def test_an_endless_line_costs_no_memory(self):
        """AG-42."""
        splitter = StderrLines(lambda _: None, Limits(stderr_line_bytes=100), name="a test")
        for _ in range(1_000):
            splitter.feed(b"x" * 1_000)
        assert len(splitter._partial) == 101
        splitter.close()

    def test_a_character_is_not_cut_in_half(self):
        """AG-42."""
        assert lines_of("€€\n".encode(), limits=Limits(stderr_line_bytes=4)) == ["€… [stderr line truncated]"]


class TestCallback:
    """What the callback may do."""

    def test_a_slow_callback_loses_the_oldest_lines(self):
        """They are counted, and feeding never waits."""
        entered, go_on = threading.Event(), threading.Event()
        lines: list[str] = []

        def slow(line: str) -> None:
            lines.append(line)
            entered.set()
            assert go_on.wait(10)

        splitter = StderrLines(slow, Limits(stderr_queue_lines=10), name="a test")
        splitter.feed(b"first\n")
        assert entered.wait(10)
        splitter.feed(b"".join(b"%d\n" % number for number in range(70)))
        splitter.feed(b"".join(b"%d\n" % number for number in range(70, 100)))
        assert splitter.dropped == 90
        splitter.close()
        go_on.set()
        assert splitter._thread is not None
        splitter._thread.join(10)
        assert lines == ["first", *(str(number) for number in range(90, 100))]

    def test_a_raising_callback_is_logged_ten_times(self, caplog):
        """And it gets every line all the same."""
        seen: list[str] = []

        def broken(line: str) -> None:
            seen.append(line)
            raise ValueError(f"cannot take {line}")

        with caplog.at_level(logging.DEBUG, logger="acprt.process"):
            splitter = StderrLines(broken, Limits(), name="pid 7")
            splitter.feed(b"".join(b"%d\n" % number for number in range(50)))
            splitter.close()
            assert splitter._thread is not None
            splitter._thread.join(10)
        assert len(seen) == 50
        assert len(caplog.records) == 10
        assert "on_stderr of pid 7 raised" in caplog.records[0].getMessage()
        assert "ValueError: cannot take 0" in caplog.records[0].getMessage()
        assert "not logged any more" in caplog.records[-1].getMessage()
        assert not any(record.exc_info for record in caplog.records)

    def test_not_even_an_exit_ends_the_delivery(self, caplog):
        """`sys.exit` in a callback, or what a test tool raises, ends neither the thread nor the lines."""
        seen: list[str] = []

        def leaves(line: str) -> None:
            seen.append(line)
            raise SystemExit(3)

        splitter = StderrLines(leaves, Limits(), name="a test")
        splitter.feed(b"one\ntwo\n")
        splitter.close()
        assert splitter._thread is not None
        splitter._thread.join(10)
        assert seen == ["one", "two"]

    def test_the_thread_cannot_hold_up_the_end_of_the_interpreter(self):
        """One daemon thread."""
        callers: set[threading.Thread] = set()
        splitter = StderrLines(lambda _: callers.add(threading.current_thread()), Limits(), name="a test")
        splitter.feed(b"one\ntwo\n")
        splitter.close()
        assert splitter._thread is not None
        splitter._thread.join(10)
        assert callers == {splitter._thread}
        assert splitter._thread.daemon

    def test_no_thread_is_started_for_nothing(self):
        """Most agents write nothing to stderr."""
        splitter = StderrLines(lambda _: None, Limits(), name="a test")
        splitter.close()
        assert splitter._thread is None

    def test_delivered_waits_for_the_last_line(self, run):
        """After the end of a connection the callback has seen everything, if it is not slow."""

        async def main():
            lines: list[str] = []
            splitter = StderrLines(lines.append, Limits(), name="a test")
            splitter.feed(b"".join(b"%d\n" % number for number in range(500)))
            splitter.close()
            await splitter.delivered(10)
            assert len(lines) == 500
            await splitter.delivered(10)

        run(main())

    def test_delivered_does_not_wait_for_a_stuck_callback(self, run):
        """Nothing is held up by it."""
        go_on = threading.Event()

        async def main():
            splitter = StderrLines(lambda _: go_on.wait(10), Limits(), name="a test")
            splitter.feed(b"one\ntwo\n")
            splitter.close()
            await splitter.delivered(0.01)
            return splitter

        splitter = run(main(), timeout=5)
        go_on.set()
        assert splitter._thread is not None
        splitter._thread.join(10)
        assert not splitter._thread.is_alive()
