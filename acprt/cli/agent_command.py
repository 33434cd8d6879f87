"""What every subcommand that starts an agent has in common: the command after `--`, and the options about it.

`AgentCommand` is the click class, `agent_options` the options; the subcommand gets one `AgentChoice`. Nothing is
started here.
"""

from __future__ import annotations

import functools
import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from acprt.cli.logs import LOG_LEVELS, log_to_stderr
from acprt.cli.terminal_text import shown
from acprt.cli.trace_file import opened_sink, trace_option
from acprt.runtime.endpoint import Endpoint
from acprt.transports.process import AgentProcess

__all__ = [
    "AgentChoice",
    "AgentCommand",
    "Seconds",
    "agent_options",
    "agent_process",
    "agent_words",
    "protocol_text",
    "text_or_stdin",
]

_WORDS = "acprt.agent_words"  # under which click keeps what stood behind `--`


class Seconds(click.FloatRange):
    """A number of seconds, which `nan` is not although Python reads it as a number."""

    name = "number of seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number. Fails for what is none, or out of the range."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return seconds


@dataclass(frozen=True)
class AgentChoice:
    """The agent that the user named, and how it is to be run."""

    words: tuple[str, ...]
    cwd: str
    timeout: float | None  # seconds for each step that `--timeout` bounds; None: for ever
    trace: str | None
    shows_stderr: bool

    @property
    def name(self) -> str:
        """Its program, for people."""
        return os.path.basename(next((word for word in self.words if "=" not in word), self.words[0])).split(" ")[0]

    def process(self, show_stderr: Callable[[str], object] | None = None) -> AgentProcess:
        """The agent, not started. Raises UsageError when the words are no command.

        Where the user wants to see its stderr, `show_stderr` gets each line, on a thread; without it they are printed.
        """
        return agent_process(self.words, (show_stderr or _print_stderr) if self.shows_stderr else None)

    def tap(self, endpoint: Endpoint) -> None:
        """Record what passes on the connections of `endpoint`, where the user asked for that. Raises UsageError."""
        if self.trace is not None:
            endpoint.trace(opened_sink(self.trace))


class AgentCommand(click.Command):
    """A click command that takes an agent's command after `--`; what stands before is for itself."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Part the words at the first `--`."""
        if "--" in args:
            place = args.index("--")
            args, ctx.meta[_WORDS] = args[:place], tuple(args[place + 1 :])
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            if _WORDS in ctx.meta:
                raise
            hint = "The agent's command goes after `--`, as in `-- my-agent --flag`"  # its words were read as ours
            raise click.UsageError(f"{error.format_message()}\n{hint}", ctx) from None
        if not ctx.resilient_parsing and not ctx.meta.get(_WORDS):
            raise click.UsageError(
                "the agent's command is missing: give it after `--`, as in `-- my-agent --flag`", ctx
            )
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """With the agent at the end."""
        return [*super().collect_usage_pieces(ctx), "-- AGENT..."]


def agent_options(*, cwd: str, timeout: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options about its agent, and `agent`: an `AgentChoice`.

    `cwd` and `timeout` are the help of these options: what they are about differs between commands.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.option("--cwd", "folder", type=click.Path(exists=True, file_okay=False), default=".", help=cwd)
        @click.option(
            "--timeout",
            "seconds",
            type=Seconds(min=0),
            default=60.0,
            show_default=True,
            metavar="SECONDS",
            help=f"{timeout} 0 waits for ever.",
        )
        @trace_option
        @click.option("--stderr", "shows_stderr", is_flag=True, help="Show what the agent writes to its stderr.")
        @click.option("--log-level", type=click.Choice(LOG_LEVELS), help="Show acprt's own log on stderr.")
        @functools.wraps(function)
        def with_agent(
            *, folder: str, seconds: float, trace: str | None, shows_stderr: bool, log_level: str | None, **others: Any
        ) -> Any:
            log_to_stderr(log_level)
            place = protocol_text(os.path.abspath(folder), "--cwd")
            return function(agent=AgentChoice(agent_words(), place, seconds or None, trace, shows_stderr), **others)

        return with_agent

    return decorate


def agent_words() -> tuple[str, ...]:
    """The words after `--` of the command that runs."""
    words: tuple[str, ...] = click.get_current_context().meta[_WORDS]
    return words


def agent_process(words: Sequence[str], on_stderr: Callable[[str], object] | None = None) -> AgentProcess:
    """The agent that `words` name, not started; a single word is read as a command line. Raises UsageError."""
    text = words[0] if len(words) == 1 else shlex.join(words)
    try:
        return AgentProcess.parse(text, on_stderr=on_stderr)
    except ValueError as error:
        raise click.UsageError(f"the agent's command: {error}") from None


def protocol_text(word: str, what: str) -> str:
    """`word` of the command line, which the protocol must be able to carry. Raises UsageError, which names `what`."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"{what} is not UTF-8, and the protocol carries nothing else") from None
    return word


def text_or_stdin(text: str) -> bytes:
    """`text` as it stood on the command line, or all of stdin where it is `-`; UTF-8, unless the user gave other."""
    return sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")


def _print_stderr(line: str) -> None:
    click.echo(f"[stderr] {shown(line, sys.stderr)}", err=True)
