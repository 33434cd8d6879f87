"""Ids of MCP: kinds that are never mixed up, spellings that survive."""

from __future__ import annotations

import pickle

import pytest

from acprt import mcp
from acprt.mcp.ids import encode_request_id


@pytest.mark.parametrize(
    ("token", "key"),
    [
        (b"7", 7),
        (b"-1", -1),
        (b"0", 0),
        (b"1.0", 1),
        (b"1e0", 1),
        (b"10e-1", 1),
        (b"-0", 0),
        (b"-0.0", 0),
        (b"0e5", 0),
        (b"0e-2", 0),
        (b"92233720368547758080", 92233720368547758080),
        (b"-1.50e1", -15),
        (b"1e10000", 10**10000),
        (b'"1"', "1"),
        (b'""', ""),
        (b'"\\u0061"', "a"),
        (b'"' + b"a" * 254 + b'"', "a" * 254),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
def test_legal_id_has_one_key_and_keeps_its_spelling(token: bytes, key: int | str) -> None:
    """Looked up by value, answered as spelled; a string is written as plainly as JSON allows."""
    id = mcp.parse_request_id(token)
    assert id is not None
    assert type(mcp.correlation_key(id)) is type(key)
    assert mcp.correlation_key(id) == key
    assert id == key
    assert {key: "found"}[id] == "found"
    assert encode_request_id(id) == (b'"a"' if key == "a" else token)


@pytest.mark.parametrize(
    "token",
    [
        *(b"1.5", b"1e-1", b"1e10001", b"1e-10001", b"9" * 4097, b"01", b"-", b"1.", b"", b"null", b"true", b"{}"),
        *(b'"' + b"a" * 255 + b'"', b'"' + b"\\n" * 128 + b'"', b'"\\ud800"', b'"a', b"NaN", b"0x1", b" 1", b"1\n"),
    ],
)  # fmt: skip
def test_anything_else_is_no_id(token: bytes) -> None:
    """Fractions, other kinds, and what is past a limit."""
    assert mcp.parse_request_id(token) is None


def test_spelled_integer_prints_as_it_is_spelled() -> None:
    """Its decimal form may have more digits than Python prints."""
    spelled = mcp.SpelledInteger("1e10000")
    assert repr(spelled) == str(spelled) == "SpelledInteger('1e10000')"
    assert pickle.loads(pickle.dumps(spelled)).spelling == "1e10000"


@pytest.mark.parametrize("spelling", ["1.5", "x", "", "1e99999", "٣"])
def test_spelling_of_no_integer_is_refused(spelling: str) -> None:
    with pytest.raises(ValueError, match="integer"):
        mcp.SpelledInteger(spelling)
