"""The command line itself: which subcommands there are, and where each lives.

A subcommand's room is imported when it is used, so `acprt --help` loads none of them. A new one is a row in
`SUBCOMMANDS`; nothing else here changes.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Any, NamedTuple

import click

from acprt.cli import VERSION
from acprt.cli.exit_codes import ExitCode
from acprt.transports.descriptors import open_closed_descriptors

__all__ = ["SUBCOMMANDS", "Subcommand", "acprt_command", "main"]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Subcommand(NamedTuple):
    """Where a click command is, as "module:name", and the line that `acprt --help` shows for it."""

    target: str
    summary: str


SUBCOMMANDS: dict[str, Subcommand] = {
    "run": Subcommand("acprt.cli.run:run", "Serve an endpoint of yours on stdio."),
    "prompt": Subcommand("acprt.cli.prompt:prompt", "Send one prompt to any ACP agent."),
    "chat": Subcommand("acprt.cli.chat.command:chat", "Talk to an agent in the terminal."),
    "call": Subcommand("acprt.cli.call:call", "Send one raw request and print the reply."),
    "trace": Subcommand("acprt.cli.tee:trace", "Record what an editor and an agent say to each other."),
    "show": Subcommand("acprt.cli.show:show", "Read a trace: coloured lines, or one page with a sequence diagram."),
    "replay": Subcommand("acprt.cli.replay:replay", "Play the client of a trace to an agent and compare its answers."),
    "check": Subcommand("acprt.cli.check.command:check", "Check whether an agent speaks ACP as the protocol says."),
    "echo": Subcommand("acprt.cli.echo:echo", "Serve the built-in echo agent on stdio."),
}


class _Subcommands(click.Group):
    """A group whose members are imported when they are asked for."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the member; Ctrl-C has an exit code of its own, wherever it comes."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table: it is the order in which people meet them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, its room imported now."""
        row = SUBCOMMANDS.get(cmd_name)
        if row is None:
            return None
        module, _, name = row.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the summaries alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in SUBCOMMANDS.items()])


@click.command(cls=_Subcommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="acprt")
def acprt_command() -> None:
    """Run agents, talk to them, and see what passes on the wire.

    An agent is any program that speaks the Agent Client Protocol on its stdin and stdout. Give its command after `--`,
    as in `acprt prompt "hello" -- my-agent --flag`.
    """


def main() -> None:
    """The entry of `acprt` and of `python -m acprt`."""
    is_unheard = _is_closed(1)
    open_closed_descriptors()
    if is_unheard:
        _make_unheard(1)
    for fd, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:  # it was closed: there is nothing to read, and nobody reads
            setattr(sys, name, open(fd, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    try:
        acprt_command.main(prog_name="acprt")
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        click.echo(f"acprt: the output cannot be written: {error.strerror}", err=True)
        _give_up_stdout()
        sys.exit(ExitCode.FAILED)


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _make_unheard(descriptor: int) -> None:
    """Make it a pipe without a reader, so that what is printed fails as it does when a reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, descriptor)
    os.close(writer)


def _give_up_stdout() -> None:
    """What it may still hold goes nowhere, or the interpreter would try again to write it and fail once more."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
