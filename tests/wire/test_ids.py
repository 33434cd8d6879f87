"""Request ids: which values are legal, and that unequal ones never meet."""

from __future__ import annotations

import msgspec
import pytest

from acprt.wire.frames import RequestFrame, ResponseFrame, encode_response, parse
from acprt.wire.ids import is_request_id, request_key

LEGAL = [None, 0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), "", "1", "init-1", "\u00e9\U0001f600", "null"]
ILLEGAL = [True, False, 1.0, 1.5, 1e2, 2**63, -(2**63) - 1, [], [1], {}, {"id": 1}, b"1", "\ud800"]


class TestLegality:
    """Null, a signed 64-bit integer, a string."""

    @pytest.mark.parametrize("value", LEGAL)
    def test_legal_ids(self, value):
        """ID-02."""
        assert is_request_id(value)
        assert request_key(value) == value

    @pytest.mark.parametrize("value", ILLEGAL)
    def test_illegal_ids(self, value):
        """ID-04: a string that cannot be written as UTF-8 cannot be echoed, so it is none either."""
        assert not is_request_id(value)
        with pytest.raises(ValueError, match="not a JSON-RPC request id"):
            request_key(value)

    def test_a_number_and_its_text_are_different_keys(self):
        """ID-05."""
        assert request_key(5) != request_key("5")

    @pytest.mark.parametrize("value", LEGAL)
    def test_legal_ids_survive_the_wire(self, value):
        """ID-02, ID-05: read and written again they are the same value of the same type."""
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": value, "method": "m"})
        frame = parse(line)
        assert isinstance(frame, RequestFrame)
        assert (type(frame.id), frame.id) == (type(value), value)
        answer = parse(bytes(encode_response(frame.id, None)))
        assert isinstance(answer, ResponseFrame)
        assert (type(answer.id), answer.id) == (type(value), value)
