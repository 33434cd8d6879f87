"""A record as a coloured line: when, from whom to whom, what, about what."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
import msgspec
from msgspec import UNSET

from acprt.cli.show_preview import plain, preview
from acprt.cli.show_records import Record

__all__ = ["Lines"]

_COLOURS = {
    "request": "cyan",
    "response": "green",
    "notification": "blue",
    "message": "blue",
    "malformed": "red",
    "dropped": "red",
    "stderr": "yellow",
    "process": "magenta",
}


class Lines:
    """Makes lines of records, one after the other; says so when another connection has its turn."""

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._connection: tuple[int, str] | None = None

    def of(self, record: Record) -> Iterator[str]:
        """The lines of one record."""
        connection = (record.pid, record.connection)
        if connection != self._connection and record.connection:
            self._connection = connection
            yield click.style(f"── {plain(record.connection)} (pid {record.pid}) ──", dim=True)
        colour = "red" if record.is_bad else _COLOURS.get(record.type, "white")
        stamp = time.strftime("%H:%M:%S", time.localtime(record.time)) + f".{int(record.time % 1 * 1000):03}"
        kind = plain(record.type)
        name = plain(record.method) or kind
        parts = [
            click.style(stamp if record.time else " " * 12, dim=True),
            f"{plain(record.from_):>6} → {plain(record.to):<6}" if record.from_ else " " * 15,
            click.style(f"{kind:<12}", fg=colour),
            click.style(name, fg=colour, bold=record.type == "request"),
        ]
        if record.id is not UNSET:
            parts.append(click.style(f"#{'null' if record.id is None else plain(str(record.id))}", dim=True))
        if record.latency is not None:
            parts.append(click.style(_duration(record.latency), fg="yellow"))
        if record.session:
            parts.append(click.style(f"@{plain(record.session)[:12]}", dim=True))
        yield " ".join([*parts, preview(record)])
        if self._full:
            yield from self._body(record)

    def _body(self, record: Record) -> Iterator[str]:
        body = record.params or record.payload
        if body:
            text = msgspec.json.format(bytes(body), indent=2).decode()
            yield from (f"    {plain(line)}" for line in text.splitlines())
        elif record.text:
            yield from (f"    {plain(line)}" for line in record.text.splitlines())


def _duration(seconds: float) -> str:
    """`1.2 ms`, `3.40 s`."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
