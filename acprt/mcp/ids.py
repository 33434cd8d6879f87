"""Request ids of MCP: strings and mathematical integers, each with the spelling it came in.

A peer's `1.0` is the integer 1 and is answered as `1.0`; the string "1" is never the integer 1. Nothing here knows a
connection: what an id is looked up in is the caller's table.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

__all__ = [
    "MAX_EXPONENT",
    "MAX_ID_STRING_BYTES",
    "MAX_NUMBER_BYTES",
    "CorrelationKey",
    "RequestId",
    "SpelledInteger",
    "correlation_key",
    "encode_request_id",
    "parse_request_id",
]

MAX_ID_STRING_BYTES: Final = 256
"""Longest string id, as JSON with its quotes, in bytes of UTF-8."""

MAX_NUMBER_BYTES: Final = 4096
"""Longest number, in bytes of its spelling. Below 4300, past which Python refuses to read a decimal integer."""

MAX_EXPONENT: Final = 10_000
"""Largest exponent that is read, of either sign: `1e10000` has the size of a picture, `1e10000000` of a disk."""

RequestId = int | str
"""A legal id. An integer whose spelling is not its plain decimal form is a `SpelledInteger`. `True` is no id."""

CorrelationKey = int | str
"""What ids are looked up by: an `int` never equals a `str`, and every spelling of an integer is the same `int`."""

_SURELY_SHORT = (MAX_ID_STRING_BYTES - 2) // 6  # characters: the longest escape has six bytes
_NUMBER = re.compile(rb"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_QUOTE = 0x22

_encode = msgspec.json.Encoder().encode
_decode_text = msgspec.json.Decoder(str).decode


class SpelledInteger(int):
    """An integer id that is not spelled in its plain decimal form, such as `1.0`, `1e3` or `-0`.

    It is the integer in every comparison and as a key; `spelling` is what is written to the wire.
    """

    spelling: str

    def __new__(cls, spelling: str) -> SpelledInteger:
        """Raises ValueError for what is not the spelling of an integer within the limits of this module."""
        value = _integer(spelling.encode("utf-8", "replace"))
        if value is None:
            raise ValueError("not the spelling of a mathematical integer within the limits")
        self = super().__new__(cls, value)
        self.spelling = spelling
        return self

    def __repr__(self) -> str:
        return f"SpelledInteger({self.spelling!r})"

    __str__ = __repr__  # the decimal form of 1e10000 is longer than Python prints

    def __reduce__(self) -> tuple[type[SpelledInteger], tuple[str]]:
        return SpelledInteger, (self.spelling,)


def parse_request_id(token: bytes) -> RequestId | None:
    """The id that a raw JSON token is; None when it is none: another kind, a fraction, or past a limit above."""
    if not token:
        return None
    if token[0] == _QUOTE:
        try:
            text = _decode_text(token)
        except (msgspec.MsgspecError, UnicodeError):
            return None
        return text if is_short_enough(text) else None
    value = _integer(token)
    if value is None:
        return None
    spelling = token.decode("ascii")
    is_plain = spelling.removeprefix("-").isdigit() and spelling != "-0"
    return value if is_plain else SpelledInteger(spelling)


def encode_request_id(id: RequestId) -> bytes:
    """The token of an id, spelled as it came. Raises ValueError for what is no legal id."""
    if type(id) is SpelledInteger:
        return id.spelling.encode("ascii")
    if type(id) is str:
        try:
            token = _encode(id)
        except UnicodeError:
            raise ValueError("a string id with a lone surrogate cannot be written") from None
        if len(token) > MAX_ID_STRING_BYTES:
            raise ValueError(f"a string id is at most {MAX_ID_STRING_BYTES} bytes of JSON")
        return token
    if type(id) is not int:
        raise ValueError(f"an id is a string or an integer, not {type(id).__name__}")
    if id.bit_length() > 4 * MAX_NUMBER_BYTES or len(token := str(id).encode()) > MAX_NUMBER_BYTES:
        raise ValueError(f"an integer id has at most {MAX_NUMBER_BYTES} digits")
    return token


def correlation_key(id: RequestId) -> CorrelationKey:
    """What `id` is looked up by. `1`, `1.0` and `1e0` have one key, `"1"` has another."""
    return int(id) if type(id) is SpelledInteger else id


def is_short_enough(text: str) -> bool:
    """Whether a string is a legal id: short enough as JSON, escapes and quotes counted."""
    return len(text) <= _SURELY_SHORT or len(_encode(text)) <= MAX_ID_STRING_BYTES


def _integer(token: bytes) -> int | None:
    """The value of a number, if it is a mathematical integer that is worth reading."""
    if len(token) > MAX_NUMBER_BYTES:
        return None
    found = _NUMBER.fullmatch(token)
    if found is None:
        return None
    sign, whole, fraction, exponent = found.groups()
    if len(whole) > 1 and whole.startswith(b"0"):
        return None
    digits = int(whole + (fraction or b""))
    shift = int(exponent or b"0")
    if abs(shift) > MAX_EXPONENT:
        return None
    shift -= len(fraction or b"")
    if digits and shift < 0:
        digits, rest = divmod(digits, 10**-shift)
        if rest:
            return None
    elif digits:
        digits *= 10**shift
    return -digits if sign else digits
