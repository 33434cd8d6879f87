"""The strict scan: each rule has a line that breaks it, and a line just within it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acprt import mcp
from acprt.mcp.admission import MAX_CONTAINER_ENTRIES, MAX_NESTING

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def with_params(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + params + b"}"


def nested(depth: int) -> bytes:
    """Params `depth` deep, in a document one deeper."""
    return with_params(b"[" * depth + b"]" * depth)


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("DocumentTooLarge", b" " * (10 * 1024 * 1024) + PING),
        ("ByteOrderMark", b"\xef\xbb\xbf" + PING),
        ("ByteOrderMark", with_params(b'["\xef\xbb\xbf"]')),
        ("InvalidUtf8", with_params(b'["\xff"]')),
        ("InvalidUtf8", with_params(b'["\xed\xa0\x80"]')),
        ("InvalidSyntax", b""),
        ("InvalidSyntax", PING + b"x"),
        ("InvalidSyntax", PING + PING),
        ("InvalidSyntax", b"{'a':1}"),
        ("InvalidSyntax", with_params(b"[1,]")),
        ("InvalidSyntax", with_params(b'{"a":1,}')),
        ("InvalidSyntax", with_params(b'{"a"}')),
        ("InvalidSyntax", with_params(b"{1:2}")),
        ("InvalidSyntax", with_params(b"[01]")),
        ("InvalidSyntax", with_params(b"[NaN]")),
        ("InvalidSyntax", with_params(b"[1}")),
        ("InvalidSyntax", with_params(b'["\t"]')),
        ("InvalidSyntax", with_params(b'["\\ud800"]')),
        ("InvalidSyntax", with_params(b'["\\x"]')),
        ("InvalidSyntax", with_params(b"[")),
        ("TopLevelBatch", b"[" + PING + b"]"),
        ("TopLevelBatch", b" [nonsense"),
        ("TopLevelNotObject", b"5"),
        ("TopLevelNotObject", b'"text"'),
        ("TopLevelNotObject", b"null"),
        ("DuplicateObjectMember", b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}'),
        ("DuplicateObjectMember", with_params(b'[{"x":{"a":1,"\\u0061":2}}]')),
        ("NestingTooDeep", nested(MAX_NESTING)),
        ("NestingTooDeep", b"{" + b'"a":{' * 100_000),
        ("TooManyContainerEntries", with_params(b"[" + b"1," * MAX_CONTAINER_ENTRIES + b"1]")),
        ("NumberTooLong", with_params(b"[" + b"1" * 4097 + b"]")),
        ("TooManyNumberBytes", with_params(b"[" + b",".join([b"1" * 4096] * 65) + b"]")),
        ("ExponentTooLarge", with_params(b"[1e10001]")),
        ("ExponentTooLarge", with_params(b"[1e-10001]")),
        ("InvalidEnvelope", b"{}"),
        ("InvalidEnvelope", b'{"jsonrpc":"1.0","id":1,"method":"ping"}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1,"method":5}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":null,"method":"ping"}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1,"result":1,"params":{}}'),
        ("InvalidEnvelope", b'{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}'),
        ("InvalidEnvelope", with_params(b"5")),
    ],
    ids=lambda value: str(value[:60]),
)
def test_line_is_refused_for_the_rule_it_breaks(reason: str, line: bytes) -> None:
    with pytest.raises(mcp.AdmissionError) as caught:
        mcp.admit_frame(line)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "line",
    [
        PING,
        b" " + PING + b" \r\n",
        with_params(b'[[],{},"\\ud83d\\ude00\\"\\u0000",-1.5e3,true,false,null]'),
        with_params(b"null"),
        nested(MAX_NESTING - 1),
        with_params(b"[" + b"1," * (MAX_CONTAINER_ENTRIES - 5) + b"1]"),
        with_params(b"[" + b"1" * 4096 + b",1e10000]"),
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}',
        b'{"jsonrpc":"2.0","id":"x","result":null}',
        b'{"jsonrpc":"2.0","id":1.0,"error":{"code":-32600,"message":"m","data":[1]}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}',
    ],
    ids=lambda line: str(line[:60]),
)
def test_line_within_all_rules_is_admitted(line: bytes) -> None:
    mcp.admit_frame(line)


def test_size_of_strings_is_that_of_their_decoded_text() -> None:
    """And has the limit of the line."""
    line = with_params(b'["' + b"\\u0061" * 50 + b'"]')
    mcp.admit_frame(line, max_bytes=len(line))
    with pytest.raises(mcp.AdmissionError, match="DocumentTooLarge"):
        mcp.admit_frame(line, max_bytes=len(line) - 1)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                    | st.text(st.characters(codec="utf-8", exclude_characters="\ufeff")),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=20),
       st.booleans())  # fmt: skip
@settings(deadline=None)
def test_what_a_writer_of_json_writes_is_admitted(value, ascii_only):
    """Whatever the value is."""
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": [value]}, ensure_ascii=ascii_only)
    mcp.admit_frame(line.replace("\ufeff", "").encode())


@given(st.binary(max_size=60) | st.text('{}[]":,\\u0019ea-.+ntfs ', max_size=60).map(str.encode))
@settings(deadline=None)
def test_rubbish_is_refused_by_name(line):
    """And nothing else is raised."""
    with pytest.raises(mcp.AdmissionError):
        mcp.admit_frame(line)
