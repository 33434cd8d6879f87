"""Over-long lines: whose request they fail, whom they may be answered to, and what the error names."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from acprt.wire.frames import MalformedFrame, encode, encode_error, parse
from acprt.wire.lines import LineSplitter

LIMIT = 10_000
FILLER = '"' + "x" * 3 * LIMIT + '"'


def over_long(text: str) -> MalformedFrame:
    """What becomes of a line over the limit, read through the splitter."""
    (line,) = LineSplitter(LIMIT).feed(text.encode() + b"\n")
    frame = parse(line)
    assert isinstance(frame, MalformedFrame)
    return frame


class TestOverLongLines:
    """One request fails, by name; the id is read from what is kept of the line."""

    @pytest.mark.parametrize(
        "text",
        [
            '{"jsonrpc":"2.0","id":7,"result":' + FILLER + "}",
            '{"id":7,"jsonrpc":"2.0","result":{"a":[' + FILLER + "]}}",
            '{"jsonrpc":"2.0","result":' + FILLER + ',"id":7}',
            '{"result":' + FILLER + ', "id" : 7 } ',
            '{ "error" : {"code":1,"message":' + FILLER + '},"jsonrpc":"2.0","id":7}',
        ],
    )
    def test_an_over_long_reply_fails_its_request(self, text):
        """FR-05: wherever the id stands."""
        frame = over_long(text)
        assert (frame.is_reply, frame.is_request, frame.reply_id) == (True, False, 7)

    @pytest.mark.parametrize(
        "text",
        [
            '{"jsonrpc":"2.0","id":7,"method":"m","params":' + FILLER + "}",
            '{"jsonrpc":"2.0","method":"m","params":' + FILLER + ',"id":7}',
            '{"method":"m","params":[' + FILLER + '],"id":7}',
        ],
    )
    def test_an_over_long_request_is_answered_under_its_id(self, text):
        """FR-05."""
        frame = over_long(text)
        assert (frame.is_request, frame.answer_id, frame.reply_id) == (True, 7, UNSET)
        assert frame.error.code == -32600

    def test_the_id_in_front_is_trusted_first(self):
        """FR-05: the end of a line that is damaged may be the end of anything."""
        assert over_long('{"id":7,"method":"m","params":{"a":' + FILLER + ',"id":8}').answer_id == 7

    def test_a_string_id_at_the_end_is_read_whole(self):
        """FR-05, ID-05."""
        assert over_long('{"result":' + FILLER + r',"id":"a\"}b"}').reply_id == 'a"}b'

    def test_an_over_long_notification_has_no_id(self):
        """FR-05: an id inside its params is none of its own."""
        for params in ('{"id":7,"a":' + FILLER + "}", '{"a":' + FILLER + ',"id":7}'):
            frame = over_long('{"jsonrpc":"2.0","method":"m","params":' + params + "}")
            assert (frame.answer_id, frame.is_request, frame.is_reply, frame.reply_id) == (None, False, False, UNSET)

    @pytest.mark.parametrize("text", [FILLER, "[" + FILLER + "]", "x" * 3 * LIMIT, '{"id":' + FILLER + "}"])
    def test_rubbish_has_no_id(self, text):
        """FR-05."""
        frame = over_long(text)
        assert (frame.answer_id, frame.is_request, frame.is_reply, frame.reply_id) == (None, False, False, UNSET)

    @pytest.mark.parametrize("id", [r'"\ud800"', "1.5", "true", "9223372036854775808"])
    def test_an_illegal_id_is_no_id(self, id):
        """ID-04: a lone surrogate could not be written back."""
        for text in (f'{{"id":{id},"method":"m","params":{FILLER}}}', f'{{"method":"m","params":{FILLER},"id":{id}}}'):
            frame = over_long(text)
            assert (frame.answer_id, frame.is_request) == (None, False)

    def test_the_error_names_size_limit_and_option(self):
        """FR-05."""
        text = '{"id":7,"method":"m","params":' + FILLER + "}"
        error = over_long(text).error
        assert error.data["size"] == len(text)
        assert error.data["limit"] == LIMIT
        assert error.data["option"] == "Limits.line_bytes"
        assert error.data["reason"] == "line_too_long"
        for named in (str(len(text)), str(LIMIT), "line_bytes"):
            assert named in str(error)

    def test_its_head_is_what_a_log_shows(self):
        """FR-06."""
        assert over_long("y" * 3 * LIMIT).excerpt() == "y" * 200

    @given(st.text(st.sampled_from('{}[]":,\\ud8id0123e.-methodresult'), max_size=40), st.integers(0, 40))
    def test_any_over_long_line_can_be_answered(self, text, filler_at):
        """CH-02: whatever is read out of it is fit for the wire."""
        frame = over_long(text[:filler_at] + "z" * 2 * LIMIT + text[filler_at:])
        msgspec.json.decode(encode_error(frame.answer_id, frame.error))
        encode(frame)


class TestExcerpt:
    """What a log shows of a bad line."""

    def test_it_is_short_and_readable(self):
        """FR-06: in characters, never torn, whatever the bytes are."""
        for line, length, shown in (
            ("\u00e9".encode() * 5_000, 200, "\u00e9" * 200),
            (b"\xff" * 5_000, 50, "\ufffd" * 50),
            (b"short", 200, "short"),
        ):
            frame = parse(line)
            assert isinstance(frame, MalformedFrame)
            assert frame.excerpt(length) == shown
