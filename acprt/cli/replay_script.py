"""What a trace says that a client did, and what an agent answered: the script of a replay.

Pure: records in, steps out. A step is one line as it stood on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from acprt.cli.show_records import Record

__all__ = ["Message", "Script", "Step", "script_of"]

Message = dict[str, Any]
"""A JSON-RPC message, decoded."""


class Step(msgspec.Struct, frozen=True):
    """One line. `messages` has several entries for a batch, none for a line that was no message (`text`)."""

    by_client: bool
    messages: tuple[Message, ...] = ()
    is_batch: bool = False
    text: str = ""


class Script(msgspec.Struct, frozen=True):
    """The steps of one connection, and what stands in the way of saying exactly the same again."""

    connection: str
    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()


def script_of(records: Iterable[Record], connection: str | None = None) -> Script:
    """The script of `connection`, or of the first one on which a client asked something. Raises ValueError for none."""
    by_connection: dict[tuple[int, str], list[Record]] = {}
    for record in records:
        if record.type in ("request", "response", "notification", "malformed"):
            by_connection.setdefault((record.pid, record.connection), []).append(record)
    for (_, name), spoken in by_connection.items():
        if connection in (None, name) and any(each.type == "request" and each.from_ == "Client" for each in spoken):
            return Script(name, tuple(_steps(spoken)), tuple(_warnings(spoken)))
    others = ", ".join(dict.fromkeys(name for _, name in by_connection)) or "none"
    raise ValueError(f"no client asks anything on {connection or 'any connection'}; connections in it: {others}")


def _steps(records: list[Record]) -> Iterable[Step]:
    batch: list[Message] = []
    for record in records:
        by_client = record.from_ == "Client"
        message = _message(record)
        if record.batch[1]:
            if message is not None:
                batch.append(message)
            if record.batch[0] + 1 == record.batch[1]:
                yield Step(by_client, tuple(batch), is_batch=True)
                batch = []
        elif message is None:
            yield Step(by_client, text=record.text)
        else:
            yield Step(by_client, (message,))


def _message(record: Record) -> Message | None:
    """The message that the record was made of; None for a line that was none, or of which too little is left."""
    if record.type == "malformed" or (record.text and not record.params and not record.payload):
        return None
    message: Message = {"jsonrpc": "2.0"}
    if record.id is not UNSET:
        message["id"] = record.id
    if record.type == "response":
        message["error" if record.is_error else "result"] = record.body
        return message
    params = record.body
    message["method"] = record.via or record.method
    if record.via:
        inner = {} if params is None else {"params": params}
        message["params"] = {**record.envelope, "method": record.method, **inner}
    elif record.params:
        message["params"] = params
    return message


def _warnings(records: list[Record]) -> Iterable[str]:
    client = [record for record in records if record.from_ == "Client"]
    cut, masked = sum(record.cut > 0 for record in client), sum(record.masked for record in client)
    if cut:
        yield f"long values of {cut} messages of the client were cut in the trace, and are sent so"
    if masked:
        yield (
            f"secrets of {masked} messages of the client were masked in the trace, and are sent as ***; "
            "`acprt trace --no-redact` keeps them"
        )
