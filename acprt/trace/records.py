"""What a trace file says of an event: request, notification or response, from whom to whom, about which session.

It reads what passed and never judges it: a line that is no message has a record of its own. Secrets are masked and
long values cut here, so that nothing unmasked reaches a disk. Fields: docs/traces.md.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from acprt.errors import RpcError, mask_secrets
from acprt.trace.tap import TraceEvent
from acprt.wire.frames import BatchFrame, MalformedFrame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId

__all__ = ["LINE_BYTES", "VALUE_CHARACTERS", "Recorder"]

LINE_BYTES = 1024 * 1024  # of a line that are understood whole; agents send 563 KB at start-up
VALUE_CHARACTERS = 16_384  # of one text value that a trace keeps: a prompt and most files, no image
_PENDING = 10_000  # requests remembered per connection until they are answered: as many as a peer may have open
_CONNECTIONS = 1_000  # remembered at a time; a program that opens more loses only the pairing of the oldest
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)
_ENVELOPES = ("_proxy/successor", "mcp/message")  # carry a message of their own
_HEAD_ID = re.compile(r'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')
_HEAD_METHOD = re.compile(r'"method"\s*:\s*"((?:[^"\\]|\\.)*)"')
_HEAD_CHARACTERS = 512  # in which the id and the method of a line are looked for that is too long to be read

Protocol = Literal["acp", "mcp", "claude", "jsonrpc"]
Frame = RequestFrame | NotificationFrame | ResponseFrame


class _Record(msgspec.Struct, omit_defaults=True, rename={"from_": "from"}):
    type: str
    ts: float
    time: float
    pid: int
    connection: str
    direction: str
    protocol: str | UnsetType
    from_: str
    to: str
    size: int
    id: RequestId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    via: str | UnsetType = UNSET
    envelope: Any = UNSET
    session: str | UnsetType = UNSET
    batch: list[int] | UnsetType = UNSET
    latency: float | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    params: Any = UNSET
    payload: Any = UNSET
    text: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    event: str | UnsetType = UNSET
    cut: int | UnsetType = UNSET
    masked: bool | UnsetType = UNSET


class _Asked(NamedTuple):
    method: str
    session: str | UnsetType
    protocol: Protocol
    clock: float


class _Spoken:
    """What is known of one connection: who is the client, which protocol, what is unanswered."""

    def __init__(self) -> None:
        self.client: Literal["in", "out"] | None = None  # the direction of what the client says
        self.protocol: Protocol = "jsonrpc"
        self.pending: OrderedDict[tuple[str, RequestId], _Asked] = OrderedDict()


class Recorder:
    """Makes JSON lines of events. `origin` is the value of the monotonic clock that `ts` counts from."""

    def __init__(self, origin: float, *, redact: bool = True, value_characters: int = VALUE_CHARACTERS) -> None:
        self._origin = origin
        self._redact = redact
        self._limit = value_characters
        self._spoken: OrderedDict[str, _Spoken] = OrderedDict()
        self._pid = os.getpid()

    def records(self, event: TraceEvent) -> list[bytes]:
        """The lines that `event` is: one, or one for each entry of a batch."""
        spoken = self._spoken.get(event.connection)
        if spoken is None:
            spoken = self._spoken[event.connection] = _Spoken()
            if len(self._spoken) > _CONNECTIONS:
                self._spoken.popitem(last=False)
        if event.kind != "line":
            return [self._line(self._of_process(event, spoken))]
        if len(event.line) < event.size:
            return [self._line(self._of_head(event, spoken))]
        frame = parse(event.line)
        if isinstance(frame, BatchFrame):
            count = len(frame.entries)
            return [self._line(self._of(event, spoken, each, [n, count])) for n, each in enumerate(frame.entries)]
        return [self._line(self._of(event, spoken, frame))]

    def gap(self, count: int) -> bytes:
        """The line that says how many events are missing here."""
        return msgspec.json.encode({"type": "dropped", "pid": self._pid, "count": count}) + b"\n"

    # ── One kind each ────────────────────────────────────────────────────────────────────────────────────────────

    def _of(
        self,
        event: TraceEvent,
        spoken: _Spoken,
        frame: Frame | MalformedFrame,
        batch: list[int] | UnsetType = UNSET,
    ) -> _Record:
        if isinstance(frame, ResponseFrame):
            record = self._of_response(event, spoken, frame)
        elif isinstance(frame, MalformedFrame):
            record = self._of_malformed(event, spoken, frame)
        else:
            record = self._of_call(event, spoken, frame)
        record.batch = batch
        return record

    def _of_call(self, event: TraceEvent, spoken: _Spoken, frame: RequestFrame | NotificationFrame) -> _Record:
        is_request = isinstance(frame, RequestFrame)
        if spoken.client is None:
            spoken.client = "out" if event.peer_is_child else event.direction
        if frame.method == "initialize":
            spoken.protocol = _protocol_of(frame.params) or spoken.protocol
        elif spoken.protocol == "jsonrpc" and b'"io.modelcontextprotocol/' in event.line:
            spoken.protocol = "mcp"  # its later versions open without a handshake
        record = self._record("request" if is_request else "notification", event, spoken)
        method, params = frame.method, frame.params
        if method in _ENVELOPES:
            inner = _decoded(params)
            if isinstance(inner, dict) and isinstance(inner.get("method"), str):
                record.via, method = method, inner.pop("method")
                params = Raw(msgspec.json.encode(inner.pop("params", None)))
                if inner:
                    record.envelope = inner
                if record.via == "mcp/message":
                    record.protocol = "mcp"
        record.method, record.session = method, _session_of(params)
        if isinstance(frame, RequestFrame):
            record.id = frame.id
            protocol: Protocol = "mcp" if record.via == "mcp/message" else spoken.protocol
            asked = _Asked(method, record.session, protocol, event.clock)
            spoken.pending[event.direction, frame.id] = asked
            if len(spoken.pending) > _PENDING:
                spoken.pending.popitem(last=False)
        if params:
            record.params = params
        return record

    def _of_response(self, event: TraceEvent, spoken: _Spoken, frame: ResponseFrame) -> _Record:
        record = self._record("response", event, spoken)
        record.id = frame.id
        asked = spoken.pending.pop(("in" if event.direction == "out" else "out", frame.id), None)
        if asked is not None:
            record.method, record.session, record.protocol = asked.method, asked.session, asked.protocol
            record.latency = round(event.clock - asked.clock, 6)
        record.is_error = frame.error is not None
        if frame.error is None:
            record.payload = frame.result
            if record.session is UNSET:
                record.session = _session_of(frame.result)
        else:
            record.payload = _error_object(frame.error)
        return record

    def _of_malformed(self, event: TraceEvent, spoken: _Spoken, frame: MalformedFrame) -> _Record:
        value = _decoded(event.line)
        if isinstance(value, dict) and "jsonrpc" not in value and isinstance(value.get("type"), str):
            return self._of_stream(event, spoken, value)
        record = self._record("malformed", event, spoken)
        why = frame.error.data.get("error") if isinstance(frame.error.data, dict) else None
        record.error = f"{frame.error.message}: {why}" if isinstance(why, str) else frame.error.message
        if frame.answer_id is not None:
            record.id = frame.answer_id
        record.text = bytes(frame.raw).decode("utf-8", "replace")
        return record

    def _of_stream(self, event: TraceEvent, spoken: _Spoken, value: dict[str, Any]) -> _Record:
        """An object with a `type` in place of a method: the Claude Code stream."""
        if spoken.protocol == "jsonrpc":
            spoken.protocol = "claude"
        record = self._record("message", event, spoken)
        subtype = value.get("subtype")
        record.method = f"{value['type']}/{subtype}" if isinstance(subtype, str) else value["type"]
        if isinstance(value.get("session_id"), str):
            record.session = value["session_id"]
        record.payload = Raw(event.line)
        return record

    def _of_head(self, event: TraceEvent, spoken: _Spoken) -> _Record:
        """A line of which only the beginning is here: what can be told from that."""
        head = event.line.decode("utf-8", "replace")
        start = head[:_HEAD_CHARACTERS]
        method, id_ = _HEAD_METHOD.search(start), _HEAD_ID.search(start)
        known_id: Any = UNSET if id_ is None else _decoded(id_[1].encode())
        kind = "malformed" if known_id is UNSET else "response"
        if method is not None:
            kind = "notification" if known_id is UNSET else "request"
            if spoken.client is None:
                spoken.client = "out" if event.peer_is_child else event.direction
        record = self._record(kind, event, spoken)
        record.id = known_id
        if method is not None:
            record.method = method[1]
            if known_id is not UNSET:
                asked = _Asked(method[1], UNSET, spoken.protocol, event.clock)
                spoken.pending[event.direction, known_id] = asked
        elif known_id is not UNSET:
            asked_before = spoken.pending.pop(("in" if event.direction == "out" else "out", known_id), None)
            if asked_before is not None:
                record.method, record.session, record.protocol, _ = asked_before
                record.latency = round(event.clock - asked_before.clock, 6)
        record.text = head
        record.cut = 1
        return record

    def _of_process(self, event: TraceEvent, spoken: _Spoken) -> _Record:
        record = self._record(event.kind, event, spoken)
        if event.kind == "stderr":
            record.text = event.line.decode("utf-8", "replace")
        else:
            record.payload = msgspec.json.decode(event.line)
            record.event = record.payload.pop("event")
        return record

    def _record(self, kind: str, event: TraceEvent, spoken: _Spoken) -> _Record:
        # The client speaks first, in every protocol here, and a child is the agent of who started it.
        client = spoken.client or ("out" if event.peer_is_child else "in")
        sender, receiver = ("Client", "Agent") if client == event.direction else ("Agent", "Client")
        return _Record(
            type=kind,
            ts=round(event.clock - self._origin, 6),
            time=round(event.time, 6),
            pid=self._pid,
            connection=event.connection,
            direction=event.direction,
            protocol=spoken.protocol if event.kind == "line" else UNSET,
            from_=sender,
            to=receiver,
            size=event.size,
        )

    # ── What reaches the disk ────────────────────────────────────────────────────────────────────────────────────

    def _line(self, record: _Record) -> bytes:
        record.params = self._shown(record, record.params)
        record.payload = self._shown(record, record.payload)
        if record.text is not UNSET and len(record.text) > self._limit:
            record.text = record.text[: self._limit]
            record.cut = 1
        try:
            line = msgspec.json.encode(record)
        except _UNREADABLE:  # a text of the peer that nothing can write
            line = msgspec.json.encode(self._only_envelope(record))
        if not self._redact:
            return line + b"\n"
        text = line.decode()
        masked = mask_secrets(text)
        if masked == text:
            return line + b"\n"
        try:
            msgspec.json.decode(masked)
        except _UNREADABLE:  # a mask that took a quote with it
            record.params = record.payload = UNSET
            record.text, record.masked = masked[: self._limit], True
            return msgspec.json.encode(record) + b"\n"
        return masked[:-1].encode() + b',"masked":true}\n'

    def _shown(self, record: _Record, value: Any) -> Any:
        """`value` with its long texts cut."""
        if value is UNSET or not isinstance(value, Raw):
            return value
        if len(value) <= self._limit:
            return value  # nothing in it can be longer; the common case costs nothing
        cut = _Cut(self._limit)
        try:
            encoded = msgspec.json.encode(cut.of(msgspec.json.decode(value)))
        except _UNREADABLE:  # nested too deeply, or a text that nothing can write
            record.text = bytes(value)[: 4 * self._limit].decode("utf-8", "replace")
            record.cut = 1
            return UNSET
        if cut.count:
            record.cut = cut.count
        return Raw(encoded)

    def _only_envelope(self, record: _Record) -> _Record:
        record.params = record.payload = record.method = record.session = record.text = UNSET
        record.id = UNSET
        record.error = "what it said cannot be written"
        return record


class _Cut:
    """Cuts long texts, and counts them."""

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._limit = limit

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            if len(value) <= self._limit:
                return value
            self.count += 1
            return f"{value[: self._limit]}… [{len(value) - self._limit} characters cut]"
        if isinstance(value, dict):
            return {name: self.of(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.of(each) for each in value]
        return value


def _protocol_of(params: Raw) -> Protocol | None:
    value = _decoded(params)
    version = value.get("protocolVersion") if isinstance(value, dict) else None
    if isinstance(version, str):
        return "mcp"
    return "acp" if isinstance(version, int) else None


class _Session(msgspec.Struct, rename="camel"):
    session_id: str | UnsetType = UNSET


_decode_session = msgspec.json.Decoder(_Session).decode


def _session_of(raw: Raw) -> str | UnsetType:
    try:
        return _decode_session(raw).session_id
    except _UNREADABLE:
        return UNSET


def _decoded(raw: bytes | Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE:
        return None


def _error_object(error: RpcError) -> Raw:
    shown = {"code": error.code, "message": error.message}
    if error.data is not None:
        shown["data"] = error.data
    return Raw(msgspec.json.encode(shown))
