"""Text that msgspec refuses although peers send it: what is mended, and that nothing else is touched."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acprt.wire.repair import repair

BOM = b"\xef\xbb\xbf"


class TestLoneSurrogates:
    """JavaScript cuts strings in the middle of a pair; what is left of the pair becomes U+FFFD."""

    @pytest.mark.parametrize(
        ("escaped", "mended"),
        [
            (r"\ud800", r"\ufffd"),
            (r"\udc00", r"\ufffd"),
            (r"\uD83D", r"\ufffd"),
            (r"a\ud83d", r"a\ufffd"),
            (r"\ude00z", r"\ufffdz"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\ud83d\ude00\ude00", r"\ud83d\ude00\ufffd"),
            (r"\ude00\ud83d", r"\ufffd\ufffd"),
            (r"\ud83dx\ude00", r"\ufffdx\ufffd"),
            (r"\ud83d\n\ude00", r"\ufffd\n\ufffd"),
            (r"\ud83d\u0041", r"\ufffd\u0041"),
            (r"\\\ud800", r"\\\ufffd"),
        ],
    )
    def test_a_lone_half_becomes_the_replacement_character(self, escaped, mended):
        """FR-11: in any position, beside whole pairs and other escapes."""
        assert repair(f'"{escaped}"'.encode()) == f'"{mended}"'.encode()

    @pytest.mark.parametrize(
        "text", [r"\ud83d\ude00", r"\uD83D\uDE00", r"\\ud800", r"\\\\udc00", r"\n", r"\u0041", "plain"]
    )
    def test_everything_else_stays_as_it_is(self, text):
        """FR-11: whole pairs, and an escaped backslash before what only looks like an escape."""
        assert repair(f'"{text}"'.encode()) is None

    def test_what_looks_like_a_pair_behind_an_escaped_backslash_is_a_lone_half(self):
        """FR-11: the first of the two is plain text."""
        assert repair(rb'"\\ud83d\ude00"') == rb'"\\ud83d\ufffd"'

    @given(st.text(st.characters(exclude_categories=())))
    def test_mended_strings_are_readable_and_otherwise_equal(self, text):
        """FR-11: any string a JSON writer with UTF-16 inside can produce."""
        line = json.dumps(text).encode()
        readable = repair(line) or line
        assert msgspec.json.decode(readable) == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @given(st.lists(st.sampled_from([b"\\", b"u", b"d83d", b"DE00", b"\\ud83d", b"\\ude00", b'"', b"x"])).map(b"".join))
    def test_mended_text_has_nothing_left_to_mend(self, text):
        """FR-11: so nobody asks twice, and no text can make the parser go round in circles."""
        mended = repair(text)
        assert mended is None or repair(mended) is None


class TestByteOrderMark:
    """One at the start of a line is dropped."""

    def test_one_is_dropped(self):
        """FR-07."""
        assert repair(BOM + b"{}") == b"{}"

    def test_two_are_garbage(self):
        """FR-07."""
        assert repair(BOM + BOM + b"{}") is None

    def test_one_inside_is_part_of_a_string(self):
        """FR-07."""
        assert repair(b'"' + BOM + b'"') is None

    def test_it_is_dropped_along_with_lone_surrogates(self):
        """FR-07, FR-11."""
        assert repair(BOM + rb'"\ud800"') == rb'"\ufffd"'
