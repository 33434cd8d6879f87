"""The file of a trace, as each subcommand takes it: the option, and the sink that writes there."""

from __future__ import annotations

import click

from acprt.trace.file_sink import FileSink

__all__ = ["opened_sink", "trace_option"]

trace_option = click.option(
    "--trace",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Append every message to FILE; secrets are masked there, long values cut.",
)


def opened_sink(path: str, *, option: str = "--trace", redact: bool = True) -> FileSink:
    """A sink that appends to `path`. Raises UsageError, which names `option`, when it cannot be opened."""
    try:
        return FileSink(path, redact=redact)
    except OSError as error:
        raise click.UsageError(f"{option}: {error}") from None
