"""Raw params and results become values here, when a handler or a waiter claims them, and never before.

An error tells what was wrong in the way of HC-05: `{"error", "json", "phase"}`, with the JSON capped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_args

import msgspec
from msgspec import Raw

from acprt.errors import ErrorCode, RpcError
from acprt.wire.frames import NO_PARAMS, UNREADABLE
from acprt.wire.repair import repair

__all__ = [
    "UNENCODABLE",
    "UNTYPED",
    "Decoder",
    "decode_params",
    "decode_result",
    "decoder_for",
    "encoding_error",
    "line_too_long",
    "result_to_forward",
]

UNENCODABLE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)
"""Everything msgspec raises for a value that it cannot write, lone surrogates included."""

_ECHO = 1000  # characters of the JSON that an error repeats (PY-51)
_WHY = 500  # characters of the reason: msgspec repeats the values that it refuses
_EMPTY_OBJECT = b"{}"


class Decoder:
    """How JSON text becomes a value of one type: at the first attempt, or at the second where the type has one.

    Both raise msgspec.ValidationError for the wrong shape, msgspec.DecodeError for text that is not JSON.
    """

    __slots__ = ("decode", "decode_again")

    def __init__(self, decode: Callable[[Any], Any], decode_again: Callable[[bytes], Any] | None = None) -> None:
        self.decode = decode
        self.decode_again = decode_again


@lru_cache(maxsize=4096)
def decoder_for(type_: Any) -> Decoder:
    """The decoder of a type, made once. Raises TypeError for a type that cannot be decoded.

    A class with `__acprt_decoder__`, in the type or among its arguments, makes the decoder itself: a function of the
    type that returns a `Decoder`.
    """
    try:
        make = _own_decoder(type_)
        return Decoder(msgspec.json.Decoder(type_).decode) if make is None else make(type_)
    except NameError as error:  # an annotation that does not resolve
        raise TypeError(f"{type_!r} cannot be decoded: {error}") from error


def decode_params(decoder: Decoder | None, params: Raw) -> Any:
    """Params as the decoder's type, or as plain values (None for no params) without one.

    Absent params are an empty object to a typed decoder. Raises RpcError: -32602 for the wrong shape, -32700 for text
    that is not JSON at all.
    """
    if decoder is None:
        if params is NO_PARAMS:
            return None
        decoder = UNTYPED
    decode = decoder.decode  # a name of its own: read as an attribute it is faster than called as a method
    try:
        return decode(params)
    except UNREADABLE as error:
        if params is NO_PARAMS:  # asked for here, where it costs the others nothing
            return _decode_absent(decoder)
        return _decode_again(decoder, params, error, ErrorCode.INVALID_PARAMS)


def decode_result(decoder: Decoder | None, result: Raw) -> Any:
    """A result as the decoder's type, or as plain values. Raises RpcError -32603: it is a local failure (SR-03)."""
    if decoder is None:
        decoder = UNTYPED
    try:
        return decoder.decode(result)
    except UNREADABLE as error:
        return _decode_again(decoder, result, error, ErrorCode.INTERNAL_ERROR)


def result_to_forward(result: Raw) -> Any:
    """An untyped result for another peer: as it came, numbers of any size included. What is no UTF-8 or holds lone
    surrogates is decoded, which mends it, and so is null, which may be no answer to a cancelled request. Raises as
    `decode_result`.
    """
    try:
        text = str(result, "utf-8")
    except UnicodeDecodeError:
        return decode_result(None, result)
    if text == "null" or r"\ud" in text or r"\uD" in text:
        return decode_result(None, result)
    return result


def encoding_error(error: Exception) -> RpcError:
    """What a value that cannot be written is answered with (OU-13, RS-08)."""
    return RpcError.internal_error({"error": _readable(error), "phase": "serialization"})


def line_too_long(method: str, size: int, limit: int) -> RpcError:
    """What a message that is longer than `Limits.line_out_bytes` fails with, instead of being written."""
    return RpcError.internal_error(
        {
            "reason": "line_too_long",
            "error": f"{method} is {size} bytes on the wire, over the limit of {limit}",
            "size": size,
            "limit": limit,
            "option": "Limits.line_out_bytes",
        }
    )


UNTYPED = Decoder(msgspec.json.Decoder().decode)
"""What decodes to plain values."""


def _own_decoder(type_: Any) -> Callable[[Any], Decoder] | None:
    """How a type wants to be decoded: said by it, or by a part of it (a member of a union, an element of a list)."""
    make: Callable[[Any], Decoder] | None = getattr(type_, "__acprt_decoder__", None)
    for part in () if make is not None else get_args(type_):
        make = make or _own_decoder(part)
    return make


def _decode_absent(decoder: Decoder) -> Any:
    try:
        return decoder.decode(_EMPTY_OBJECT)
    except msgspec.ValidationError as error:
        raise _decoding_error(error, b"null", ErrorCode.INVALID_PARAMS) from None


def _decode_again(decoder: Decoder, raw: Raw, error: Exception, code: ErrorCode) -> Any:
    """Further attempts, lenient and on mended text; raises the error to answer with."""
    text = bytes(raw)
    again = decoder.decode_again
    if again is not None:
        try:
            return again(text)
        except UNREADABLE as second:
            error = second
    mended = repair(text)
    if mended is not None:
        try:
            return (again or decoder.decode)(mended)
        except UNREADABLE as second:
            error = second
    raise _decoding_error(error, text, code) from None


def _decoding_error(error: Exception, text: bytes, code: ErrorCode) -> RpcError:
    # A number past a double is the one unreadable text that msgspec reports as a matter of type.
    wrong_shape = isinstance(error, msgspec.ValidationError) and not str(error).startswith("Number out of range")
    data = {"error": _readable(error), "json": _echo(text), "phase": "deserialization"}
    if code == ErrorCode.INTERNAL_ERROR:
        return RpcError.internal_error(data)
    return RpcError.invalid_params(data) if wrong_shape else RpcError.parse_error(data)


def _echo(text: bytes) -> Any:
    """The offending JSON as a value when it is small and readable, else the start of its text."""
    if len(text) <= _ECHO:
        try:
            return msgspec.json.decode(text)
        except UNREADABLE:
            pass
    return text[: 4 * _ECHO].decode("utf-8", "replace")[:_ECHO]


def _readable(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:_WHY]
