"""Lines to torment an endpoint with, and what it may say to each of them, told without any code of the runtime.

A verdict is the number of answers that a serving endpoint owes: 0, 1, or the slots of an array; `None` where a reader
may see it either way (damaged text, a key that stands twice), which still means one answer at most.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["SEEDS", "Answers", "Verdict", "judge", "mutated_lines"]

SEEDS: list[bytes] = [
    b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"hello","n":[1,2.5,-3e4,null,true,false]}}',
    b'{"jsonrpc":"2.0","id":"req-7","method":"echo","params":["\\ud83d\\ude00 \\u00e9 \\n \\\\ \\"",{"a":{"b":[]}}]}',
    '{"jsonrpc":"2.0","id":3,"method":"say","params":{"text":"gr\u00fc\u00df \U0001f600 \u2028"}}'.encode(),
    b'{"id":-9,"params":null,"method":"nope","jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null,"method":"echo"}',
    b'{"jsonrpc":"2.0","method":"heard","params":{"text":"x"}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"content":{"type":"text"}}}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","_meta":{"a.b":1}}}',
    b'{"jsonrpc":"2.0","id":2,"result":null}',
    b'{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"reason":"x"}}}',
    b'{"result":[1,2,3],"id":4,"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":5,"result":1,"error":null}',
    b'[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","method":"heard"},{"jsonrpc":"2.0","id":6,"result":0}]',
    b'[{"jsonrpc":"2.0","id":7,"result":1},{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"m"}}]',
    b'[1,{"jsonrpc":"2.0","id":2,"method":"say","params":{"text":"y"}}]',
    b"\xef\xbb\xbf" + b'{"jsonrpc":"2.0","id":9,"method":"echo","params":[]}',
    b"{}",
    b"[]",
    b"null",
    b"plain text on the wire",
]
_TOKENS = (
    b'"jsonrpc":"2.0"', b'"id":', b'"method":"echo"', b'"result":', b'"error":', b'"params":', b"null", b"true",
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\ud800", b"1e400", b"NaN", b"\xff", b"\xef\xbb\xbf", b"\x00",
    b"\r", b" ", b"0",
)  # fmt: skip

_VALUES = [json.loads(seed) for seed in SEEDS if seed[:1] in b"{[n"]
_KEYS = ("jsonrpc", "id", "method", "params", "result", "error", "extra")
_ATOMS: tuple[Any, ...] = (
    None, True, 0, 1, 2, -1, 1.5, 2**53, 2**63, "", "2.0", "1.0", "echo", "say", "heard", "1", [], {}, [1], {"a": 1},
    {"code": 1, "message": "m"}, {"code": "1"}, {"text": "x"}, {"requestId": 1}, "\ud800", "\u2028", [[[[]]]],
)  # fmt: skip


class Answers(Enum):
    """Who may be answered."""

    OWED = "exactly one"
    NONE = "none"
    OPEN = "none or one"


class Verdict(NamedTuple):
    """What a line asks for: of an endpoint that serves, of one that spawned its peer; the slots of its array; type and
    value of its id when it is a well-formed request, which a cancel can reach.
    """

    serving: Answers
    spawner: Answers
    slots: int | None = None
    request: tuple[type, Any] | None = None


_OPEN = Verdict(Answers.OPEN, Answers.OPEN)
_SILENT = Verdict(Answers.NONE, Answers.NONE)


class _Duplicate(ValueError):
    pass


def judge(line: bytes, limit: int = 2**30) -> Verdict:
    """What `line` asks for, where lines of `limit` bytes are read."""
    if len(line.removesuffix(b"\r")) > limit:
        return _OPEN
    if not line.strip():
        return _SILENT
    try:
        text = line.decode().removeprefix("\ufeff")
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return _OPEN
    if not isinstance(value, list):
        return _verdict(value)
    if not value:
        return Verdict(Answers.OWED, Answers.NONE)
    verdicts = [_verdict(member) for member in value]
    return Verdict(
        Answers.OWED if any(verdict.serving is Answers.OWED for verdict in verdicts) else Answers.NONE,
        Answers.OWED if any(verdict.spawner is Answers.OWED for verdict in verdicts) else Answers.NONE,
        sum(verdict.serving is Answers.OWED for verdict in verdicts),
    )


def _verdict(value: Any) -> Verdict:
    if not isinstance(value, dict):
        return Verdict(Answers.OWED, Answers.NONE)
    if "method" not in value and ("result" in value or "error" in value or value.keys() in ({"jsonrpc", "id"}, {"id"})):
        return _SILENT
    method, id = value.get("method"), value.get("id")
    is_text_or_number = isinstance(id, str) or (type(id) is int and -(2**63) <= id < 2**63)
    well_formed = (
        value.get("jsonrpc") == "2.0"
        and isinstance(method, str)
        and isinstance(value.get("params"), dict | list | None)
        and not value.keys() & {"result", "error"}
        and ("id" not in value or id is None or is_text_or_number)
    )
    if well_formed and "id" not in value:
        return _SILENT
    if well_formed:
        return Verdict(Answers.OWED, Answers.OWED, request=(type(id), id))
    if isinstance(method, str) and is_text_or_number:
        return Verdict(Answers.OWED, Answers.OWED)
    return Verdict(Answers.OWED, Answers.NONE)


def mutated_lines(seed: int, count: int) -> Iterator[bytes]:
    """`count` lines without line feeds; two thirds have damaged bytes, a third other members. The same for a seed."""
    choose = random.Random(seed)
    made = 0
    while made < count:
        mutated = _rebuilt(choose) if made % 3 == 2 else _damaged(choose)
        for line in mutated.split(b"\n"):
            yield line
            made += 1
            if made == count:
                return


def _rebuilt(choose: random.Random) -> bytes:
    """JSON whose members are not what they were."""
    value = choose.choice(_VALUES)
    for _ in range(choose.randint(1, 3)):
        value = _edited(value, choose)
    return json.dumps(value, ensure_ascii=choose.random() < 0.5, separators=(",", ":")).encode("utf-8", "replace")


def _edited(value: Any, choose: random.Random) -> Any:
    if isinstance(value, list) and value and choose.random() < 0.7:
        place = choose.randrange(len(value))
        return [*value[:place], _edited(value[place], choose), *value[place + choose.randint(0, 1) :]]
    if not isinstance(value, dict):
        return choose.choice(_ATOMS)
    members = dict(value)
    match choose.randrange(6):
        case 0 if members:
            del members[choose.choice(list(members))]
        case 1 if members:
            members[choose.choice(list(members))] = choose.choice(_ATOMS)
        case 2:
            members[choose.choice(_KEYS)] = choose.choice(_ATOMS)
        case 3 if members:
            name = choose.choice(list(members))
            members[name] = _edited(members[name], choose)
        case 4:
            members = dict(choose.sample(list(members.items()), len(members)))
        case _:
            return [members, choose.choice(_VALUES)] if choose.random() < 0.5 else [members]
    return members


def _damaged(choose: random.Random) -> bytes:
    """Bytes changed, lost, doubled, cut and spliced."""
    text = bytearray(choose.choice(SEEDS))
    for _ in range(choose.choice((0, 1, 1, 1, 2, 2, 3, 5))):
        place = choose.randrange(len(text) + 1)
        match choose.randrange(8):
            case 0:
                text[place : place + 1] = bytes([choose.randrange(256)])
            case 1:
                del text[place : place + choose.randint(1, 12)]
            case 2:
                text[place:place] = text[place : place + choose.randint(1, 24)]
            case 3:
                del text[place:]
            case 4:
                text[place:place] = choose.choice(_TOKENS)
            case 5:
                text[place : place + choose.randint(0, 6)] = choose.choice(_TOKENS)
            case 6:
                other = choose.choice(SEEDS)
                text[place:] = other[choose.randrange(len(other)) :]
            case _ if place < len(text):
                text[place] ^= 1 << choose.randrange(8)
    return bytes(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Duplicate
    return members
