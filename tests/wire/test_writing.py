"""Frames on their way out: member order, one line to a message, and a relay that changes nothing it need not."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from msgspec import Raw

import acprt
from acprt.wire.frames import (
    NO_PARAMS,
    MalformedFrame,
    NotificationFrame,
    RequestFrame,
    encode,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    parse,
)
from acprt.wire.lines import LongLine
from tests.wire.frames_to_read import BOM, VALID, read


class TestWriting:
    """Member order, spacing and the one line to a message."""

    def test_member_order_and_compact_form(self):
        """OU-11."""
        assert encode_request(1, "m", {"b": 1, "a": "\u00e9"}) == (
            '{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1,"a":"\u00e9"}}'.encode()
        )
        assert encode_notification("m", [1]) == b'{"jsonrpc":"2.0","method":"m","params":[1]}'
        assert encode_response("i", None) == b'{"jsonrpc":"2.0","id":"i","result":null}'
        assert encode_error(None, acprt.RpcError(1, "m", {"d": 1})) == (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":{"d":1}}}'
        )

    def test_no_params_is_no_member(self):
        """OU-08: the same for what came without params and is sent on."""
        for nothing in (None, NO_PARAMS):
            assert encode_request(1, "m", nothing) == b'{"jsonrpc":"2.0","id":1,"method":"m"}'
            assert encode_notification("m", nothing) == b'{"jsonrpc":"2.0","method":"m"}'
        assert encode_response(1, NO_PARAMS) == b'{"jsonrpc":"2.0","id":1,"result":null}'

    def test_no_data_is_no_member(self):
        """RS-11."""
        assert encode_error(1, acprt.RpcError(-1, "")) == b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}'

    @pytest.mark.parametrize("value", [0, "text", False, None, [], {}, 1.5])
    def test_any_value_is_a_result(self, value):
        """RS-04, CH-09."""
        assert msgspec.json.decode(bytes(encode_response(1, value)))["result"] == value

    def test_raw_json_of_the_user_is_put_on_one_line(self):
        """OU-12: a message is a line, whatever it was laid out like."""
        pretty = Raw(b'{\n  "a": [1,\r\n 2],\n  "b": "x\\ny z"\n}')
        small = b'{"a":[1,2],"b":"x\\ny z"}'
        assert encode_request(1, "m", pretty) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + small + b"}"
        assert encode_notification("m", pretty) == b'{"jsonrpc":"2.0","method":"m","params":' + small + b"}"
        assert encode_response(1, {"r": pretty}) == b'{"jsonrpc":"2.0","id":1,"result":{"r":' + small + b"}}"
        assert encode_error(1, acprt.RpcError(1, "", pretty)).endswith(b'"data":' + small + b"}}")

    @pytest.mark.parametrize(
        "method", ["100%", "%b%s%(a)s%%", "a/b", "", '"\\', "\n", "\u00e9\U0001f600", "m%" * 1_000]
    )
    def test_any_text_is_a_method(self, method):
        """OU-11, FR-26: also one that looks like a format."""
        params = Raw(b'{"a":"%b"}')
        assert encode_request(1, method, params) == encode_request(1, method, {"a": "%b"})
        assert msgspec.json.decode(bytes(encode_request(1, method, params))) == {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {"a": "%b"},
        }
        assert read(NotificationFrame, bytes(encode_notification(method, params))).method == method
        assert read(RequestFrame, bytes(encode_request("%s", method, None))) == RequestFrame("%s", method)
        assert read(NotificationFrame, bytes(encode_notification(method, None))) == NotificationFrame(method)

    @pytest.mark.parametrize("method", ["m", "100%", "%b%s%(a)s%%", '"params":', "}"])
    def test_a_long_text_makes_the_same_line(self, method):
        """In parts, so that it is not copied once more."""
        text, mark = "x" * 100_000, "~"
        for encode_it in (
            lambda text: encode_request("%s", method, [text, 1]),
            lambda text: encode_notification(method, {"a": text}),
            lambda text: encode_response("%b", {"r": [text]}),
        ):
            line = encode_it(text)
            assert isinstance(line, LongLine)
            assert bytes(line) == bytes(encode_it(mark)).replace(mark.encode(), text.encode())
            assert len(line) == len(bytes(line))

    def test_long_raw_json_of_the_user_is_put_on_one_line(self):
        """OU-12, OU-13: as a short one is."""
        text = b"x" * 100_000
        assert (
            encode_notification("m", Raw(b'[\n"%b"]' % text))
            == b'{"jsonrpc":"2.0","method":"m","params":["%b"]}' % text
        )
        with pytest.raises(msgspec.MsgspecError):
            encode_notification("m", Raw(b'{\n"%b":\n}' % text))

    def test_long_methods_are_not_kept(self):
        """M-05: a peer whose methods are relayed could fill the memory with their names."""
        tracemalloc.start()
        try:
            for number in range(50):
                encode_request(1, f"{number}" + "m" * 100_000, [])
                encode_notification(f"{number}" + "m" * 100_000, [])
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 1_000_000

    def test_raw_text_that_would_tear_the_line_is_refused(self):
        """OU-12, OU-13."""
        with pytest.raises(msgspec.MsgspecError):
            encode_notification("m", Raw(b'{\n"a":\n}'))


class TestRelaying:
    """Any frame can be written again."""

    @pytest.mark.parametrize("line", VALID)
    def test_a_valid_line_is_written_as_it_came(self, line):
        """CH-02, CH-07: payloads are not touched."""
        assert encode(parse(line)) == line

    def test_a_valid_message_is_normalized(self):
        """CH-07: member order, unknown members and null params are not kept."""
        line = b' { "method" : "m", "extra": 1, "params" : null, "id": 1 ,"jsonrpc":"2.0"} '
        assert encode(parse(line)) == b'{"jsonrpc":"2.0","id":1,"method":"m"}'

    @pytest.mark.parametrize(
        "line", [b"hello", b" {}", b'{"a" :1', BOM + b"x", b"\xff", rb'"\ud800"', BOM + b"[1", rb'["\ud800", ']
    )
    def test_a_malformed_line_is_written_as_it_came(self, line):
        """CH-02: whatever it is, and however much of it could be mended."""
        assert encode(parse(line)) == line

    @pytest.mark.parametrize(
        ("raw", "written"),
        [
            (b'{"a": 1,\n "b":2}', b'{"a":1,"b":2}'),
            (b"one\r\ntwo", b'"one\\r\\ntwo"'),
            (b"\xff\n", '"\ufffd\\n"'.encode()),
            (b"[" * 100_000 + b"\n", b'"' + b"[" * 100_000 + b'\\n"'),
        ],
    )
    def test_malformed_text_with_line_breaks_is_written_as_one_line(self, raw, written):
        """CH-04: compacted if it is JSON, else as a JSON string of the text."""
        assert encode(MalformedFrame(raw, acprt.RpcError.parse_error())) == written

    def test_malformed_members_keep_their_json_and_their_place(self):
        """CH-05."""
        line = b'[{"jsonrpc":"2.0","id":1,"method":"m"},1,{"jsonrpc":"2.0","id":1,"result":1,"error":{}},[2]]'
        assert encode(parse(line)) == line
