"""Payloads made from the annotations of a class: with what is required only, or with every member it has."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

TOGETHER: dict[str, dict[str, Any]] = {
    "CreateElicitationRequest": {
        "mode": "form",
        "message": "Who?",
        "sessionId": "s",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "CreateElicitationResponse": {"action": "accept", "content": {"name": "Ada"}},
    "SetSessionConfigOptionRequest": {"sessionId": "s", "configId": "c", "type": "boolean", "value": True},
    "MessageMcpResponse": {"result": {"content": []}},
}
"""Classes whose members depend on each other."""


def sample(cls: Any, full: bool) -> Any:
    """A payload for a message class; `full`: every member is there."""
    return _object(inspect.type_info(cls), full)


def _object(info: Any, full: bool) -> dict[str, Any]:
    if info.cls.__name__ in TOGETHER:
        return TOGETHER[info.cls.__name__]
    payload = {} if info.tag_field is None else {info.tag_field: info.tag}
    for field in info.fields:
        if full or field.required:
            payload[field.encode_name] = _value(field.type, full)
    return payload


def _value(info: Any, full: bool) -> Any:
    match info:
        case inspect.Metadata(type=inner):
            return _value(inner, full)
        case inspect.StructType():
            return _object(info, full)
        case inspect.UnionType(types=types):
            return _value(next(each for each in types if not isinstance(each, inspect.NoneType)), full)
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.ListType(item_type=item):
            return [_value(item, full)]
        case inspect.DictType(value_type=value):
            return {"key": _value(value, full)}
        case inspect.CustomType(cls=cls):
            return _value(inspect.type_info(cls.__subclasses__()[-1]), full)
        case inspect.StrType():
            return "text"
        case inspect.IntType(ge=least):
            return max(least or 0, 1)
        case inspect.FloatType():
            return 0.5
        case inspect.BoolType():
            return True
        case inspect.AnyType():
            return {"any": [1, None]}
    raise AssertionError(f"no sample for {info}")
