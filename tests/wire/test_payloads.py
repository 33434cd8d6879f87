"""Params and results become values when somebody claims them: what they become, and what the errors say."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from msgspec import Raw

import acprt
from acprt.wire.frames import NO_PARAMS
from acprt.wire.payloads import Decoder, decode_params, decode_result, decoder_for


class Point(msgspec.Struct, rename="camel"):
    x_value: int
    label: str = "none"


class Kind(msgspec.Struct):
    kind: Literal["a"]


class Pair:
    """A type that decodes itself: two numbers as an array, or as text with a comma in it."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers

    @staticmethod
    def __acprt_decoder__(_type: object) -> Decoder:
        strict, text = msgspec.json.Decoder(list[int]), msgspec.json.Decoder(str)
        return Decoder(
            lambda raw: Pair(strict.decode(raw)),
            lambda raw: Pair([int(each) for each in text.decode(raw).split(",")]),
        )


TYPED = decoder_for(Point)


def refusal(decoder, text: bytes) -> acprt.RpcError:
    with pytest.raises(acprt.RpcError) as caught:
        decode_params(decoder, Raw(text))
    return caught.value


class TestParams:
    """What a handler gets."""

    def test_typed_params_become_the_type(self):
        """HC-05."""
        assert decode_params(TYPED, Raw(b'{"xValue":1}')) == Point(x_value=1)

    def test_absent_params_are_an_empty_object_to_a_type(self):
        """FR-24: a message without required members needs none on the wire."""
        assert decode_params(decoder_for(dict), NO_PARAMS) == {}
        with pytest.raises(acprt.RpcError) as caught:
            decode_params(TYPED, NO_PARAMS)
        assert caught.value.code == -32602
        assert caught.value.data["json"] is None

    def test_absent_params_are_none_to_an_untyped_handler(self):
        """FR-24."""
        assert decode_params(None, NO_PARAMS) is None

    def test_unknown_members_are_ignored(self):
        """FR-31."""
        assert decode_params(TYPED, Raw(b'{"xValue":1,"_meta":{"a.b":1},"new":[]}')) == Point(x_value=1)

    def test_positional_params_do_not_fill_a_struct(self):
        """FR-30."""
        assert refusal(TYPED, b"[1]").code == -32602

    def test_integers_past_64_bits_are_exact(self):
        """FR-15."""
        assert decode_params(None, Raw(b"[12345678901234567890123,18446744073709551615]")) == [
            12345678901234567890123,
            18446744073709551615,
        ]

    def test_a_lone_surrogate_becomes_the_replacement_character(self):
        """FR-11."""
        assert decode_params(None, Raw(rb'["\ud83d"]')) == ["\ufffd"]
        assert decode_params(TYPED, Raw(rb'{"xValue":1,"label":"\ud83d"}')) == Point(1, "\ufffd")


class TestRefusals:
    """The shape of an error is that of HC-05; its size is bounded."""

    def test_the_wrong_shape_is_invalid_params(self):
        """HC-05: with the reason, the JSON and the phase."""
        error = refusal(TYPED, b'{"xValue":"one"}')
        assert (error.code, error.message) == (-32602, "Invalid params")
        assert error.data["json"] == {"xValue": "one"}
        assert error.data["phase"] == "deserialization"
        assert "$.xValue" in error.data["error"]

    @pytest.mark.parametrize("text", [b'{"xValue":1,"label":"\xff"}', b'{"xValue":1e400}'])
    @pytest.mark.parametrize("decoder", [TYPED, None])
    def test_text_that_is_no_json_is_a_parse_error(self, decoder, text):
        """FR-04, FR-11: damage inside params is found when they are read."""
        assert refusal(decoder, text).code == -32700

    def test_a_value_that_names_an_error_of_the_parser_is_still_the_wrong_shape(self):
        """HC-05."""
        assert refusal(decoder_for(Kind), b'{"kind":"Number out of range"}').code == -32602

    def test_nesting_without_end_is_a_parse_error(self):
        """FR-12."""
        error = refusal(None, b"[" * 20_000 + b"]" * 20_000)
        assert (error.code, error.data["error"]) == (-32700, "nested too deeply")

    def test_small_json_is_repeated_as_a_value_and_large_as_its_start(self):
        """PY-51: an error never carries the message back."""
        assert refusal(TYPED, b"[1,2]").data["json"] == [1, 2]
        long = refusal(TYPED, b'["' + "\u00e9".encode() * 100_000 + b'"]').data["json"]
        assert long == '["' + "\u00e9" * 998

    def test_the_reason_is_bounded(self):
        """PY-51: msgspec repeats the values that it refuses."""
        assert len(refusal(decoder_for(Kind), b'{"kind":"' + b"x" * 100_000 + b'"}').data["error"]) <= 500


class TestResults:
    """A result that does not decode is a local failure."""

    def test_a_result_becomes_its_type_or_plain_values(self):
        """SR-02."""
        assert decode_result(TYPED, Raw(b'{"xValue":2,"label":"l"}')) == Point(2, "l")
        assert decode_result(None, Raw(b"[null,1]")) == [None, 1]

    def test_a_result_of_another_shape_is_an_internal_error(self):
        """SR-03: nothing goes on the wire, so it is no parse error either."""
        with pytest.raises(acprt.RpcError) as caught:
            decode_result(TYPED, Raw(b'["x"]'))
        assert caught.value.code == -32603
        assert caught.value.data["json"] == ["x"]
        assert caught.value.data["phase"] == "deserialization"

    def test_a_damaged_result_is_an_internal_error(self):
        """FR-04."""
        with pytest.raises(acprt.RpcError) as caught:
            decode_result(None, Raw(b'"\xff"'))
        assert caught.value.code == -32603


class TestTypesThatDecodeThemselves:
    """A class may bring its decoder, with a second attempt for what the first refuses."""

    @pytest.mark.parametrize("type_", [Pair, Pair | None, list[Pair]], ids=str)
    def test_a_class_is_asked_wherever_it_stands_in_the_type(self, type_):
        assert decoder_for(type_).decode_again is not None
        assert decode_params(decoder_for(type_), Raw(b"[1,2]")).numbers == [1, 2]

    def test_the_second_attempt_reads_what_the_first_refuses(self):
        assert decode_params(decoder_for(Pair), Raw(b'"1,2"')).numbers == [1, 2]
        assert decode_result(decoder_for(Pair), Raw(b'"3"')).numbers == [3]

    def test_what_both_refuse_is_an_error_that_tells_of_the_second(self):
        error = refusal(decoder_for(Pair), b'{"a":1}')
        assert error.code == -32602
        assert "Expected `str`" in error.data["error"]

    def test_other_types_have_one_attempt(self):
        assert TYPED.decode_again is None
