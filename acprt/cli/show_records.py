"""Reads a trace file: records in the order in which they were written, lenient about lines that are none.

A trace may be cut anywhere, still grow, and hold the records of several processes.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import UNSET, Raw, UnsetType

__all__ = ["Filter", "Record", "lines_of", "read_records"]

_POLL_SECONDS = 0.2  # how soon a followed trace shows what is new: at once, to the eye
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeError)


class Record(msgspec.Struct, rename={"from_": "from"}):
    """One record of a trace (docs/traces.md); `raw` is its line."""

    type: str
    ts: float = 0.0
    time: Annotated[float, msgspec.Meta(ge=0, le=1e11)] = 0.0  # what any clock can name: until the year 5138
    pid: int = 0
    connection: str = ""
    direction: str = ""
    protocol: str = ""
    from_: str = ""
    to: str = ""
    size: int = 0
    id: int | str | UnsetType | None = UNSET
    method: str = ""
    via: str = ""
    envelope: dict[str, Any] = {}
    batch: tuple[int, int] = (0, 0)
    session: str = ""
    latency: float | None = None
    is_error: bool = False
    params: Raw = Raw()
    payload: Raw = Raw()
    text: str = ""
    error: str = ""
    event: str = ""
    cut: int = 0
    masked: bool = False
    count: int = 0
    raw: bytes = b""

    @property
    def body(self) -> Any:
        """What it says, decoded: params of a call, payload of anything else; None when there is nothing."""
        value = self.params or self.payload
        if not value:
            return None
        try:
            return msgspec.json.decode(value)
        except _UNREADABLE:
            return None

    @property
    def is_bad(self) -> bool:
        """Whether something went wrong: an error answer, a line that is no message, a child that failed, a gap."""
        if self.type == "process" and self.event == "exited":
            body = self.body
            return isinstance(body, dict) and body.get("status") != 0
        return self.is_error or self.type in ("malformed", "dropped")


class Filter(msgspec.Struct, frozen=True):
    """Which records are wanted; an empty condition holds for all. An answer goes with its request's method."""

    methods: tuple[str, ...] = ()
    session: str | None = None
    id: str | None = None
    connection: str | None = None
    errors: bool = False

    def __call__(self, record: Record) -> bool:
        """Whether `record` meets every condition."""
        if self.methods and not any(fnmatch.fnmatchcase(record.method, pattern) for pattern in self.methods):
            return False
        if self.session is not None and not record.session.startswith(self.session):
            return False
        if self.id is not None and (record.id is UNSET or self.id not in (_id_text(record.id), str(record.id))):
            return False
        if self.connection is not None and record.connection not in (self.connection, f"{self.connection}#1"):
            return False
        return record.is_bad or not self.errors


def read_records(lines: Iterable[bytes], on_bad: Callable[[bytes], object]) -> Iterator[Record]:
    """The records that `lines` are. A line that is none goes to `on_bad`; a blank one is nothing."""
    decode = msgspec.json.Decoder(Record).decode
    for line in lines:
        text = line.strip()
        if not text:
            continue
        try:
            record = decode(text)
        except _UNREADABLE:
            on_bad(text)
        else:
            record.raw = text
            yield record


def lines_of(file: BinaryIO, *, follow: bool, sleep: Callable[[float], None] = time.sleep) -> Iterator[bytes]:
    """The lines of `file`; with `follow` it never ends, and begins again when the file was cut to nothing.

    Without it, an unterminated last line counts: the writer was stopped in the middle.
    """
    rest = b""
    while True:
        line = file.readline()
        if line.endswith(b"\n"):
            yield rest + line
            rest = b""
        elif line:
            rest += line
        elif not follow:
            if rest:
                yield rest
            return
        else:
            if file.seekable() and file.tell() > file.seek(0, 2):
                rest = b""
                file.seek(0)
                continue
            sleep(_POLL_SECONDS)


def _id_text(value: int | str | None) -> str:
    return msgspec.json.encode(value).decode()
