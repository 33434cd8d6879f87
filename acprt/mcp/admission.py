"""Opt-in strictness in front of everything: one line is one JSON-RPC message of bounded shape, or it is refused.

The runtime reads leniently what peers send; whoever wants no line accepted that another reader could see in another way
asks here first. A scan of this kind costs far more than decoding; nothing in acprt calls it by itself.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

from acprt.mcp.ids import MAX_EXPONENT, MAX_NUMBER_BYTES, parse_request_id

__all__ = [
    "MAX_CONTAINER_ENTRIES",
    "MAX_DOCUMENT_BYTES",
    "MAX_NESTING",
    "MAX_TOTAL_NUMBER_BYTES",
    "AdmissionError",
    "AdmissionReason",
    "admit_frame",
]

MAX_DOCUMENT_BYTES: Final = 10 * 1024 * 1024
"""Longest line, and the most that its strings may hold once they are decoded."""

MAX_NESTING: Final = 64
MAX_CONTAINER_ENTRIES: Final = 100_000
"""Members of objects and elements of arrays, of the whole document."""

MAX_TOTAL_NUMBER_BYTES: Final = 256 * 1024


class AdmissionReason(StrEnum):
    """Why a line is refused."""

    DOCUMENT_TOO_LARGE = "DocumentTooLarge"
    BYTE_ORDER_MARK = "ByteOrderMark"
    INVALID_UTF8 = "InvalidUtf8"
    INVALID_SYNTAX = "InvalidSyntax"
    TOP_LEVEL_BATCH = "TopLevelBatch"
    TOP_LEVEL_NOT_OBJECT = "TopLevelNotObject"
    DUPLICATE_OBJECT_MEMBER = "DuplicateObjectMember"
    NESTING_TOO_DEEP = "NestingTooDeep"
    TOO_MANY_CONTAINER_ENTRIES = "TooManyContainerEntries"
    NUMBER_TOO_LONG = "NumberTooLong"
    TOO_MANY_NUMBER_BYTES = "TooManyNumberBytes"
    EXPONENT_TOO_LARGE = "ExponentTooLarge"
    TOO_MANY_DECODED_STRING_BYTES = "TooManyDecodedStringBytes"
    INVALID_ENVELOPE = "InvalidEnvelope"


class AdmissionError(ValueError):
    """A line that is refused; `reason` is the rule that it breaks first."""

    def __init__(self, reason: AdmissionReason) -> None:
        super().__init__(reason)
        self.reason = reason


def admit_frame(line: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> None:
    """Raise AdmissionError unless `line` is one JSON-RPC 2.0 message, in strict UTF-8, with no member twice at any
    depth and within the limits above. `max_bytes` bounds the line and the decoded text of its strings.
    """
    if len(line) > max_bytes:
        _refuse(AdmissionReason.DOCUMENT_TOO_LARGE)
    if _BOM in line:
        _refuse(AdmissionReason.BYTE_ORDER_MARK)
    try:
        line.decode()
    except UnicodeDecodeError:
        _refuse(AdmissionReason.INVALID_UTF8)
    _Scan(line, max_bytes).document()
    _check_envelope(line)


_BOM = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?")
_WORD = re.compile(rb"true|false|null")
_SPACE = re.compile(rb"[ \t\r\n]*")

_OBJECT, _ARRAY = b"{", b"["
_decode_text = msgspec.json.Decoder(str).decode


def _refuse(reason: AdmissionReason) -> NoReturn:
    raise AdmissionError(reason) from None


class _Scan:
    """One pass over a document, with a stack of its own: depth is a limit here, never a crash."""

    def __init__(self, text: bytes, max_string_bytes: int) -> None:
        self._text = text
        self._at = 0
        self._max_string_bytes = max_string_bytes
        self._entries = self._number_bytes = self._string_bytes = 0
        self._open: list[set[str] | None] = []  # the names of each open object; None for an array

    def document(self) -> None:
        """Read it all."""
        first = self._peek()
        if first == _ARRAY:
            _refuse(AdmissionReason.TOP_LEVEL_BATCH)
        self._value()
        while self._open:
            self._next_entry()
        if self._peek():
            _refuse(AdmissionReason.INVALID_SYNTAX)
        if first != _OBJECT:
            _refuse(AdmissionReason.TOP_LEVEL_NOT_OBJECT)

    def _next_entry(self) -> None:
        """Go on behind a value: to the next member or element, or out of the container."""
        closing = b"]" if self._open[-1] is None else b"}"
        mark = self._take()
        if mark == closing:
            self._open.pop()
        elif mark == b",":
            self._entry()
        else:
            _refuse(AdmissionReason.INVALID_SYNTAX)

    def _entry(self) -> None:
        self._entries += 1
        if self._entries > MAX_CONTAINER_ENTRIES:
            _refuse(AdmissionReason.TOO_MANY_CONTAINER_ENTRIES)
        names = self._open[-1]
        if names is not None:
            self._peek()
            name = self._string()
            if name in names:
                _refuse(AdmissionReason.DUPLICATE_OBJECT_MEMBER)
            names.add(name)
            if self._take() != b":":
                _refuse(AdmissionReason.INVALID_SYNTAX)
        self._value()

    def _value(self) -> None:
        """Read a value; of a container its opening, with the first entry."""
        first = self._peek()
        if first in (_OBJECT, _ARRAY):
            self._at += 1
            if len(self._open) == MAX_NESTING:
                _refuse(AdmissionReason.NESTING_TOO_DEEP)
            if self._peek() == (b"}" if first == _OBJECT else b"]"):
                self._at += 1
                return
            self._open.append(set() if first == _OBJECT else None)
            self._entry()
        elif first == b'"':
            self._string()
        elif first and first in b"-0123456789":
            self._number()
        else:
            self._match(_WORD)

    def _string(self) -> str:
        token = self._match(_STRING)[0]
        try:
            text = _decode_text(token)
        except msgspec.MsgspecError:  # half of a surrogate pair
            _refuse(AdmissionReason.INVALID_SYNTAX)
        self._string_bytes += len(text.encode())
        if self._string_bytes > self._max_string_bytes:
            _refuse(AdmissionReason.TOO_MANY_DECODED_STRING_BYTES)
        return text

    def _number(self) -> None:
        found = self._match(_NUMBER)
        if len(found[0]) > MAX_NUMBER_BYTES:
            _refuse(AdmissionReason.NUMBER_TOO_LONG)
        self._number_bytes += len(found[0])
        if self._number_bytes > MAX_TOTAL_NUMBER_BYTES:
            _refuse(AdmissionReason.TOO_MANY_NUMBER_BYTES)
        if found[1] and abs(int(found[1])) > MAX_EXPONENT:
            _refuse(AdmissionReason.EXPONENT_TOO_LARGE)

    def _match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        found = pattern.match(self._text, self._at)
        if found is None:
            _refuse(AdmissionReason.INVALID_SYNTAX)
        self._at = found.end()
        return found

    def _peek(self) -> bytes:
        """The next byte that is no white space; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        if space is not None:
            self._at = space.end()
        return self._text[self._at : self._at + 1]

    def _take(self) -> bytes:
        mark = self._peek()
        self._at += 1
        return mark


# -- the envelope -----------------------------------------------------------------------------------------------------

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Error(msgspec.Struct, forbid_unknown_fields=True):
    code: int
    message: str
    data: msgspec.Raw = msgspec.Raw()


_decode_error = msgspec.json.Decoder(_Error).decode

_SHAPES = (
    frozenset({"jsonrpc", "method"}),
    frozenset({"jsonrpc", "id", "method"}),
    frozenset({"jsonrpc", "id", "result"}),
    frozenset({"jsonrpc", "id", "error"}),
    frozenset({"jsonrpc", "error"}),  # of a message whose id could not be read
)


def _check_envelope(line: bytes) -> None:
    members = {name: bytes(value) for name, value in _decode_members(line).items()}
    if members.get("jsonrpc") != b'"2.0"' or members.keys() - {"params"} not in _SHAPES:
        _refuse(AdmissionReason.INVALID_ENVELOPE)
    if "params" in members and ("method" not in members or members["params"][:1] not in (_OBJECT, _ARRAY, b"n")):
        _refuse(AdmissionReason.INVALID_ENVELOPE)
    if "method" in members and not members["method"].startswith(b'"'):
        _refuse(AdmissionReason.INVALID_ENVELOPE)
    if "id" in members and parse_request_id(members["id"]) is None:
        _refuse(AdmissionReason.INVALID_ENVELOPE)
    if "error" in members:
        try:
            _decode_error(members["error"])
        except (msgspec.MsgspecError, UnicodeError):
            _refuse(AdmissionReason.INVALID_ENVELOPE)
