"""The subcommand itself: options in, a report out."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from acprt.cli.agent_command import AgentCommand, Seconds, agent_process, agent_words
from acprt.cli.check.runner import ALL_CHECKS, GROUPS, run_checks, selected
from acprt.cli.check.show import Display, listing
from acprt.cli.check.subject import Options
from acprt.cli.check.verdicts import Check, Report
from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import failure_of
from acprt.cli.signals import run_with_agent
from acprt.errors import RpcError

__all__ = ["check"]

_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Options)}


def _list_checks(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(listing(ALL_CHECKS), nl=False)
        ctx.exit()


@click.command(cls=AgentCommand)
@click.option("--v2", "is_v2", is_flag=True, help="Check the draft of version 2 instead of version 1.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option(
    "--html", type=click.Path(dir_okay=False), metavar="FILE", help="Also write the report to FILE, as a page."
)
@click.option("--only", multiple=True, metavar="NAME", help=f"Only this group or check. Groups: {', '.join(GROUPS)}.")
@click.option("--skip", multiple=True, metavar="NAME", help="Not this group or check.")
@click.option("--strict", is_flag=True, help="What agents only should do counts for the exit code, too.")
@click.option("--prompt", default=_DEFAULTS["prompt"], show_default=True, metavar="TEXT", help="Begins a short turn.")
@click.option(
    "--slow-prompt",
    default=_DEFAULTS["slow_prompt"],
    show_default=True,
    metavar="TEXT",
    help="Begins a turn that takes long enough to be cancelled.",
)
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False),
    help="The folder of the sessions. [default: an empty one that is removed]",
)
@click.option(
    "--timeout",
    type=Seconds(min=0.1),
    default=_DEFAULTS["timeout"],
    show_default=True,
    metavar="SECONDS",
    help="For one answer.",
)
@click.option("--frames", is_flag=True, help="Show what passed on the wire in the checks that failed.")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_checks, help="List the checks and exit."
)
def check(
    *,
    is_v2: bool,
    as_json: bool,
    html: str | None,
    only: Sequence[str],
    skip: Sequence[str],
    strict: bool,
    prompt: str,
    slow_prompt: str,
    cwd: str | None,
    timeout: float,
    frames: bool,
) -> None:
    """Check whether an agent speaks ACP as the protocol says.

    \b
    acprt check -- my-agent --flag
    acprt check --html report.html --slow-prompt "Count to 500." -- my-agent
    acprt check --only handshake --only lines --json -- my-agent

    The agent is started about ten times and takes some twenty turns; with a model behind it they cost what they cost
    (`--skip turns --skip cancels --skip sessions` leaves nearly all of them out). It is offered no files and no
    terminal, and every permission that it asks for is refused.

    Exit codes: 0 every rule that agents must keep is kept, 1 one is broken, 2 usage, 3 the agent could not be started.
    """
    _require_known([*only, *skip])
    version = 2 if is_v2 else 1
    checks = selected(version, only, skip)
    if not checks:
        raise click.UsageError("no check is left to run: see what --only and --skip name, and `acprt check --list`")
    _require_writable(html)
    with _folder(cwd) as folder:
        template = agent_process(agent_words())
        options = Options(
            argv=tuple(template.argv),
            env=dict(template.env),
            cwd=folder,
            version=version,
            prompt=prompt,
            slow_prompt=slow_prompt,
            timeout=timeout,
        )
        report = _run(options, checks, quiet=as_json, frames=frames)
    if html is not None:
        from acprt.cli.check.page import as_page

        Path(html).write_text(as_page(report), encoding="utf-8")
    if as_json:
        click.echo(msgspec.json.encode(report))
    broken = report.count("fail", None if strict else "must")
    sys.exit(ExitCode.FAILED if broken else ExitCode.OK)


def _require_writable(html: str | None) -> None:
    """Now, since a report that cannot be kept at the end may have cost many turns of a model."""
    if html is None:
        return
    try:
        with open(html, "ab"):
            pass
    except OSError as error:
        raise click.UsageError(f"--html: {error}") from None


def _run(options: Options, checks: Sequence[Check], *, quiet: bool, frames: bool) -> Report:
    with Display(shlex.join(options.argv), len(checks), quiet=quiet, frames=frames) as display:
        try:
            report = run_with_agent(run_checks(options, checks, on_start=display.started, on_result=display.finished))
        except KeyboardInterrupt:
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
        except RpcError as error:
            raise failure_of(error, "starting the agent") from error
        display.summary(report)
    return report


def _require_known(names: Sequence[str]) -> None:
    known = {*GROUPS, *(each.id for each in ALL_CHECKS)}
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no check or group {name!r}: `acprt check --list` shows them")


@contextlib.contextmanager
def _folder(given: str | None) -> Iterator[str]:
    if given is not None:
        yield str(Path(given).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="acprt-check-", ignore_cleanup_errors=True) as made:
            yield str(Path(made).resolve())
