"""Frames that are nearly a cancel, drawn from any source of random numbers: a seeded one for masses of them, one of
Hypothesis for a few that shrink.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

__all__ = ["cancel_frame"]

Token = Callable[[random.Random], str]

_STRINGS = ("", "1", "l1", "user", "null", "-0", "é", "\U0001f600", "\x00", '"\\', "a" * 254, "a" * 255)
_ALPHABET = 'ab1 .-/_"\\\n\té\u2028\U0001f600\x7f'
_ODD_STRINGS = ('"\\ud800"', '"\\/"', '"\\u0061"', '"\\ud83d\\ude00"', '"\\x"', '"\t"')
_NUMBERS = (
    *("-0", "0.0", "1.0", "1.5", "1e3", "1E+2", "10e-1", "1e-1", "-0.0e5", "0e-2", "1.50e1", "1e10000", "1e10001"),
    *("1e400", "-1e-10001", "01", "+1", "1.", ".5", "1e", "--1", "NaN"),
    *("9" * digits for digits in (4096, 4097, 4400)),
)
_WORDS = ("null", "true", "false", "nul", "{}", "[]")
_SPACES = ("", "", "", " ", "\n", "\t \r\n")
_META_NAMES = (
    *('"io.modelcontextprotocol/subscriptionId"',) * 3,
    *('"io.modelcontextprotocol/protocolVersion"', '"io.modelcontextprotocol/related-task"', '"traceparent"'),
    *('"com.example/x"', '"-bad/x"', '""', '"a b"', '"a/"', '"io.model\\u0063ontextprotocol/serverInfo"'),
)
_OTHER_NAMES = ('"awaitCleanup"', '"requ\\u0065stId"', '"reason"', '"additional"', '"é"', '"_meta"')
_ODD_MEMBERS = (
    *('"jsonrpc":"1.0"', '"jsonrpc":2.0', '"jsonrpc":"\\u0032.0"', '"method":"$/cancel_request"'),
    *('"method":null', '"params":null', '"params":[1]', '"params":""', '"extra":1'),
)
_DAMAGE = (b"\xff", b"\xef\xbb\xbf", b"\x00", b"", b"}")


def cancel_frame(choose: random.Random) -> bytes:
    """Mostly a notification of the right method around a payload."""
    found = ['"jsonrpc":"2.0"', '"method":"notifications/cancelled"', f'"params":{_payload(choose)}']
    odd = choose.randrange(12)
    if odd == 0:
        found[choose.randrange(3)] = choose.choice(_ODD_MEMBERS)
    elif odd == 1:
        found.append(f'"id":{_id(choose)}')
    elif odd == 2:
        del found[choose.randrange(3)]
    choose.shuffle(found)
    line = f"{{{_space(choose)}{','.join(found)}{_space(choose)}}}{_space(choose)}".encode()
    if choose.randrange(30) == 0:
        at = choose.randrange(len(line) + 1)
        line = line[:at] + choose.choice(_DAMAGE) + line[at + 1 :]
    return line


def _payload(choose: random.Random) -> str:
    """Mostly the members of a cancel, mostly well-formed."""
    found = [f'"requestId":{_id(choose)}'] if choose.randrange(10) else []
    if choose.randrange(2):
        found.append(f'"reason":{_string(choose) if choose.randrange(2) else _scalar(choose)}')
    if choose.randrange(3) == 0:
        found.append(f'"_meta":{_meta(choose)}')
    if choose.randrange(4) == 0:
        found.append(f"{choose.choice(_OTHER_NAMES)}:{_value(choose, 2)}")
    choose.shuffle(found)
    return f"{{{(',' + _space(choose)).join(found)}{_space(choose)}}}"


def _id(choose: random.Random) -> str:
    return choose.choice((_number, _number, _string, _scalar))(choose)


def _meta(choose: random.Random) -> str:
    kind = choose.randrange(3)
    if kind == 0:
        return choose.choice(_WORDS)
    return _object(choose, lambda choose: choose.choice(_META_NAMES), _scalar if kind == 1 else _value_two_deep)


def _value(choose: random.Random, depth: int) -> str:
    """Any JSON, or nearly."""
    kind = choose.randrange(4) if depth else 3
    if kind == 0:
        return "[" + ", ".join(_value(choose, depth - 1) for _ in range(choose.randrange(4))) + "]"
    if kind == 1:
        return _object(choose, _string, lambda choose: _value(choose, depth - 1))
    return _scalar(choose)


def _value_two_deep(choose: random.Random) -> str:
    return _value(choose, 2)


def _object(choose: random.Random, name: Token, value: Token) -> str:
    """Members in any order, twice perhaps, with any white space."""
    members = (
        f"{_space(choose)}{name(choose)}{_space(choose)}:{value(choose)}{_space(choose)}"
        for _ in range(choose.randrange(5))
    )
    return "{" + ",".join(members) + "}"


def _scalar(choose: random.Random) -> str:
    return choose.choice((_string, _odd_string, _number, _word))(choose)


def _string(choose: random.Random) -> str:
    if choose.randrange(2):
        text = choose.choice(_STRINGS)
    else:
        text = "".join(choose.choice(_ALPHABET) for _ in range(choose.choice((0, 1, 3, 10, 45, 60, 300))))
    return json.dumps(text, ensure_ascii=bool(choose.randrange(2)))


def _odd_string(choose: random.Random) -> str:
    return choose.choice(_ODD_STRINGS)


def _number(choose: random.Random) -> str:
    kind = choose.randrange(4)
    if kind == 0:
        return str(choose.randrange(-5, 20))
    if kind == 1:
        return str(choose.randrange(-(2**80), 2**80))
    if kind == 2:
        return choose.choice(_NUMBERS)
    fraction = f".{choose.randrange(10_000)}" if choose.randrange(2) else ""
    exponent = (
        f"{choose.choice('eE')}{choose.choice(('', '+', '-'))}{choose.randrange(100)}" if choose.randrange(2) else ""
    )
    return f"{choose.choice(('', '-'))}{choose.randrange(2000)}{fraction}{exponent}"


def _word(choose: random.Random) -> str:
    return choose.choice(_WORDS)


def _space(choose: random.Random) -> str:
    return choose.choice(_SPACES)
