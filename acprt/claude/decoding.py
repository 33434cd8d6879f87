"""A line becomes a typed message, and a message a line.

Two steps: the header says which kind it is, then the same bytes are decoded as that kind. What does not fit is taken
apart a second time, leniently: a bad optional member costs itself, an unknown kind or a missing required member leaves
an `UnknownMessage`. Only text that is no JSON object raises. Nothing that came is lost on the way out again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw

from acprt.claude import control_messages, messages, system, task_messages
from acprt.claude.base import KINDS, OPEN, Message, SystemMessage, UnknownMessage, UnknownPart
from acprt.claude.errors import UnreadableLine
from acprt.wire.repair import repair

__all__ = ["decode", "decode_leniently", "encode"]

_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)
_CATALOGUE = (control_messages, messages, system, task_messages)  # importing them has filled KINDS
_LF = 0x0A


class _Header(msgspec.Struct, gc=False):
    type: str
    subtype: str | None = None


_decode_header = msgspec.json.Decoder(_Header).decode
_decode_any = msgspec.json.Decoder().decode
_by_type: dict[str, Callable[[Any], Message]] = {
    type: msgspec.json.Decoder(cls).decode for (type, subtype), cls in KINDS.items() if subtype is None
}
_by_subtype: dict[str | None, Callable[[Any], Message]] = {
    subtype: msgspec.json.Decoder(cls).decode for (_, subtype), cls in KINDS.items() if subtype is not None
}


def decode(line: bytes | bytearray | memoryview | str | Raw) -> Message:
    """The message that one line of the stream is. Raises `UnreadableLine` when it is not a JSON object."""
    if type(line) is not bytes and type(line) is not Raw:
        line = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else bytes(line)
    try:
        header = _decode_header(line)
        message = (_by_subtype[header.subtype] if header.type == "system" else _by_type[header.type])(line)
    except (KeyError, *_UNREADABLE):
        return _decode_unusual(bytes(line))
    message._line = line
    return message


def encode(message: Message) -> bytes:
    """One line without terminator. A message that was decoded and not changed is the line that it came from; of one
    that was changed only what changed is written anew. Raises TypeError or ValueError for what is not JSON.
    """
    line = message.line
    if line is not None:
        before = decode(line)
        if before == message:
            return line if _LF not in line else msgspec.json.format(line, indent=-1)
        return msgspec.json.encode(_overlaid(_decode_any(line), before, message))
    text = msgspec.json.encode(message)
    if not isinstance(message, SystemMessage):
        return text
    return b'{"type":' + msgspec.json.encode(message.type) + b"," + text[1:]  # msgspec writes one tag, `subtype` here


def decode_leniently(type_: Any, text: bytes) -> Any:
    """JSON as `type_`, malformed optional members left out. Raises msgspec.ValidationError where that is not enough."""
    return _rebuilt(type_, _decode_any(text))


# -- the second attempt -----------------------------------------------------------------------------------------------


def _decode_unusual(line: bytes) -> Message:
    """A line that the fast path refused: mended, rebuilt leniently, or kept as unknown."""
    try:
        members = _decode_any(line)
    except _UNREADABLE as error:
        mended = repair(line)
        if mended is None:
            raise UnreadableLine(line, str(error)) from None
        return decode(mended)
    if not isinstance(members, dict):
        raise UnreadableLine(line, "not a JSON object")
    kind, subkind = members.get("type"), members.get("subtype")
    subkind = subkind if isinstance(subkind, str) else None
    message: Message | None = None
    if isinstance(kind, str):
        cls = KINDS.get((kind, subkind if kind == "system" else None))
        if cls is not None:
            try:
                message = _rebuilt(cls, members)
            except (msgspec.ValidationError, RecursionError):
                message = None
    if message is None:
        message = UnknownMessage(type=kind if isinstance(kind, str) else "", subtype=subkind)
    message._line = line
    return message


def _rebuilt(type_: Any, value: Any) -> Any:
    """`value` as `type_`, without those optional parts that are malformed. Raises msgspec.ValidationError."""
    is_open = get_origin(type_) is Annotated and OPEN in get_args(type_)
    if get_origin(type_) is Annotated:
        type_ = get_args(type_)[0]
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        origin, parts = get_origin(type_), get_args(type_)
        if isinstance(value, dict) and isinstance(type_, type) and issubclass(type_, msgspec.Struct):
            return _rebuilt_struct(type_, value)
        if origin is list and isinstance(value, list):
            return _survivors(parts[0], value)
        if origin in (Union, UnionType):
            found = _rebuilt_variant(parts, value)
            if found is not None:
                return found
        if is_open and isinstance(value, dict):
            return UnknownPart(value)
        raise error from None


def _rebuilt_struct(cls: type[msgspec.Struct], members: dict[str, Any]) -> Any:
    tag_field, tag = cls.__struct_config__.tag_field, cls.__struct_config__.tag
    if tag_field is not None and members.get(tag_field, tag) != tag:
        raise msgspec.ValidationError(f"not a {tag}")
    values: dict[str, Any] = {}
    for field in _fields(cls):
        if field.encode_name in members:
            try:
                values[field.name] = _rebuilt(field.type, members[field.encode_name])
            except msgspec.ValidationError:
                if field.required:
                    raise
        elif field.required:
            raise msgspec.ValidationError(f"{field.encode_name} is missing")
    return cls(**values)


def _rebuilt_variant(parts: tuple[Any, ...], value: Any) -> Any:
    for part in parts:
        if part is not type(None):
            try:
                return _rebuilt(part, value)
            except msgspec.ValidationError:
                continue
    return None


def _survivors(type_: Any, values: list[Any]) -> list[Any]:
    kept = []
    for value in values:
        try:
            kept.append(_rebuilt(type_, value))
        except msgspec.ValidationError:
            continue
    return kept


@lru_cache(maxsize=512)
def _fields(cls: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(cls)


# -- writing what was changed -----------------------------------------------------------------------------------------


def _overlaid(written: Any, before: Any, now: Any) -> Any:
    """The JSON `written`, of which `before` was decoded, with what `now` has otherwise."""
    if isinstance(now, msgspec.Struct) and type(before) is type(now) and isinstance(written, dict):
        members = dict(written)
        for field in _fields(type(now)):
            was, is_ = getattr(before, field.name), getattr(now, field.name)
            if was == is_:
                continue
            if is_ is None or is_ is msgspec.UNSET:
                members.pop(field.encode_name, None)
            else:
                members[field.encode_name] = _overlaid(members.get(field.encode_name), was, is_)
        return members
    if isinstance(now, list) and isinstance(before, list) and isinstance(written, list):
        if len(now) == len(before) == len(written):
            return [_overlaid(*each) for each in zip(written, before, now, strict=True)]
        known = [(old, text) for old, text in zip(before, written, strict=False)] if len(before) == len(written) else []
        return [next((text for old, text in known if old == each), cast("Any", each)) for each in now]
    return written if before == now else now
