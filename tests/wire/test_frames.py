"""What one line is: the classification table, line by line, and that reading never raises."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

import acprt
from acprt.wire.frames import (
    NO_PARAMS,
    BatchFrame,
    MalformedFrame,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    encode,
    encode_error,
    parse,
)
from tests.wire.frames_to_read import BOM, VALID, read


def kind_of(line: bytes) -> str:
    """The kind of frame in a word; for a malformed one whose line it is."""
    frame = parse(line)
    if isinstance(frame, MalformedFrame):
        return "bad reply" if frame.is_reply else "bad call" if frame.is_request else "bad"
    return type(frame).__name__.removesuffix("Frame").lower()


class TestClassification:
    """By the presence of keys (the table of section 2.3)."""

    @pytest.mark.parametrize(
        ("members", "kind"),
        [
            ('"id":1,"method":"m"', "request"),
            ('"method":"m"', "notification"),
            ('"id":1,"result":1', "response"),
            ('"id":1,"result":null', "response"),
            ('"id":1,"error":{"code":1,"message":"m"}', "response"),
            ('"id":null,"method":"m"', "request"),
            ('"id":null,"result":1', "response"),
            ('"method":""', "notification"),
            ('"method":"m","params":null', "notification"),
            ('"method":"m","params":[]', "notification"),
            ('"method":"m","params":{},"extra":1,"Result":2', "notification"),
            ('"id":1,"method":"m","result":1', "bad call"),
            ('"id":1,"method":"m","result":null', "bad call"),
            ('"id":1,"method":"m","error":null', "bad call"),
            ('"id":1,"method":"m","params":1', "bad call"),
            ('"id":null,"method":"m","params":1', "bad"),
            ('"method":"m","params":true', "bad"),
            ('"method":"m","params":"text"', "bad"),
            ('"method":1', "bad"),
            ('"method":null,"id":1', "bad"),
            ('"params":{},"id":1', "bad"),
            ('"params":{}', "bad"),
            ('"result":1', "bad reply"),
            ('"error":{"code":1,"message":"m"}', "bad reply"),
            ('"id":1,"result":1,"error":{"code":1,"message":"m"}', "bad reply"),
            ('"id":1,"error":null', "bad reply"),
            ('"id":1', "bad reply"),
            ('"id":1.5,"result":1', "bad reply"),
            ('"id":[1],"result":1', "bad reply"),
        ],
    )
    def test_what_a_line_is_follows_from_its_keys(self, members, kind):
        """FR-20, FR-21, FR-22, FR-23, FR-25, FR-26, ID-03, ID-04."""
        assert kind_of(f'{{"jsonrpc":"2.0",{members}}}'.encode()) == kind
        assert kind_of(f'{{{members},"jsonrpc":"2.0"}}'.encode()) == kind

    @pytest.mark.parametrize("line", [b"null", b"true", b"42", b'"text"', b"{}", b"[]", b"[ ]", b'{"a":1}'])
    def test_other_json_is_an_invalid_request(self, line):
        """FR-21, BA-07."""
        frame = read(MalformedFrame, line)
        assert (frame.error.code, frame.answer_id, frame.is_reply) == (-32600, None, False)

    @pytest.mark.parametrize(
        "version", ['"jsonrpc":"1.0",', '"jsonrpc":2.0,', '"jsonrpc":null,', '"JSONRPC":"2.0",', ""]
    )
    def test_another_version_is_an_invalid_request(self, version):
        """FR-21."""
        assert kind_of(f'{{{version}"id":1,"method":"m"}}'.encode()) == "bad call"
        assert kind_of(f'{{{version}"id":1,"result":1}}'.encode()) == "bad reply"

    def test_the_last_of_duplicate_keys_wins(self):
        """FR-14."""
        frame = parse(b'{"jsonrpc":"2.0","id":1,"method":"a","id":2,"method":"b"}')
        assert frame == RequestFrame(2, "b")

    @pytest.mark.parametrize("written", [r"a\/b", "a/b", r"\u0061/b"])
    def test_escapes_in_a_method_are_resolved(self, written):
        """FR-13."""
        assert parse(f'{{"jsonrpc":"2.0","method":"{written}"}}'.encode()) == NotificationFrame("a/b")

    @pytest.mark.parametrize("space", [b"", b" ", b"\t ", b"\r"])
    def test_space_around_the_value_is_accepted(self, space):
        """FR-08."""
        assert parse(space + VALID[0] + space) == RequestFrame(1, "m")
        assert isinstance(parse(space + VALID[5] + space), BatchFrame)

    def test_a_byte_order_mark_is_dropped(self):
        """FR-07: before an object and before an array."""
        assert parse(BOM + VALID[0]) == RequestFrame(1, "m")
        assert isinstance(parse(BOM + VALID[5]), BatchFrame)

    def test_a_line_of_byte_order_marks_is_malformed(self):
        """FR-07: however many there are."""
        assert kind_of(BOM * 100_000 + VALID[0]) == "bad call"

    def test_absent_null_and_given_params(self):
        """FR-24: absent and null are the same, everything else is kept as it came."""
        assert read(NotificationFrame, b'{"jsonrpc":"2.0","method":"m"}').params is NO_PARAMS
        assert read(NotificationFrame, b'{"jsonrpc":"2.0","method":"m","params":null}').params is NO_PARAMS
        assert (
            bytes(read(NotificationFrame, b'{"jsonrpc":"2.0","method":"m","params": { "a" : 1 } }').params)
            == b'{ "a" : 1 }'
        )

    def test_a_null_beside_the_other_counts_as_absent(self):
        """FR-29, DEC-22."""
        good = read(ResponseFrame, b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}')
        assert (good.error, bytes(good.result)) == (None, b'{"a":1}')
        failed = read(
            ResponseFrame,
            b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","more":1,"data":null},"result":null}',
        )
        assert failed.error == acprt.RpcError(1, "m")

    @pytest.mark.parametrize("code", [0, 1, -32000, 2**31, -(2**40)])
    def test_any_integer_is_an_error_code(self, code):
        """ER-06: also past 32 bits."""
        line = b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":""}}' % code
        assert read(ResponseFrame, line).error == acprt.RpcError(code, "")


class TestMalformed:
    """Whose line it is, whom it fails, and what its sender would be told."""

    @pytest.mark.parametrize(
        "line",
        [
            b"hello",
            b'{"a":1',
            b'{"a":1}{"b":2}',
            b'{"a":1,}',
            b'{"a":NaN}',
            b'{"a":Infinity}',
            b'{"a":"\t"}',
            b'{"a":"\x00"}',
            b'{"a":01}',
            b"{'a':1}",
            b'{"a":"\xff"}\xff',
            b"\xfe\xff",
            b"[1,2",
            b"[1]]",
            b'{"a":1e400}',
            b"[" * 100_000,
            b'{"a":' * 100_000,
        ],
    )
    def test_text_that_is_no_json_is_a_parse_error(self, line):
        """FR-10, FR-11, FR-12, FR-04."""
        frame = read(MalformedFrame, line)
        assert (frame.error.code, frame.error.message) == (-32700, "Parse error")
        assert (frame.answer_id, frame.is_request, frame.is_reply, frame.reply_id) == (None, False, False, UNSET)

    @pytest.mark.parametrize(
        "line", [b"x" * 1_000_000, "\u00e9".encode() * 500_000, b'{"jsonrpc":"' + b"A" * 1_000_000 + b'"}']
    )
    def test_the_error_repeats_a_bounded_part_of_the_line(self, line):
        """FR-06: an error answer is never an amplifier."""
        frame = read(MalformedFrame, line)
        assert frame.error.data["line"] == line.decode()[:1000]
        assert len(encode_error(None, frame.error)) < 8_000

    def test_what_stands_before_the_damage_tells_whose_line_it_is(self):
        """FR-10: an id that can be read is used."""
        call = read(MalformedFrame, b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":')
        assert (call.error.code, call.answer_id, call.is_request, call.reply_id) == (-32700, 7, True, UNSET)
        reply = read(MalformedFrame, b'{"jsonrpc":"2.0","id":7,"result":{"a":')
        assert (reply.error.code, reply.is_reply, reply.reply_id) == (-32700, True, 7)

    @pytest.mark.parametrize(
        "line",
        [b'{"jsonrpc":"2.0","id":7,', b'{"jsonrpc":"2.0","id":7 , ', b'{"jsonrpc":"2.0","id":7,"meth', b'{"id":7,\x01'],
    )
    def test_a_line_cut_behind_its_id_may_have_been_either(self, line):
        """FR-03, FR-27: it is answered like a call, and it fails a waiter like a reply: nobody is left waiting."""
        frame = read(MalformedFrame, line)
        assert (frame.error.code, frame.answer_id, frame.is_reply, frame.reply_id) == (-32700, 7, False, 7)

    @pytest.mark.parametrize("line", [b'{"id":7', b'{"id":"seven', b'{"id":7e', b'{"id":1,"method":"m","id":7'])
    def test_an_id_that_may_be_cut_is_only_used_when_something_follows(self, line):
        """FR-10: `7` at the cut may be the start of `77`; a parse error under a wrong id would fail another request."""
        assert read(MalformedFrame, line).answer_id is None

    @pytest.mark.parametrize("id", ["1.0", "true", "1e2", "9223372036854775808", "[1]", '{"a":1}', '"\\ud800"x'])
    def test_an_illegal_id_is_no_id(self, id):
        """ID-04."""
        frame = read(MalformedFrame, f'{{"jsonrpc":"2.0","id":{id},"method":"m","params":1}}'.encode())
        assert (frame.answer_id, frame.is_request, frame.reply_id) == (None, False, UNSET)

    @pytest.mark.parametrize(
        "error",
        ["null", '"text"', "[1,2]", "{}", '{"code":1}', '{"code":1.5,"message":"m"}', '{"code":"1","message":"m"}'],
    )
    def test_a_malformed_reply_names_the_request_it_fails(self, error):
        """FR-27, FR-30."""
        frame = read(MalformedFrame, f'{{"jsonrpc":"2.0","id":7,"error":{error}}}'.encode())
        assert (frame.is_reply, frame.reply_id) == (True, 7)

    def test_a_call_that_is_also_a_reply_fails_the_request_of_that_id(self):
        """FR-28."""
        frame = read(MalformedFrame, b'{"jsonrpc":"2.0","id":7,"method":"m","result":1}')
        assert (frame.is_request, frame.is_reply, frame.reply_id, frame.answer_id) == (True, False, 7, 7)

    def test_damage_inside_raw_params_does_not_hide_the_id(self):
        """FR-04."""
        frame = read(MalformedFrame, b'{"jsonrpc":"2.0","params":"\xff","id":7,"method":"m"}')
        assert (frame.error.code, frame.answer_id, frame.is_request) == (-32600, 7, True)

    def test_a_great_many_members_are_not_walked(self):
        """FR-10: a damaged line is looked at, not parsed."""
        assert read(MalformedFrame, b"{" + b'"a":1,' * 1_000 + b'"id":7,"method":"m"').answer_id is None


class TestBatches:
    """A non-empty array is a batch, each of its members a frame."""

    def test_members_are_frames_of_their_own(self):
        """BA-01."""
        frame = read(BatchFrame, VALID[5])
        assert [type(entry) for entry in frame.entries] == [RequestFrame, NotificationFrame, ResponseFrame]

    def test_invalid_members_keep_their_place_and_their_text(self):
        """CH-05, BA-04: nested arrays, scalars, null and empty objects are invalid members."""
        members = [
            VALID[0],
            b"1",
            b"[ 1 ]",
            b"null",
            b"{}",
            b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}',
            VALID[3],
        ]
        frame = read(BatchFrame, b"[" + b" , ".join(members) + b"]")
        malformed = [entry for entry in frame.entries[1:6] if isinstance(entry, MalformedFrame)]
        assert isinstance(frame.entries[0], RequestFrame)
        assert isinstance(frame.entries[6], ResponseFrame)
        assert [entry.raw for entry in malformed] == members[1:6]
        assert [entry.is_reply for entry in malformed] == [False, False, False, False, True]

    def test_a_batch_inside_a_batch_is_an_invalid_member(self):
        """BA-04."""
        (member,) = read(BatchFrame, b"[" + VALID[5] + b"]").entries
        assert isinstance(member, MalformedFrame)
        assert (member.error.code, member.answer_id, member.is_reply) == (-32600, None, False)

    def test_a_batch_of_too_many_members_is_one_invalid_request(self):
        """BA-04, FR-06: a line of `1,1,1,…` must not earn an answer a hundred times its size."""
        assert isinstance(parse(b"[" + b"1," * 9_999 + b"1]"), BatchFrame)
        frame = read(MalformedFrame, b"[" + b"1," * 10_000 + b"1]")
        assert (frame.error.code, frame.answer_id, frame.is_reply) == (-32600, None, False)
        assert "10001 members" in frame.error.data["error"]

    def test_a_lone_surrogate_in_a_batch_is_mended(self):
        """FR-11."""
        frame = parse(rb'[{"jsonrpc":"2.0","method":"\ud800"}]')
        assert frame == BatchFrame([NotificationFrame("\ufffd")])


class TestNeverRaises:
    """Every text yields a frame, and every frame can be written."""

    @given(st.binary(max_size=300))
    def test_any_bytes(self, line):
        """CH-02."""
        encode(parse(line))

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "x"]),
                    inner | st.just("2.0"),
                    max_size=6,
                )
            ),
            max_leaves=20,
        )
    )
    def test_any_json(self, value):
        """CH-02."""
        encode(parse(msgspec.json.encode(value)))

    @given(line=st.sampled_from(VALID), seed=st.integers(0, 2**32))
    @settings(max_examples=300)
    def test_valid_lines_with_damage(self, line, seed):
        """CH-02: bytes changed, lost, doubled, cut."""
        damage = random.Random(seed)
        text = bytearray(line)
        for _ in range(damage.randint(1, 4)):
            place = damage.randrange(len(text) + 1)
            match damage.randrange(4):
                case 0:
                    text[place : place + 1] = bytes([damage.randrange(256)])
                case 1:
                    del text[place : place + damage.randint(1, 5)]
                case 2:
                    text[place:place] = text[place : place + damage.randint(1, 9)]
                case 3:
                    del text[place:]
        frame = parse(bytes(text))
        encode(frame)
        if isinstance(frame, MalformedFrame):
            encode_error(frame.answer_id, frame.error)

    @pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"jsonrpc":"2.0","id":1,"method":"m","params":[' + b"["])
    @pytest.mark.parametrize("depth", [100, 900, 1_000, 1_100, 5_000, 50_000])
    def test_nesting_of_any_depth(self, opening, depth):
        """FR-12."""
        encode(parse(opening[:-1] + opening[-1:] * depth))
        closing = b"]" if opening.endswith(b"[") else b"}"
        encode(parse(opening * depth + b"1" + closing * depth))
