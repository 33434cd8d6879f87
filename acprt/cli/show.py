"""`acprt show`: read a trace, as lines in the terminal or as one page for a browser."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from acprt.cli.page import write_page
from acprt.cli.show_lines import Lines
from acprt.cli.show_records import Filter, Record, lines_of, read_records

__all__ = ["show"]


@click.command
@click.argument("file", metavar="FILE")
@click.option(
    "--method", "methods", multiple=True, metavar="GLOB", help="Only this method, as in 'session/*'; repeatable."
)
@click.option("--session", metavar="ID", help="Only this session; its beginning is enough.")
@click.option("--id", "request_id", metavar="ID", help="Only the request with this id, and its answer.")
@click.option("--connection", metavar="NAME", help="Only this connection, as in 'my-agent#1'.")
@click.option("--errors", is_flag=True, help="Only what went wrong.")
@click.option("-f", "--follow", is_flag=True, help="Go on as the file grows, until Ctrl-C.")
@click.option("--full", is_flag=True, help="Show the whole message under its line.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as they are, one JSON object a line.")
@click.option("--html", type=click.Path(dir_okay=False), metavar="OUT", help="Write one self-contained page instead.")
@click.option("--color/--no-color", "colour", default=None, help="[default: when stdout is a terminal]")
def show(
    file: str,
    methods: tuple[str, ...],
    session: str | None,
    request_id: str | None,
    connection: str | None,
    errors: bool,
    follow: bool,
    full: bool,
    as_json: bool,
    html: str | None,
    colour: bool | None,
) -> None:
    """Read a trace: a file of `acprt trace`, `--trace` or ACPRT_TRACE, or `-` for stdin.

    Lines that are no records are left out, and counted on stderr.
    """
    if html is not None and (follow or as_json or full):
        raise click.UsageError(
            "--html writes a page and ends: it goes with filters, not with --follow, --json or --full"
        )
    wanted = Filter(methods, session, request_id, connection, errors)
    bad: list[int] = []
    try:
        with _opened(file) as source:
            lines = lines_of(source, follow=follow)
            records = (record for record in read_records(lines, lambda line: bad.append(len(line))) if wanted(record))
            if html is not None:
                count = _write_page(html, file, records)
                click.echo(f"{html}: {count} events", err=True)
            else:
                count = _print(records, full=full, as_json=as_json, colour=colour)
                if not count:
                    click.echo(f"acprt: nothing to show: {file} has no such event", err=True)
    except KeyboardInterrupt:
        if not follow:
            raise
    if bad:
        click.echo(f"acprt: {len(bad)} lines of {file} are no records of a trace", err=True)


def _print(records: Iterator[Record], *, full: bool, as_json: bool, colour: bool | None) -> int:
    lines = Lines(full=full)
    count = 0
    for record in records:
        for line in [record.raw.decode("utf-8", "replace")] if as_json else lines.of(record):
            click.echo(line, color=colour)
        count += 1
    return count


def _write_page(target: str, source: str, records: Iterator[Record]) -> int:
    try:
        return write_page(Path(target), records, title="stdin" if source == "-" else Path(source).name)
    except OSError as error:
        raise click.UsageError(f"--html: {error}") from None


@contextlib.contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = open(file, "rb")  # noqa: SIM115
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from None
    with source:
        yield source
