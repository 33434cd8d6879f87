"""Messages whose integer id is spelled as other protocols do not allow: MCP has `1.0`, `-0` and 30 digits.

The id of such a request stays the raw token, so that its answer repeats it as the peer wrote it.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acprt.mcp.ids import correlation_key, parse_request_id
from acprt.wire.frames import UNREADABLE, Frame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId

__all__ = ["reread"]


class _Envelope(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: Raw
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


def reread(line: bytes, frame: Frame) -> Frame:
    """The message that a line is whose id is an integer in another spelling; else `frame`, as the runtime read it."""
    try:
        envelope = _decode_envelope(line)
    except UNREADABLE:
        return frame
    token = bytes(envelope.id)
    id = parse_request_id(token)
    if not isinstance(id, int):
        return frame
    # Everything else must be well-formed: the same message with a plain id is read by the usual rules.
    envelope.id = Raw(b"0")
    again = parse(msgspec.json.encode(envelope))
    if isinstance(again, RequestFrame):
        return RequestFrame(cast("RequestId", Raw(token)), again.method, again.params)
    if isinstance(again, ResponseFrame):
        return ResponseFrame(correlation_key(id), again.result, again.error)
    return frame
