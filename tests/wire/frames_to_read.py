"""What the tests of frames share: valid lines of every kind, and reading with a kind in mind."""

from __future__ import annotations

from typing import TypeVar

from acprt.wire.frames import Frame, parse

F = TypeVar("F", bound=Frame)

BOM = b"\xef\xbb\xbf"

VALID = [
    b'{"jsonrpc":"2.0","id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"text":"h\xc3\xa9 \\ud83d\\ude00 \\n","n":[1,2.5,null,true]}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"a":{"b":[]}}}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"ok":true}}',
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"reason":"x"}}}',
    b'[{"jsonrpc":"2.0","id":3,"method":"m"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"result":null}]',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}',
]


def read(kind: type[F], line: bytes) -> F:
    """The frame that `line` is, which must be of this kind."""
    frame = parse(line)
    assert isinstance(frame, kind)
    return frame
