"""The control protocol as a dialect of the runtime: its frames are read as requests and responses, and written so.

Control requests become requests by their subtype, cancels cancels, and every other line is a message for the client.
Ids of ours are strings on the wire and the runtime's numbers here. It decides nothing about turns or tasks.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from acprt.errors import ErrorCode, RpcError
from acprt.runtime.dialect import CancelNotice, Dialect
from acprt.wire.frames import Frame, MalformedFrame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId, WireId
from acprt.wire.lines import Line, OversizedLine
from acprt.wire.repair import repair

__all__ = ["LOST", "MESSAGE", "ClaudeDialect"]

MESSAGE = "message"
"""The method under which a line that is no control frame is dispatched, and a line of the host's is sent."""
LOST = "lost"
"""The method under which a line that was too long is dispatched."""

_CANCEL = "control_cancel_request"
_DIALOG = "request_user_dialog"
_PREFIX = "acprt-"
_CONTROL = b'"control_'  # in every control frame, and in few other lines: saves the others a decode (claude_decode)
_OUR_ID = re.compile(r"acprt-([1-9]\d{0,17})")
_ID = re.compile(rb'"request_id"\s*:\s*"([^"\\]{1,200})"')
_RESPONSE = re.compile(rb'"type"\s*:\s*"control_response"')
_REQUEST = re.compile(rb'"type"\s*:\s*"control_request"')
_RESULT = re.compile(
    rb'"type"\s*:\s*"result"|"duration_api_ms"\s*:|"terminal_reason"\s*:'
)  # `type` may be out of sight
_EMPTY = Raw(b"{}")
_ABSENT = Raw()
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)


class _Subtype(msgspec.Struct):
    subtype: str


class _Dialog(msgspec.Struct):
    dialog_kind: str


class _Outcome(msgspec.Struct):
    request_id: Any = None
    subtype: str = ""
    response: Raw = _EMPTY
    error: str | None = None
    error_code: str | None = None
    pending_permission_requests: Raw = _ABSENT
    pending_user_dialog_requests: Raw = _ABSENT


class _Header(msgspec.Struct):
    type: str


class _Envelope(msgspec.Struct):
    type: str
    request_id: WireId | msgspec.UnsetType = UNSET
    request: Raw = _ABSENT
    response: Raw = _ABSENT


_decode_header = msgspec.json.Decoder(_Header).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_subtype = msgspec.json.Decoder(_Subtype).decode
_decode_dialog = msgspec.json.Decoder(_Dialog).decode
_decode_outcome = msgspec.json.Decoder(_Outcome).decode
_encode = msgspec.json.encode


class ClaudeDialect(Dialect):
    """`dialog_kinds`: the kinds of dialog that the host shows. An ask for another is left unanswered."""

    name = "claude"
    cancel_methods = frozenset({_CANCEL})
    accepts_batches = False
    answers_cancelled = False  # who cancels does not wait, and ignores a late answer

    def __init__(self, dialog_kinds: frozenset[str] = frozenset()) -> None:
        self._dialog_kinds = dialog_kinds

    # -- in ------------------------------------------------------------------------------------------------------

    def parse(self, line: Line) -> Frame:
        """The frame that a line is: a control frame, or a message as it stands."""
        if type(line) is OversizedLine:
            return _parse_oversized(line)
        assert not isinstance(line, OversizedLine)
        if _CONTROL not in line:
            return NotificationFrame(MESSAGE, Raw(line))
        frame = _parse_control(line)
        if type(frame) is RequestFrame and frame.method == _DIALOG and not self._shows(frame):
            return NotificationFrame(_DIALOG, frame.params)  # heard by nobody: an answer would settle it for all hosts
        return frame

    def _shows(self, frame: RequestFrame) -> bool:
        try:
            return _decode_dialog(frame.params).dialog_kind in self._dialog_kinds
        except _UNREADABLE:
            return True  # and is refused for what is wrong with it

    def key(self, id: RequestId) -> Hashable:
        """Their ids are their own: strings, and numbers where somebody gave them numbers."""
        return id

    def parse_cancel(self, frame: NotificationFrame) -> CancelNotice | None:
        """Which of its requests the command does not wait for any more."""
        try:
            id = _decode_envelope(frame.params).request_id
        except _UNREADABLE:
            return None
        return None if id is UNSET else CancelNotice(self.key(id))

    def build_cancel(self, id: RequestId, reason: str | None = None) -> tuple[str, Any] | None:
        """The cancel of a control request of ours; a turn is stopped by an interrupt instead."""
        return _CANCEL, {"request_id": f"{_PREFIX}{id}"}

    def answer_on_shutdown(self, method: str) -> RpcError | None:
        """Nothing: the command sees the end of its stdin, which settles what it asked."""
        return None

    # -- out -----------------------------------------------------------------------------------------------------

    def to_wire(self, line: bytes) -> bytes:
        """The frame of the control protocol, or the message, that a line of the runtime stands for."""
        frame = parse(line)
        match frame:
            case NotificationFrame(method=method, params=params):
                return bytes(params) if method == MESSAGE else _object({"type": method}, params)
            case RequestFrame(id=id, method=method, params=params):
                request = _object({"subtype": method}, params)
                return b'{"type":"control_request","request_id":%b,"request":%b}' % (_encode(f"{_PREFIX}{id}"), request)
            case ResponseFrame(id=id, result=result, error=error):
                outcome: dict[str, Any] = {"subtype": "success", "request_id": id, "response": result}
                if error is not None:
                    outcome = {"subtype": "error", "request_id": id, "error": _text_of(error)}
                    if error.code == ErrorCode.METHOD_NOT_FOUND:
                        outcome["error_code"] = "unsupported_request"
                return _encode({"type": "control_response", "response": outcome})
            case MalformedFrame(reply_id=reply_id) if reply_id is not UNSET:  # raw JSON of a handler's that is none
                outcome = {"subtype": "error", "request_id": reply_id, "error": "the host's answer is not JSON"}
                return _encode({"type": "control_response", "response": outcome})
        raise ValueError("not sent: raw JSON in it is not JSON, and the command would end at such a line")


def _object(members: dict[str, Any], params: Raw) -> bytes:
    """One object of `members` and of those of `params`."""
    head, rest = _encode(members), bytes(params).strip()[1:].lstrip()
    if not rest or rest == b"}":
        return head
    return head[:-1] + b"," + rest


def _text_of(error: RpcError) -> str:
    if error.code == ErrorCode.METHOD_NOT_FOUND:
        return f"unsupported control request: {error.data}"
    detail = error.data.get("error") if isinstance(error.data, dict) else error.data
    return f"{error.message}: {detail}" if isinstance(detail, str) else error.message


def _parse_control(line: bytes) -> Frame:
    try:
        envelope = _decode_envelope(line)
    except _UNREADABLE as error:
        mended = repair(line)
        return _damaged(line, str(error)) if mended is None else _parse_control(mended)
    try:
        if envelope.type == "control_request" and envelope.request is not _ABSENT and envelope.request_id is not UNSET:
            return RequestFrame(envelope.request_id, _decode_subtype(envelope.request).subtype, envelope.request)
        if envelope.type == "control_response" and envelope.response is not _ABSENT:
            return _response(_decode_outcome(envelope.response))
    except _UNREADABLE as error:
        return _damaged(line, str(error))
    if envelope.type == _CANCEL:
        return NotificationFrame(_CANCEL, Raw(line))
    if envelope.type in ("control_request", "control_response"):
        return _damaged(line, "a control frame without its body")
    return NotificationFrame(MESSAGE, Raw(line))


def _response(outcome: _Outcome) -> ResponseFrame:
    id = _our_id(outcome.request_id)
    if outcome.subtype == "error":
        code = ErrorCode.METHOD_NOT_FOUND if outcome.error_code == "unsupported_request" else ErrorCode.INTERNAL_ERROR
        data = None if outcome.error_code is None else {"error_code": outcome.error_code}
        return ResponseFrame(id, error=RpcError(code, outcome.error or "the command refused", data))
    result = outcome.response
    beside = {
        name: raw
        for name in ("pending_permission_requests", "pending_user_dialog_requests")
        if (raw := getattr(outcome, name)) is not _ABSENT
    }
    if bytes(result) == b"null":
        result = _EMPTY
    if beside and bytes(result).startswith(b"{"):
        result = Raw(_object(beside, result))
    return ResponseFrame(id, result)


def _our_id(id: Any) -> RequestId:
    """The runtime's number of a request of ours; what is none stays as it is and matches nothing."""
    if isinstance(id, str):
        found = _OUR_ID.fullmatch(id)
        return int(found[1]) if found else id
    return repr(id)


def _damaged(line: bytes, why: str) -> Frame:
    """A control frame that cannot be read fails whom it was meant for; any other line is for the client to judge."""
    if _is_another(line):
        return NotificationFrame(MESSAGE, Raw(line))
    if _RESPONSE.search(line):
        return _lost_response(line, why)
    if _REQUEST.search(line):
        return _lost_request(line, why)
    return NotificationFrame(MESSAGE, Raw(line))


def _is_another(line: bytes) -> bool:
    """Whether it is known to be no control frame, although something inside of it looks like one."""
    try:
        return not _decode_header(line).type.startswith("control_")
    except _UNREADABLE:
        return False


def _parse_oversized(line: OversizedLine) -> Frame:
    seen = line.head + b" " + line.tail
    why = f"a line of {line.size} bytes, over the limit of {line.limit} (Limits.line_bytes)"
    if _RESPONSE.search(seen):
        return _lost_response(seen, why)
    if _REQUEST.search(seen):
        return _lost_request(seen, why)
    lost = {"size": line.size, "limit": line.limit, "isResult": _RESULT.search(seen) is not None}
    return NotificationFrame(LOST, Raw(_encode(lost)))


def _lost_response(seen: bytes, why: str) -> MalformedFrame:
    found = _ID.search(seen)
    id = None if found is None else _our_id(found[1].decode("utf-8", "replace"))
    frame = MalformedFrame(seen, RpcError.invalid_request({"error": why[:200]}), is_reply=True)
    if isinstance(id, int):
        frame.reply_id = id
    return frame


def _lost_request(seen: bytes, why: str) -> MalformedFrame:
    found = _ID.search(seen)
    frame = MalformedFrame(seen, RpcError.invalid_request({"error": why[:200]}))
    if found is not None:
        frame.answer_id, frame.is_request = found[1].decode("utf-8", "replace"), True
    return frame
