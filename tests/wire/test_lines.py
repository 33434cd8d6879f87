"""The line splitter: what a line is, however the bytes come, and what is left of one that is too long."""

from __future__ import annotations

import itertools
import platform
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acprt.wire.lines import Line, LineSplitter, OversizedLine

KIB = 1024
MIB = 1024 * KIB
ROOMY = 64 * MIB


def split(*pieces: bytes, limit: int = ROOMY) -> list[Line]:
    """The lines of these pieces, the unterminated last one included."""
    splitter = LineSplitter(limit)
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.finish()


def expected(data: bytes, limit: int) -> list[Line]:
    """The same by the definition, without a thought for speed or chunks."""
    *terminated, rest = data.split(b"\n")
    whole = [line.removesuffix(b"\r") for line in terminated + ([rest] if rest else [])]
    return [
        line if len(line) <= limit else OversizedLine(line[: 4 * KIB], line[-256:], len(line), limit) for line in whole
    ]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[start:stop] for start, stop in itertools.pairwise(bounds)] or [b""]


class TestWhatALineIs:
    """LF ends a line, and nothing else does."""

    def test_lf_ends_a_line(self):
        """FR-01."""
        assert split(b"one\ntwo\n") == [b"one", b"two"]

    def test_one_cr_before_lf_is_removed(self):
        """FR-01: one, not all of them."""
        assert split(b"one\r\ntwo\r\r\n") == [b"one", b"two\r"]

    def test_a_cr_that_came_before_its_lf_is_removed_once(self):
        """FR-01: a write may end between the two; the line is the same."""
        assert split(b"one\r", b"\n") == [b"one"]
        assert split(b"one\r\r", b"\n\r\n") == [b"one\r", b""]

    def test_a_lone_cr_is_no_separator(self):
        """FR-01."""
        assert split(b"one\rtwo\n") == [b"one\rtwo"]

    @pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
    def test_other_line_separators_stay_inside(self, separator):
        """FR-01: they are legal in a JSON string."""
        line = f"before{separator}after".encode()
        assert split(line + b"\n") == [line]

    def test_an_empty_line_is_a_line(self):
        """FR-02: whether it means anything is not decided here."""
        assert split(b"\n\r\n \n") == [b"", b"", b" "]

    def test_the_unterminated_last_line_is_a_line(self):
        """FR-03."""
        assert split(b"one\ntwo") == [b"one", b"two"]
        assert split(b"one\r") == [b"one"]

    def test_nothing_is_left_after_a_terminated_line(self):
        """FR-03."""
        splitter = LineSplitter(ROOMY)
        assert splitter.feed(b"one\n") == [b"one"]
        assert splitter.finish() == []

    def test_finishing_twice_gives_nothing_twice(self):
        """FR-03."""
        splitter = LineSplitter(ROOMY)
        splitter.feed(b"one")
        assert splitter.finish() == [b"one"]
        assert splitter.finish() == []


class TestChunks:
    """How bytes are cut into reads is no business of the lines."""

    def test_many_lines_in_one_read(self):
        """FR-01."""
        assert split(b"a\nb\nc\n") == [b"a", b"b", b"c"]

    def test_one_line_byte_by_byte(self):
        """FR-01."""
        line = '{"text":"h\u00e9llo \U0001f600"}'.encode()
        assert split(*(bytes([byte]) for byte in line + b"\r\n")) == [line]

    def test_a_read_may_end_inside_a_character(self):
        """FR-01."""
        text = "\U0001f600".encode()
        for place in range(len(text) + 1):
            assert split(text[:place], text[place:] + b"\n") == [text]

    @given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 10_000), max_size=20))
    def test_any_bytes_in_any_chunks_give_the_same_lines(self, data, places):
        """FR-01, FR-03."""
        assert split(*cut(data, places)) == expected(data, ROOMY)

    @given(
        pieces=st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"bcd", b"e" * 9, b"f" * 40]), max_size=30),
        places=st.lists(st.integers(0, 10_000), max_size=20),
        limit=st.integers(0, 24),
    )
    @example(pieces=[b"\r", b"\r", b"\n", b"\r\n"], places=[2], limit=24)
    @example(pieces=[b"e" * 9, b"a", b"\r", b"\n"], places=[9, 10, 11], limit=9)
    @example(pieces=[b"e" * 9, b"\r", b"\r\n"], places=[10], limit=9)
    def test_any_chunks_give_the_same_over_long_lines(self, pieces, places, limit):
        """FR-05: also their sizes and what is kept of them."""
        data = b"".join(pieces)
        assert split(*cut(data, places), limit=limit) == expected(data, limit)

    @given(size=st.integers(4_000, 9_000), step=st.integers(1, 5_000), limit=st.integers(1, 8_000))
    def test_any_chunks_keep_the_same_head_and_tail(self, size, step, limit):
        """FR-05: for lines longer than what is kept of them."""
        data = (b"0123456789abcdef!" * 600)[:size] + b"\r\nnext\n"
        pieces = [data[start : start + step] for start in range(0, len(data), step)]
        assert split(*pieces, limit=limit) == expected(data, limit)


class TestCeiling:
    """A line past the ceiling costs itself, not its neighbours and not memory."""

    def test_a_line_of_exactly_the_limit_passes(self):
        """FR-05: its terminator does not count, a CR before it neither."""
        for terminator in (b"\n", b"\r\n"):
            assert split(b"x" * 10 + terminator, limit=10) == [b"x" * 10]
            assert split(b"x" * 5, b"x" * 5 + terminator[:1], terminator[1:], limit=10) == [b"x" * 10]

    def test_one_byte_more_is_reported_with_its_size(self):
        """FR-05."""
        assert split(b"x" * 11 + b"\n", limit=10) == [OversizedLine(b"x" * 11, b"x" * 11, 11, 10)]

    def test_the_lines_around_it_are_unharmed(self):
        """FR-05."""
        before, long, after = split(b"before\n", b"x" * 3 * MIB, b"x\nafter\n", limit=MIB)
        assert (before, after) == (b"before", b"after")
        assert isinstance(long, OversizedLine)
        assert (long.size, long.limit) == (3 * MIB + 1, MIB)

    def test_its_head_and_its_tail_are_kept(self):
        """FR-05: an id stands first or last in most messages."""
        (line,) = split(b'{"id":7,', b"x" * MIB, b',"id":8}\n', limit=KIB)
        assert isinstance(line, OversizedLine)
        assert line.head.startswith(b'{"id":7,x')
        assert line.tail.endswith(b'x,"id":8}')

    def test_an_over_long_last_line_is_reported_too(self):
        """FR-03, FR-05."""
        assert split(b"x" * 20, b"y", limit=10) == [OversizedLine(b"x" * 20 + b"y", b"x" * 20 + b"y", 21, 10)]

    def test_the_rest_of_an_over_long_line_is_not_kept(self):
        """FR-05: memory stays at the limit, however long the line gets."""
        splitter = LineSplitter(MIB)
        piece = b"x" * 64 * KIB
        tracemalloc.start()
        try:
            for _ in range(16 * 64):  # 64 MiB
                assert splitter.feed(piece) == []
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * MIB
        (line,) = splitter.feed(b"\n")
        assert isinstance(line, OversizedLine)
        assert line.size == 64 * MIB

    def test_a_line_that_comes_in_crumbs_costs_little_more_than_its_size(self):
        """FR-05: an object for each read would cost forty times as much."""
        splitter = LineSplitter(ROOMY)
        tracemalloc.start()
        try:
            for _ in range(100_000):
                splitter.feed(b"xy")
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held < 300_000
        assert splitter.feed(b"\n") == [b"xy" * 100_000]


class _CountingBytes(bytearray):
    """A buffer that counts how many bytes were put into it or taken out of it."""

    moved = 0

    def __iadd__(self, other):  # type: ignore[misc]  # narrower than bytearray's, as wide as its one caller needs
        type(self).moved += len(other)
        return super().__iadd__(other)

    def __bytes__(self):
        type(self).moved += len(self)
        return bytes(bytearray(self))


class TestLinearTime:
    """Twice the input costs twice the work."""

    @pytest.mark.parametrize("chunk", [1, 7, 1000])
    def test_bytes_are_copied_a_fixed_number_of_times(self, chunk, monkeypatch):
        """FR-05: a long line is not copied again with every read of it."""
        monkeypatch.setattr("acprt.wire.lines.bytearray", _CountingBytes, raising=False)
        per_byte = []
        for size in (32 * KIB, 128 * KIB):
            _CountingBytes.moved = 0
            splitter = LineSplitter(ROOMY)
            for start in range(0, size, chunk):
                splitter.feed(b"x" * min(chunk, size - start))
            assert splitter.feed(b"\n") == [b"x" * size]
            per_byte.append(_CountingBytes.moved / size)
        assert per_byte[0] > 0
        assert max(per_byte) <= 2.0


@pytest.mark.parametrize("size", [4095, 4096, 4097, 70_000])
def test_a_large_chunk_is_split_wherever_its_ends_of_line_are(size):
    """FR-01: at its start, in its middle, at its end, or nowhere; what a split costs changes with the size."""
    part = b"x" * size
    splitter = LineSplitter(1 << 20)
    assert splitter.feed(part) == []
    assert splitter.feed(b"\n" + part) == [part]
    assert splitter.feed(part + b"\n") == [part + part]
    assert splitter.feed(part + b"\n" + part + b"\n\n" + part) == [part, part, b""]
    assert splitter.finish() == [part]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="counts what glibc gives back")
class TestMemory:
    """What a long line leaves behind serves the next one."""

    CODE = """
import resource
from acprt.wire.lines import LineSplitter

splitter = LineSplitter(1 << 30)

def message():
    for _ in range(16):
        splitter.feed(b"".ljust(65536, b"x"))
    (line,) = splitter.feed(b"\\n")
    text = line.decode()
    answer = text.encode()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    message()
before = faults()
for _ in range(10):
    message()
print(faults() - before)
"""

    def test_lines_of_a_megabyte_fault_in_no_pages(self):
        """bench-core w4: they were some 900 for each line, which cost more than to read it."""
        done = subprocess.run([sys.executable, "-c", self.CODE], timeout=30, capture_output=True, check=True)
        assert int(done.stdout) < 1_000
