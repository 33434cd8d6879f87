"""Lines that are not a message: what is wrong with them, whose request they fail, and who may be answered.

It decides nothing about sending: a relay may pass such a line on, an endpoint may answer it (CH-03).
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from acprt.errors import RpcError, mask_secrets
from acprt.wire.ids import RequestId, is_request_id
from acprt.wire.lines import OversizedLine

__all__ = ["MalformedFrame", "malformed_from_json", "malformed_from_size", "malformed_from_text"]

_EXCERPT = 1000  # characters of the line that an error repeats: enough to recognise it, never an amplifier (PY-42)
_MEMBERS = 32  # of a damaged object that are looked at: an envelope has five
_WHY = 200  # characters of the reason: msgspec repeats the values that it refuses
_LAST_ID = rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")\s*\}\s*$'
_SPACE = r"[ \t\r\n]*"  # like the one above compiled by `re` for the first damaged line, not at each start
_LF, _CR = 0x0A, 0x0D


class MalformedFrame(msgspec.Struct):
    """A line that is not a message.

    `error` is what its sender would be told and `answer_id` under which id; `is_reply` says it has the shape of an
    answer, which is never answered; `reply_id` is the request of ours that it fails, when that can be read.
    """

    raw: bytes
    error: RpcError
    answer_id: RequestId = None
    is_request: bool = False  # an object with a string method and a legal id that is not null
    is_reply: bool = False
    reply_id: RequestId | UnsetType = UNSET

    def excerpt(self, limit: int = 200) -> str:
        """The start of the line as text, for a log, with secrets masked."""
        return mask_secrets(self.raw[: 4 * limit].decode("utf-8", "replace"))[:limit]

    def on_one_line(self) -> bytes:
        """The line as it came; compacted, or as a JSON string, if it holds a line break (CH-04)."""
        if _LF not in self.raw and _CR not in self.raw:
            return self.raw
        try:
            return msgspec.json.format(self.raw, indent=-1)
        except (msgspec.MsgspecError, RecursionError):
            return msgspec.json.encode(self.raw.decode("utf-8", "replace"))


def malformed_from_text(line: bytes, error: Exception) -> MalformedFrame:
    """Not one JSON value, or not UTF-8 (FR-10, FR-11)."""
    frame = MalformedFrame(line, RpcError.parse_error())
    frame.error.data = {"error": _readable(error), "line": frame.excerpt(_EXCERPT)}
    _tell_who(frame, _readable_members(line), whole=False)
    return frame


def malformed_from_json(line: bytes, why: str) -> MalformedFrame:
    """JSON, but no JSON-RPC message (FR-20, FR-21, FR-22, FR-27)."""
    frame = MalformedFrame(line, RpcError.invalid_request())
    frame.error.data = {"error": why[:_WHY], "line": frame.excerpt(_EXCERPT)}
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):  # damaged inside a member that is kept raw
        _tell_who(frame, _readable_members(line), whole=False)
    else:
        if isinstance(value, dict):
            _tell_who(frame, value, whole=True)
    return frame


def malformed_from_size(line: OversizedLine) -> MalformedFrame:
    """Longer than the limit; its id is read from its head or its tail where possible."""
    facts = {
        "reason": "line_too_long",
        "error": f"a line of {line.size} bytes is over the limit of {line.limit}; Limits(line_bytes=…) raises it",
        "size": line.size,
        "limit": line.limit,
        "option": "Limits.line_bytes",
    }
    frame = MalformedFrame(line.head, RpcError.invalid_request(facts))
    members = _readable_members(line.head)
    if "id" not in members and (last := re.search(_LAST_ID, line.tail)):
        with suppress(msgspec.MsgspecError):  # a lone surrogate, say: then it is no legal id
            members["id"] = msgspec.json.decode(last[1])
    _tell_who(frame, members, whole=False)
    return frame


def _tell_who(frame: MalformedFrame, members: dict[str, Any], *, whole: bool) -> None:
    """Fill in whose line this is, from the members of the object that are known: all of them, or the readable ones."""
    id_is_legal = "id" in members and is_request_id(members["id"])
    answers = "result" in members or "error" in members
    bare = "id" in members and members.keys() <= {"jsonrpc", "id"}
    if "method" in members:
        frame.is_request = id_is_legal and members["id"] is not None and type(members["method"]) is str
    elif answers or (bare and whole):
        frame.is_reply = True  # never answer an answer, however broken (FR-22, ER-04, DEC-22)
    if id_is_legal:
        frame.answer_id = members["id"]
        if answers or bare:  # cut behind its id it may have been either: answered, yet nobody is left waiting (FR-27)
            frame.reply_id = members["id"]


def _readable_members(head: bytes) -> dict[str, Any]:
    """The leading members of an object whose text is cut or damaged further on; a member cut in its value is None."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    members: dict[str, Any] = {}
    from json import JSONDecoder  # a millisecond of import time that only damaged lines need

    decoder = JSONDecoder()
    if not text.startswith("{"):
        return members
    at = 1
    try:
        for _ in range(_MEMBERS):
            name, at = decoder.raw_decode(text, _after_space(text, at))
            at = _after_space(text, at)
            if type(name) is not str or text[at : at + 1] != ":":
                return members
            members.setdefault(name, None)
            if name == "id":
                del members["id"]
            value, at = decoder.raw_decode(text, _after_space(text, at + 1))
            at = _after_space(text, at)
            if name == "id" and text[at : at + 1] not in (",", "}"):
                break  # 7 at the cut may be the start of 77: a cut id is no id
            members[name] = value
            if text[at : at + 1] != ",":
                break
            at += 1
    except (ValueError, RecursionError):
        pass  # cut or damaged here: what stands before it counts
    return members


def _after_space(text: str, at: int) -> int:
    found = re.compile(_SPACE).match(text, at)
    return at if found is None else found.end()


def _readable(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:_WHY]
