"""JSON payloads made from the annotations of message classes: right ones, and the same with a few things wrong.

Seeded, so that a failure can be repeated. What an annotation does not say (which strings are URLs) is told from names.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

WORDS = ["", "a", "alpha", "session-1", "ä 🙂 \u2028", "/tmp/x", "null", "true", "1", "_x", "text/plain"]
TAG_NAMES = ("sessionUpdate", "type", "outcome", "mode", "action", "state", "stopReason", "operation", "kind", "status")
UNKNOWN_TAGS = ["from_the_future", "_vendor/thing", "TEXT", ""]
ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    70_000,
    2**33,
    2**53 - 1,
    "",
    "text",
    [],
    [1],
    {},
    {"a": 1},
    [None],
]
FORMATS = {
    "url": "https://example.com/a?b=c",
    "uri": "file:///tmp/a.txt",
    "src": "https://example.com/icon.png",
    "data": "aGVsbG8=",
    "blob": "aGVsbG8=",
    "updatedAt": "2026-01-02T03:04:05Z",
    "lastModified": "2026-01-02T03:04:05Z",
    "baseUrl": "https://example.com/v1",
}
STATES = {"state": {"idle": {"stopReason", "usage"}}, "stopReason": {"error": {"error"}}}
WHOLE_UNIONS: dict[str, dict[str, dict[str, set[str]]]] = {
    "CreateElicitationRequest": {"mode": {"form": {"requestedSchema"}, "url": {"elicitationId", "url"}}},
    "CreateElicitationResponse": {"action": {"accept": {"content"}}},
    "SessionState": STATES,
    "StateUpdate": STATES,
}
"""Classes that stand for every variant of a union: tag, its value, and the members that go with that value only."""
ONE_OF: dict[str, list[set[str]]] = {
    "CreateElicitationRequest": [{"sessionId", "toolCallId"}, {"requestId"}],
    "MessageMcpResponse": [{"result"}, {"error"}],
}
"""Members of classes that exclude each other."""
DEPTH = 7
"""Below it, only what is required: the types of some schemas contain themselves."""


class Payloads:
    """A source of payloads for message classes. Two sources with the same seed make the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._infos: dict[Any, inspect.Type] = {}

    def right(self, message: type) -> Any:
        """A payload that the class accepts."""
        return self._value(self._info(message), "", 0)

    def wrong(self, payload: Any, changes: int) -> Any:
        """A copy of the payload with so many changes, each of which may break it or not."""
        payload = copy.deepcopy(payload)
        for _ in range(changes):
            places = list(places_of(payload))
            if not places:
                return self._random.choice(ODD_VALUES)
            self._change(*self._random.choice(places))
        return payload

    def _info(self, of: Any) -> inspect.Type:
        info = self._infos.get(of)
        if info is None:
            info = self._infos[of] = inspect.type_info(of)
        return info

    def _value(self, info: inspect.Type, name: str, depth: int) -> Any:
        choose = self._random
        match info:
            case inspect.Metadata(type=inner):
                return self._value(inner, name, depth)
            case inspect.StructType():
                return self._object(info, depth)
            case inspect.UnionType(types=types):
                return self._value(choose.choice(plain_first(types, depth)), name, depth)
            case inspect.LiteralType(values=values):
                return choose.choice(values)
            case inspect.ListType(item_type=item, min_length=least):
                count = (least or 0) if depth > DEPTH else choose.randint(least or 0, 3)
                if isinstance(item, inspect.CustomType) and choose.random() < 0.9:  # some lists want one variant only
                    item = self._info(choose.choice(variants_of(item.cls)))
                return [self._value(item, name, depth + 1) for _ in range(count)]
            case inspect.DictType(value_type=value):
                return {f"key-{n}": self._value(value, "", depth + 1) for n in range(choose.randint(0, 2))}
            case inspect.StrType(min_length=least):
                return FORMATS.get(name) or choose.choice([word for word in WORDS if len(word) >= (least or 0)])
            case inspect.IntType(ge=least, le=most):
                low, high = max(least or 0, 1 - 2**53), min(most or 2**31, 2**53 - 1)  # what a double holds
                return choose.choice([low, high, choose.randint(low, min(high, low + 100))])
            case inspect.FloatType(ge=least, le=most):
                return choose.choice([0.5, least or 0, most or 1e6])
            case inspect.BoolType():
                return choose.random() < 0.5
            case inspect.NoneType():
                return None
            case inspect.AnyType() | inspect.RawType():
                return choose.choice(["text", 3, True, {"a": [1, None]}, [1, "b"], {}])
            case inspect.CustomType(cls=cls):
                return self._value(self._info(choose.choice(variants_of(cls))), name, depth)
        raise AssertionError(f"no payload for {info}")

    def _object(self, info: inspect.StructType, depth: int) -> dict[str, Any]:
        payload: dict[str, Any] = {}
        if info.tag_field is not None:
            payload[info.tag_field] = info.tag
        for field in info.fields:
            if field.required or (depth <= DEPTH and self._random.random() < 0.6):
                payload[field.encode_name] = self._value(field.type, field.encode_name, depth + 1)
        if self._random.random() < 0.95:  # the others mix what belongs to different variants
            self._choose_variant(info, payload, depth)
        names = list(payload)
        self._random.shuffle(names)  # a tag may stand anywhere in its object
        return {name: payload[name] for name in names}

    def _choose_variant(self, info: inspect.StructType, payload: dict[str, Any], depth: int) -> None:
        """Where one class stands for several variants: keep to the members of one."""
        name = info.cls.__name__
        for tag, variants in WHOLE_UNIONS.get(name, {}).items():
            self._keep(variants.get(payload.get(tag, ""), set()), set().union(*variants.values()), info, payload, depth)
        if name in ONE_OF:
            self._keep(self._random.choice(ONE_OF[name]), set().union(*ONE_OF[name]), info, payload, depth)
        if name == "SetSessionConfigOptionRequest":
            payload.pop("type", None)
            if isinstance(payload["value"], bool):
                payload["type"] = "boolean"
            elif any(field.encode_name == "type" and field.required for field in info.fields):
                payload |= {"type": "id", "value": "value-1"}

    def _keep(
        self, wanted: set[str], of_all: set[str], info: inspect.StructType, payload: dict[str, Any], depth: int
    ) -> None:
        for field in info.fields:
            name = field.encode_name
            if name in of_all - wanted:
                payload.pop(name, None)
            elif name in wanted and payload.get(name) is None:
                payload[name] = self._value(field.type, name, depth + 1)

    def _change(self, holder: Any, key: Any) -> None:
        choose = self._random
        old = holder[key]
        tags = [name for name in TAG_NAMES if isinstance(old, dict) and isinstance(old.get(name), str)]
        what = choose.random()
        if tags and what < 0.35:
            old[choose.choice(tags)] = choose.choice(UNKNOWN_TAGS)
        elif what < 0.45:
            holder[key] = None
        elif what < 0.75:
            holder[key] = copy.deepcopy(choose.choice(ODD_VALUES))
        elif what < 0.85 and isinstance(old, dict):
            old[choose.choice(["extraKey", "_meta", "type", "id"])] = copy.deepcopy(choose.choice(ODD_VALUES))
        elif what < 0.9 and isinstance(old, list):
            old.insert(choose.randint(0, len(old)), copy.deepcopy(choose.choice(ODD_VALUES)))
        else:
            del holder[key]


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a value that can be changed: what holds it, and its key or index there."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield value, key
        yield from places_of(inner)


def plain_first(types: tuple[inspect.Type, ...], depth: int) -> list[inspect.Type]:
    """The members of a union to choose from; the deep ones are left out where it is deep enough already."""
    real = [each for each in types if not (isinstance(each, inspect.StructType) and each.tag == "\0")]
    plain = [each for each in real if not isinstance(each, inspect.ListType | inspect.DictType | inspect.StructType)]
    return plain if plain and depth > DEPTH else real


def variants_of(marker: type) -> list[type]:
    """The classes of a union that no tag tells apart."""
    subclasses: list[type] = marker.__subclasses__()
    return [each for each in subclasses if issubclass(each, msgspec.Struct)]


def reachable_from(message: type) -> set[type]:
    """The class, and every class that can stand somewhere below it."""
    found: set[type] = set()
    _reach(inspect.type_info(message), found)
    return found


def _reach(info: inspect.Type, found: set[type]) -> None:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            if cls not in found:
                found.add(cls)
                for field in fields:
                    _reach(field.type, found)
        case inspect.CustomType(cls=cls):
            for variant in variants_of(cls):
                _reach(inspect.type_info(variant), found)
        case inspect.UnionType(types=types):
            for each in types:
                _reach(each, found)
        case inspect.Metadata(type=inner) | inspect.ListType(item_type=inner) | inspect.DictType(value_type=inner):
            _reach(inner, found)
