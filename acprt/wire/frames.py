"""Frames: what one line is, told from the presence of its keys (FR-20).

`params` and `result` stay raw until a typed handler claims them, so a message can be answered, routed or forwarded
without being understood. `parse` never raises: what cannot be read is a `MalformedFrame` that says who must be told.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct as Packed
from typing import Any, Literal, TypeAlias, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acprt.errors import RpcError
from acprt.wire.ids import RequestId, WireId
from acprt.wire.lines import Line, LongLine, OutLine, OversizedLine
from acprt.wire.malformed import MalformedFrame, malformed_from_json, malformed_from_size, malformed_from_text
from acprt.wire.repair import repair

__all__ = [
    "NO_PARAMS",
    "BatchFrame",
    "Frame",
    "MalformedFrame",
    "NotificationFrame",
    "RequestFrame",
    "ResponseFrame",
    "answer_of",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_response",
    "fill_notification",
    "fill_request",
    "notification_template",
    "parse",
    "request_template",
]

NO_PARAMS = Raw()
"""`params` of a message that has none; `params: null` means the same (FR-24)."""

UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)
"""Everything msgspec raises for input that it cannot read; too-deep nesting is not one of its own errors."""


@final
class RequestFrame(msgspec.Struct, gc=False):
    """A call that must be answered: `method` and `id` present. `params` is raw JSON or `NO_PARAMS`."""

    id: RequestId
    method: str
    params: Raw = NO_PARAMS


@final
class NotificationFrame(msgspec.Struct, gc=False):
    """A call that is never answered: `method` without `id`."""

    method: str
    params: Raw = NO_PARAMS


@final
class ResponseFrame(msgspec.Struct):
    """An answer to one of our requests: raw `result`, or `error`, never both."""

    id: RequestId
    result: Raw = NO_PARAMS
    error: RpcError | None = None


@final
class BatchFrame(msgspec.Struct):
    """A non-empty array of messages, each a frame of its own (BA-01)."""

    entries: list[RequestFrame | NotificationFrame | ResponseFrame | MalformedFrame]


Frame: TypeAlias = RequestFrame | NotificationFrame | ResponseFrame | BatchFrame | MalformedFrame
F = TypeVar("F", bound=Frame)


class _ErrorObject(msgspec.Struct):
    code: int
    message: str
    data: Any = None


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: WireId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = NO_PARAMS
    result: Raw | UnsetType = UNSET
    error: _ErrorObject | UnsetType | None = UNSET


class _Result(msgspec.Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: RequestId
    result: Any


class _Answer(msgspec.Struct, gc=False):
    result: Raw = NO_PARAMS
    error: _ErrorObject | None = None


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_members = msgspec.json.Decoder(list[Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_first_byte = Packed("B").unpack_from  # a third of the price of a memoryview, on every message (bench-core w3)
_BRACE, _BRACKET, _NULL = b"{[n"
_MAX_MEMBERS = 10_000  # of a batch: each of a line of rubbish would earn an answer a hundred times its size


def parse(line: Line) -> Frame:
    """The frame that one non-blank line is. Never raises."""
    if type(line) is not bytes:
        return malformed_from_size(line) if isinstance(line, OversizedLine) else parse(bytes(line))
    try:
        envelope = _decode_envelope(line)
    except UNREADABLE as error:
        return _parse_unusual(line, error)
    method = envelope.method
    if method is UNSET:
        if envelope.error is UNSET and envelope.result is not UNSET and envelope.id is not UNSET:
            return ResponseFrame(envelope.id, envelope.result)  # nearly every answer: spared a call (bench-core w1)
        return _parse_answer(envelope, line)
    params = envelope.params
    if params is not NO_PARAMS:
        (first,) = _first_byte(params)
        if first != _BRACE and first != _BRACKET:
            if first != _NULL:
                return malformed_from_json(line, "params must be an object or an array")
            params = NO_PARAMS
    if envelope.result is not UNSET or envelope.error is not UNSET:
        return malformed_from_json(line, "a call has neither result nor error")
    if envelope.id is UNSET:
        return NotificationFrame(method, params)
    return RequestFrame(envelope.id, method, params)


def _parse_answer(envelope: _Envelope, line: bytes) -> ResponseFrame | MalformedFrame:
    id, error, result = envelope.id, envelope.error, envelope.result
    if id is UNSET:
        return malformed_from_json(line, "neither a call nor an answer: no method and no id")
    if error is UNSET or error is None:
        if result is not UNSET:
            return ResponseFrame(id, result)  # a null error beside a result counts as absent (DEC-22)
        return malformed_from_json(line, "an answer has a result or an error")
    if result is not UNSET and _first_byte(result)[0] != _NULL:
        return malformed_from_json(line, "an answer has a result or an error, not both")
    return ResponseFrame(id, NO_PARAMS, RpcError(error.code, error.message, error.data))


def _parse_unusual(line: bytes, error: Exception) -> Frame:
    """A batch, a line that can be mended, or a malformed one; `error` is what the first attempt said."""
    if line.lstrip(b" \t\r\n").startswith(b"["):
        return _parse_batch(line)
    mended = repair(line)
    if mended is not None:
        return _as_it_came(parse(mended), line)
    try:
        _decode_any(line)
    except UNREADABLE as unreadable:
        return malformed_from_text(line, unreadable)
    return malformed_from_json(line, str(error))


def _parse_batch(line: bytes) -> BatchFrame | MalformedFrame:
    try:
        members = _decode_members(line)
    except UNREADABLE as unreadable:
        mended = repair(line)
        if mended is None:
            return malformed_from_text(line, unreadable)
        return _as_it_came(_parse_batch(mended), line)
    if not 0 < len(members) <= _MAX_MEMBERS:
        return malformed_from_json(line, f"a batch of {len(members)} members: 1 to {_MAX_MEMBERS} are accepted")
    entries: list[RequestFrame | NotificationFrame | ResponseFrame | MalformedFrame] = []
    for member in map(bytes, members):
        if member.startswith(b"["):  # never looked into: arrays in arrays have no end
            entries.append(malformed_from_json(member, "a batch inside a batch"))
            continue
        entry = parse(member)
        assert not isinstance(entry, BatchFrame), "only an array is a batch"
        entries.append(entry)
    return BatchFrame(entries)


def _as_it_came(frame: F, line: bytes) -> F:
    """A line that was mended and is malformed still keeps its own bytes (CH-02)."""
    if isinstance(frame, MalformedFrame):
        frame.raw = line
    return frame


_encode = msgspec.json.Encoder().encode
_LF = 0x0A  # as a number: looking for it in bytes is then ten times cheaper (bench-core w3)

# The envelope is filled into a template per method, members in the order of OU-11: a Struct around the payload costs a
# third more (bench-core w3). A relay sends methods that a peer made up: long ones are not kept.
_CACHED_METHOD = 200


@lru_cache(maxsize=4096)
def request_template(method: str) -> bytes:
    """The line of a request of `method`, to be filled by `fill_request`."""
    return b'{"jsonrpc":"2.0","id":%b,"method":' + _encode(method).replace(b"%", b"%%") + b',"params":%b}'


@lru_cache(maxsize=4096)
def notification_template(method: str) -> bytes:
    """The line of a notification of `method`, to be filled by `fill_notification`."""
    return b'{"jsonrpc":"2.0","method":' + _encode(method).replace(b"%", b"%%") + b',"params":%b}'


_LONG = 64 * 1024  # bytes of a text from which a copy of it costs more than writing its envelope apart (bench-core w4)


def _on_one_line(line: bytes) -> bytes:
    """Raw JSON of the user's may be laid out over lines; the wire has one line to a message."""
    return msgspec.json.format(line, indent=-1)


def _around(envelope: bytes, text: bytes) -> OutLine:
    """A line of an envelope whose last member is empty and the long text that belongs there."""
    line = LongLine(envelope[:-1], text, b"}")
    return line if _LF not in text else _on_one_line(bytes(line))


def encode_request(id: RequestId, method: str, params: Any) -> OutLine:
    """One request without terminator; no `params` member for None or `NO_PARAMS`. Raises what msgspec raises."""
    if params is None or params is NO_PARAMS:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (_encode(id), _encode(method))
    template = request_template if len(method) <= _CACHED_METHOD else request_template.__wrapped__
    return fill_request(template(method), id, params)


def fill_request(template: bytes, id: RequestId, params: Any) -> OutLine:
    """One request without terminator, of a template and params that are not None. Raises what msgspec raises."""
    text = _encode(params)
    if len(text) > _LONG:
        return _around(template % (_encode(id), b""), text)
    line = template % (_encode(id), text)
    return line if _LF not in line else _on_one_line(line)


def encode_notification(method: str, params: Any) -> OutLine:
    """One notification without terminator; no `params` member for None or `NO_PARAMS`."""
    if params is None or params is NO_PARAMS:
        return b'{"jsonrpc":"2.0","method":%b}' % _encode(method)
    template = notification_template if len(method) <= _CACHED_METHOD else notification_template.__wrapped__
    return fill_notification(template(method), params)


def fill_notification(template: bytes, params: Any) -> OutLine:
    """One notification without terminator, of a template and params that are not None. Raises what msgspec raises."""
    text = _encode(params)
    if len(text) > _LONG:
        return _around(template % b"", text)
    line = template % text
    return line if _LF not in line else _on_one_line(line)


def encode_response(id: RequestId, result: Any) -> OutLine:
    """One successful answer without terminator; any JSON value is a result (RS-04), `NO_PARAMS` is null."""
    line = _encode(_Result(id, None if result is NO_PARAMS else result))
    if _LF in line:
        return _on_one_line(line)
    return line if len(line) <= _LONG else LongLine(line, b"")


def encode_error(id: RequestId, error: RpcError) -> bytes:
    """One error answer without terminator; no `data` member when there is none."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    line = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (_encode(id), _encode(body))
    return line if _LF not in line else _on_one_line(line)


def answer_of(id: RequestId, line: bytes) -> ResponseFrame | None:
    """What a line of `encode_response` or `encode_error` says. None when it cannot be read back, deep nesting say."""
    try:
        answer = _decode_answer(line)
    except UNREADABLE:
        return None
    error = answer.error
    return ResponseFrame(id, answer.result, None if error is None else RpcError(error.code, error.message, error.data))


def encode(frame: Frame) -> bytes:
    """Any frame without terminator. A malformed one is written as it came, on one line (CH-02, CH-04)."""
    match frame:
        case RequestFrame():
            return bytes(encode_request(frame.id, frame.method, frame.params))
        case NotificationFrame():
            return bytes(encode_notification(frame.method, frame.params))
        case ResponseFrame():
            if frame.error is not None:
                return encode_error(frame.id, frame.error)
            return bytes(encode_response(frame.id, frame.result))
        case BatchFrame():
            return b"[" + b",".join(map(encode, frame.entries)) + b"]"
        case MalformedFrame():
            return frame.on_one_line()
