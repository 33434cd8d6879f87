"""What the schema says of a message, without the leniency with which a client reads it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from acprt.runtime.messages import Notification, Request, method_of, reply_type_of
from acprt.wire.payloads import decoder_for

__all__ = ["fault_in_call", "fault_in_result", "known_methods"]

_OPEN = "Invalid value"  # how msgspec begins to tell of a tag or a name that it does not know, which may be a newer one


def known_methods(version: int) -> frozenset[str]:
    """Every method of a version, the unstable ones included."""
    return frozenset(_messages(version))


def fault_in_call(version: int, method: str, params: Any) -> str | None:
    """What is wrong with the params of a request or a notification; None if nothing, or nobody can tell."""
    message = _messages(version).get(method)
    return None if message is None else _fault(message, {} if params is None else params)


def fault_in_result(version: int, method: str, result: Any) -> str | None:
    """What is wrong with the result of a request; None if nothing, or nobody can tell."""
    message = _messages(version).get(method)
    if message is None or not issubclass(message, Request):
        return None
    return _fault(reply_type_of(message), result)


def _fault(type_: Any, value: Any) -> str | None:
    text = msgspec.json.encode(value)
    decoder = decoder_for(type_)
    try:
        decoder.decode(text)
    except msgspec.ValidationError as error:
        if not str(error).startswith(_OPEN):
            return str(error)
        try:
            if decoder.decode_again is not None:  # what is beside the name that is not known
                decoder.decode_again(text)
        except msgspec.ValidationError as other:
            return str(other)
    return None


@lru_cache(maxsize=2)
def _messages(version: int) -> dict[str, Any]:
    if version == 1:
        from acprt.acp.schema import v1 as schema
    else:
        from acprt.acp.schema import v2 as schema  # type: ignore[no-redef]  # one or the other
    found: dict[str, Any] = {}
    for name in schema.__all__:
        value = getattr(schema, name)
        if isinstance(value, type) and issubclass(value, Request | Notification):
            try:
                found[method_of(value)] = value
            except TypeError:  # a base of messages has no method
                continue
    return found
