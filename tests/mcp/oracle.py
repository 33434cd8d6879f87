"""What a cancel means, told once more without any code of the package: `json` for the text, `Fraction` for numbers.

Slow and plain. It answers with the kind of the error, or with the members of the payload in a form that two readers of
the same frame must agree on.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

PREFIX = "io.modelcontextprotocol/"
_LABEL = "[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"({_LABEL}([.]{_LABEL})*/)?([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")


class Number(str):
    """The token of a number."""


class Absent:
    """No such member."""


def verdict(modern: bool, from_server: bool, profile: str, line: bytes) -> Any:
    """The kind of the error, or `(id, reason, metadata, additional)` with numbers as the tokens they were."""
    try:
        value = json.loads(
            line.decode(), parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=_members
        )
    except (ValueError, RecursionError):
        return "InvalidEnvelope"
    if not isinstance(value, dict) or line.startswith(b"\xef\xbb\xbf"):
        return "InvalidEnvelope"
    if value.get("jsonrpc") != "2.0" or is_number(value["jsonrpc"]) or value.keys() - _ENVELOPE:
        return "InvalidEnvelope"
    if not is_text(value.get("method")):
        return "InvalidEnvelope"
    if "id" in value:
        return "InvalidEnvelope" if id_of(value["id"]) is None else "RequestIdPresent"
    if value["method"] != "notifications/cancelled":
        return "UnexpectedMethod"
    params = value.get("params")
    if params is None:
        return "MissingParameters"
    return _payload(modern, from_server, profile, params) or "InvalidParameters"


_ENVELOPE = {"jsonrpc", "id", "method", "params"}


def is_number(value: Any) -> bool:
    return isinstance(value, Number)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and not is_number(value)


def id_of(value: Any) -> tuple[str, Any] | None:
    """Kind and value of an id, None for what is none."""
    if is_text(value):
        return ("s", value) if len(json.dumps(value, ensure_ascii=False).encode()) <= 256 else None
    if not is_number(value) or len(value) > 4096:
        return None
    if "e" in value.lower() and abs(int(value.lower().partition("e")[2])) > 10_000:
        return None
    number = Fraction(value)
    return ("i", int(number)) if number.denominator == 1 else None


def _payload(modern: bool, from_server: bool, profile: str, params: Any) -> Any:
    if not isinstance(params, dict):
        return None
    rest = dict(params)
    id, reason, meta = (rest.pop(name, Absent) for name in ("requestId", "reason", "_meta"))
    key = id_of(id)
    if key is None or (reason is not Absent and not is_text(reason)) or (rest and not modern):
        return None
    if meta is None and not modern and profile == "0.8":
        meta = Absent
    if meta is not Absent:
        if not isinstance(meta, dict) or len(meta) > 128 or (profile == "0.5" and not modern):
            return None
        if any(len(name) > 512 or not _KEY.fullmatch(name) for name in meta):
            return None
        if not modern and any(name.startswith(PREFIX) for name in meta):
            return None
        subscription = meta.get(PREFIX + "subscriptionId", Absent)
        if subscription is not Absent:
            if id_of(subscription) is None:
                return None
            if profile == "0.8" and from_server and id_of(subscription) != key:
                return None
    return id, reason, meta, rest


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    json.dumps(pairs, ensure_ascii=False).encode()  # no half of a surrogate pair, in whichever member of a name
    return dict(pairs)


def _refuse(_token: str) -> Any:
    raise ValueError("no JSON")
