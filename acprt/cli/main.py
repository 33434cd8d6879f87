"""The command line itself: which subcommands there are, and where each lives.

A subcommand's room is imported when it is used, so `acprt --help` loads none of them. A new one is a row in
`SUBCOMMANDS`; nothing else here changes.
"""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click

from acprt.cli import VERSION

__all__ = ["SUBCOMMANDS", "Subcommand", "acprt_command", "main"]


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
    acprt_command.main(prog_name="acprt")
