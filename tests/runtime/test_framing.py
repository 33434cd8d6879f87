"""Golden lines: what a served endpoint writes for each line it reads, however the bytes come."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of
from tests.runtime.golden import (
    BOM,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    brief,
    call,
    endpoint,
    ok,
    replies_to,
)

MIB = 1024 * 1024

GOLDEN: list[tuple[str, bytes, list[Any]]] = [
    # FR-01, FR-08
    ("cr-lf", call("1") + b"\r", [ok(1)]),
    ("space around", b" \t" + call("1") + b"\t ", [ok(1)]),
    ("two objects joined by CR", call("1") + b"\r" + call("2"), [(1, PARSE_ERROR)]),
    # FR-02
    ("empty line", b"", []),
    ("blank line", b" \t \r", []),
    # FR-04
    ("not UTF-8", b"\xff\xfe{}", [(None, PARSE_ERROR)]),
    ("not UTF-8 inside params", call("1", params='["@"]').replace(b"@", b"\xff"), [(1, PARSE_ERROR)]),
    ("not UTF-8 inside a method", call("1", "@").replace(b"@", b"\xff"), [(1, PARSE_ERROR)]),
    # FR-07
    ("byte-order mark", BOM + call("1"), [ok(1)]),
    ("two byte-order marks", BOM + BOM + call("1"), [(1, PARSE_ERROR)]),
    # FR-09
    ("first line of a pretty-printed value", b"{", [(None, PARSE_ERROR)]),
    ("middle line of it", b'  "id": 1,', [(None, PARSE_ERROR)]),
    # FR-10, FR-11
    ("no JSON", b"hello", [(None, PARSE_ERROR)]),
    ("two values", b"{}{}", [(None, PARSE_ERROR)]),
    ("trailing comma", b'{"a":1,}', [(None, PARSE_ERROR)]),
    ("NaN", b'{"a":NaN}', [(None, PARSE_ERROR)]),
    ("overflowing number", b'{"a":1e400}', [(None, PARSE_ERROR)]),
    ("overflowing number in params", call("1", params="[1e400]"), [(1, PARSE_ERROR)]),
    ("control character", b'{"a":"\t"}', [(None, PARSE_ERROR)]),
    ("NUL", b'{"a":"\x00"}', [(None, PARSE_ERROR)]),
    ("lone surrogate", call("1", params=r'["\ud800"]'), [ok(1, ["\ufffd"])]),
    ("damage behind the id", call("1", params="[1,]"), [(1, PARSE_ERROR)]),
    # FR-12
    ("deep nesting", call("1", params="[" * 200 + "]" * 200), [ok(1, msgspec.json.decode("[" * 200 + "]" * 200))]),
    ("deeper nesting", call("1", params="[" * 20_000 + "]" * 20_000), [(1, PARSE_ERROR)]),
    # FR-13
    ("escaped slash in a method", call("1", r"a\/b"), [ok(1)]),
    # FR-14
    ("duplicate keys", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x","method":"echo"}', [ok(2)]),
    # FR-15
    ("64-bit integers", call("1", params="[18446744073709551615]"), [ok(1, [18446744073709551615])]),
    ("longer integers", call("1", params="[12345678901234567890123]"), [ok(1, [12345678901234567890123])]),
    # FR-20, FR-21
    ("null", b"null", [(None, INVALID_REQUEST)]),
    ("true", b"true", [(None, INVALID_REQUEST)]),
    ("a number", b"42", [(None, INVALID_REQUEST)]),
    ("a string", b'"hello"', [(None, INVALID_REQUEST)]),
    ("an empty object", b"{}", [(None, INVALID_REQUEST)]),
    ("no version", b'{"id":1,"method":"echo"}', [(1, INVALID_REQUEST)]),
    ("version 1.0", b'{"jsonrpc":"1.0","id":1,"method":"echo"}', [(1, INVALID_REQUEST)]),
    ("a numeric version", b'{"jsonrpc":2.0,"id":1,"method":"echo"}', [(1, INVALID_REQUEST)]),
    ("a null version", b'{"jsonrpc":null,"id":1,"method":"echo"}', [(1, INVALID_REQUEST)]),
    ("a numeric method", b'{"jsonrpc":"2.0","id":1,"method":7}', [(1, INVALID_REQUEST)]),
    ("a null method", b'{"jsonrpc":"2.0","id":1,"method":null}', [(1, INVALID_REQUEST)]),
    ("scalar params", call("1", params="7"), [(1, INVALID_REQUEST)]),
    ("boolean params", call("1", params="false"), [(1, INVALID_REQUEST)]),
    ("string params", call('"x"', params='"text"'), [("x", INVALID_REQUEST)]),
    ("method and result", b'{"jsonrpc":"2.0","id":1,"method":"echo","result":1}', [(1, INVALID_REQUEST)]),
    ("method and null error", b'{"jsonrpc":"2.0","id":1,"method":"echo","error":null}', [(1, INVALID_REQUEST)]),
    ("no method, params", b'{"jsonrpc":"2.0","id":1,"params":{}}', [(1, INVALID_REQUEST)]),
    # FR-22
    ("result and error", b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}', []),
    ("result without id", b'{"jsonrpc":"2.0","result":1}', []),
    ("result without version", b'{"id":1,"result":1}', []),
    ("error that is no object", b'{"jsonrpc":"2.0","id":1,"error":"x"}', []),
    ("id alone", b'{"jsonrpc":"2.0","id":1}', []),
    ("damaged reply", b'{"jsonrpc":"2.0","id":1,"result":{"a"', []),
    # DL-04, ER-04
    ("unmatched reply", b'{"jsonrpc":"2.0","id":99,"result":1}', []),
    ("error reply to nobody", b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}', []),
    # FR-23
    ("notification with scalar params", b'{"jsonrpc":"2.0","method":"heard","params":7}', [(None, INVALID_REQUEST)]),
    # FR-24
    ("absent params", call("1"), [ok(1, None)]),
    ("null params", call("1", params="null"), [ok(1, None)]),
    ("empty params", call("1", params="{}"), [ok(1, {})]),
    ("positional params", call("1", params='[1,{"a":[]}]'), [ok(1, [1, {"a": []}])]),
    # FR-25
    ("unknown members", b'{"jsonrpc":"2.0","id":1,"method":"echo","extra":{"a":1},"_meta":null}', [ok(1)]),
    # FR-26
    ("an empty method", call("1", ""), [ok(1)]),
    # FR-30
    ("positional params for a type", call("1", "say", '["hi"]'), [(1, INVALID_PARAMS)]),
    # FR-31
    ("unknown members in params", call("1", "say", '{"text":"hi","new":1}'), [ok(1, "hi")]),
    ("another case of a method", call("1", "Say", '{"text":"hi"}'), [(1, METHOD_NOT_FOUND)]),
    ("another case of a member", call("1", "say", '{"Text":"hi"}'), [(1, INVALID_PARAMS)]),
    # ID-03, ID-04
    ("a null id", call("null"), [ok(None)]),
    ("a fractional id", call("1.5"), [(None, INVALID_REQUEST)]),
    ("an integral float id", call("1.0"), [(None, INVALID_REQUEST)]),
    ("an id with an exponent", call("1e2"), [(None, INVALID_REQUEST)]),
    ("an id past 64 bits", call("9223372036854775808"), [(None, INVALID_REQUEST)]),
    ("a boolean id", call("true"), [(None, INVALID_REQUEST)]),
    ("an array as id", call("[1]"), [(None, INVALID_REQUEST)]),
    ("an object as id", call('{"a":1}'), [(None, INVALID_REQUEST)]),
    # UN-01, UN-02
    ("an unknown request", call("1", "nope"), [(1, METHOD_NOT_FOUND)]),
    ("an unknown notification", b'{"jsonrpc":"2.0","method":"nope","params":{}}', []),
    # HC-04
    ("a notification of the wrong shape", b'{"jsonrpc":"2.0","method":"heard","params":{}}', []),
]


class TestGoldenLines:
    """One line in, exactly these lines out, and the connection lives."""

    @pytest.mark.parametrize(("line", "replies"), [row[1:] for row in GOLDEN], ids=[row[0] for row in GOLDEN])
    def test_line_gets_exactly_these_replies(self, run, line, replies):
        """FR-01, FR-02, FR-04, FR-07 … FR-15, FR-20 … FR-26, FR-30, FR-31, ID-03, ID-04: each row of the table."""
        assert run(replies_to(line)) == replies

    def test_all_of_them_in_one_write_get_the_same_replies_in_order(self, run):
        """FR-20: no line harms its neighbours."""
        lines, expected = [], []
        for _, line, replies in GOLDEN:
            lines.append(line)
            expected += replies
        assert run(replies_to(*lines)) == expected

    def test_parse_error_and_invalid_request_in_full(self, run):
        """FR-10, FR-20: the codes, the words, and what was wrong with which text."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(b"hello", b"{}")
                first, second = await peer.settled()
            assert first["error"]["code"] == -32700
            assert first["error"]["message"] == "Parse error"
            assert first["error"]["data"]["line"] == "hello"
            assert second["error"]["code"] == -32600
            assert second["error"]["message"] == "Invalid request"
            assert second["error"]["data"]["line"] == "{}"
            assert second["error"]["data"]["error"]

        run(main())

    def test_a_megabyte_of_garbage_gets_a_short_answer(self, run):
        """FR-06."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send(b"x" * MIB)
                assert len(await peer.receive_raw()) < 2_000

        run(main())

    def test_a_long_line_passes(self, run):
        """FR-05: up to the limit of 64 MiB."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.request(1, "say", {"text": "x" * 5 * MIB})
                assert (await peer.receive())["result"] == "x" * 5 * MIB

        run(main())


class TestUnterminatedTail:
    """The last line at EOF is a line, complete or not."""

    def test_a_complete_last_line_is_answered(self, run):
        """FR-03."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send_raw(call("1"))
                peer.close_write()
                assert brief(await peer.receive()) == ok(1)

        run(main())

    @pytest.mark.parametrize("tail", [b'{"jsonrpc":"2.0","id":1', b'{"jsonrpc":"2.0","method":"echo","id":1', b"{"])
    def test_an_incomplete_last_line_is_a_parse_error_and_a_clean_end(self, run, tail):
        """FR-03: serving ends without an error."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send_raw(tail)
                peer.close_write()
                assert brief(await peer.receive()) == (None, PARSE_ERROR)
                await asyncio.wait_for(peer.at_eof.wait(), 5)
            assert peer.unread() == []

        run(main())

    def test_a_blank_tail_is_ignored(self, run):
        """FR-02, FR-03."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send_raw(b"  \r")
                peer.close_write()
                await asyncio.wait_for(peer.at_eof.wait(), 5)
            assert peer.unread() == []

        run(main())


class TestBytesOnTheWay:
    """Inputs that broke others: separators, cuts, borders."""

    TEXTS = (
        "\u2028\u2029\u0085 \\u000b \\u000c \x7f",
        "\u4e2d\u6587 \U0001f600 e\u0301 \u200d",
        "x" * 4095 + " " + "y" * 4096 + "  " * 4096,
    )

    @pytest.mark.parametrize("text", TEXTS, ids=["separators", "characters", "spaces"])
    @pytest.mark.parametrize("step", [1, 3, 4096, 1_000_000])
    def test_text_arrives_as_it_was_however_it_is_cut(self, run, text, step):
        """FR-01, FR-05: one message, content equal, also when a write ends inside a character."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                line = call("1", params=f'["{text}"]') + b"\n"
                for start in range(0, len(line), step):
                    peer.send_raw(line[start : start + step])
                assert brief(await peer.receive()) == ok(1, msgspec.json.decode(f'["{text}"]'))
                assert await peer.settled() == []

        run(main())

    def test_three_messages_in_one_write(self, run):
        """FR-01."""

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.send_raw(call("1") + b"\n" + call("2") + b"\r\n" + call("3") + b"\n")
                assert [brief(await peer.receive()) for _ in range(3)] == [ok(1), ok(2), ok(3)]

        run(main())

    def test_spaces_over_buffer_borders_survive(self, run):
        """FR-05: a string of 300,000 bytes with runs of spaces over every multiple of 4,096."""
        text = bytearray(b"x" * 300_000)
        for border in range(4096, len(text), 4096):
            text[border - 8 : border + 8] = b" " * 16

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.request(1, "say", {"text": text.decode()})
                assert (await peer.receive())["result"] == text.decode()

        run(main())

    def test_empty_containers_and_unknown_members_survive(self, run):
        """FR-25: `_meta` with dotted keys, empty lists and objects come back as they were."""
        params: dict[str, Any] = {"_meta": {"a.b/c": {"d": []}}, "list": [], "object": {}, "none": None, "new": [[{}]]}

        async def main():
            async with raw_client_of(endpoint()) as peer:
                peer.request(1, "echo", params)
                assert (await peer.receive())["result"] == params

        run(main())


def test_the_helpers_see_a_connection_that_died(run):
    """The proof of life of every row above would fail if a line ended the connection."""

    async def main():
        served = endpoint()

        @served.on_receive_request("die")
        async def die(_params: Any, _responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            cx.fail(OSError("broken"))

        near, far = acprt.memory_pair()
        serving = asyncio.ensure_future(served.serve(far))
        peer = RawPeer(near)
        peer.request(1, "die")
        with pytest.raises(OSError, match="broken"):
            await serving
        await asyncio.wait_for(peer.at_eof.wait(), 5)

    run(main())
