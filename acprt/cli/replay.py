"""`acprt replay`: be the client of a trace once more, and see where another agent, or another version, differs."""

from __future__ import annotations

import sys

import click
from click.core import ParameterSource

from acprt.cli.agent_command import AgentChoice, AgentCommand, agent_options
from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import failure_of
from acprt.cli.output import print_json
from acprt.cli.progress import waiting
from acprt.cli.replay_compare import difference, normalised
from acprt.cli.replay_run import Replay
from acprt.cli.replay_script import Message, Script, script_of
from acprt.cli.show_preview import plain
from acprt.cli.show_records import lines_of, read_records
from acprt.cli.signals import run_with_agent
from acprt.cli.trace_file import opened_sink
from acprt.errors import RpcError
from acprt.limits import DEFAULT_LIMITS
from acprt.trace import Tap

__all__ = ["replay"]

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(cls=AgentCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@agent_options(
    cwd="Open sessions here in place of the recorded folder. [default: the recorded one]",
    timeout="For each thing that the agent said in the trace.",
)
@click.option("--connection", metavar="NAME", help="Which connection of the trace. [default: the first with a client]")
@click.option(
    "--answers-only", is_flag=True, help="Compare answers alone, not what comes between: texts of a model vary."
)
@click.option("--ignore", "ignored", multiple=True, metavar="GLOB", help="Leave this method out; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a diff.")
def replay(
    *,
    file: str,
    agent: AgentChoice,
    connection: str | None,
    answers_only: bool,
    ignored: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say to AGENT what the client of the trace FILE said, and compare what it answers with what was recorded.

    Ids and times are left out of the comparison, and so is where a text is cut into chunks. Record with
    `acprt trace --no-redact`, so that nothing in the trace is masked.

    Exit codes: 0 the same, 1 something differs, 2 usage, 3 the agent could not be started, 4 it ended too early, 5 what
    was recorded did not come in time (`--timeout`).
    """
    script = _script(file, connection)
    for warning in script.warnings:
        click.echo(f"acprt: {warning}", err=True)
    folders = _folders(script, agent)
    try:
        with waiting(f"replaying {len(script.steps)} messages of {script.connection}"):
            run = run_with_agent(_run(script, agent, folders))
    except RpcError as error:
        raise failure_of(error, "starting") from None
    said = [message for step in script.steps if not step.by_client for message in step.messages]
    recorded, replayed = (
        normalised(messages, _methods(script), answers_only=answers_only, ignored=ignored)
        for messages in (said, run.said)
    )
    for before, now in folders.items():
        recorded = [line.replace(before, now) for line in recorded]
    lines = difference(recorded, replayed)
    if as_json:
        counts = {"recorded": len(said), "replayed": len(run.said)}
        print_json({"same": not lines and run.stuck is None, "messages": counts, "stuck": run.stuck, "diff": lines})
    else:
        _show(lines, run, len(run.said), hint="" if agent.shows_stderr else "; --stderr shows what it says there")
    sys.exit(_exit_code(run, differs=bool(lines)))


def _exit_code(run: Replay, *, differs: bool) -> ExitCode:
    if run.stuck is None:
        return ExitCode.FAILED if differs else ExitCode.OK
    return ExitCode.PROTOCOL_ERROR if run.ended_early else ExitCode.TIMED_OUT


def _script(file: str, connection: str | None) -> Script:
    bad: list[bytes] = []
    with open(file, "rb") as source:
        records = list(read_records(lines_of(source, follow=False), bad.append))
    if bad:
        click.echo(f"acprt: {len(bad)} lines of {file} are no records of a trace", err=True)
    try:
        return script_of(records, connection)
    except ValueError as error:
        raise click.UsageError(f"{file}: {error}") from None


def _folders(script: Script, agent: AgentChoice) -> dict[str, str]:
    """`--cwd`, where it was given, in place of each folder of a session that was recorded."""
    if click.get_current_context().get_parameter_source("folder") is not ParameterSource.COMMANDLINE:
        return {}
    params = [message.get("params") for step in script.steps if step.by_client for message in step.messages]
    recorded = {each["cwd"] for each in params if isinstance(each, dict) and isinstance(each.get("cwd"), str)}
    return dict.fromkeys(recorded, agent.cwd)


async def _run(script: Script, agent: AgentChoice, folders: dict[str, str]) -> Replay:
    sink = None if agent.trace is None else opened_sink(agent.trace)
    tap = None if sink is None else Tap(agent.name, [sink], peer_is_child=True)
    run = Replay(script, agent.process(), timeout=agent.timeout, tap=tap, folders=folders)
    try:
        await run.run(DEFAULT_LIMITS)
    finally:
        if sink is not None:
            sink.close()
    return run


def _methods(script: Script) -> dict[int | str | None, str]:
    """Which request of the client has which id. One that is used twice is told by its last use."""
    requests: list[Message] = [
        message
        for step in script.steps
        if step.by_client
        for message in step.messages
        if "method" in message and "id" in message
    ]
    return {request["id"]: request["method"] for request in requests}


def _show(lines: list[str], run: Replay, count: int, *, hint: str) -> None:
    for line in lines:
        click.secho(plain(line), fg=_COLOURS.get(line[:1]), bold=line.startswith(("---", "+++")))
    for text in run.rubbish:
        click.echo(f"acprt: not a message: {plain(text)[:200]}", err=True)
    if run.stuck is not None:
        click.echo(f"acprt: {run.stuck}{hint}", err=True)
    elif not lines:
        click.echo(f"the same: {count} messages of the agent", err=True)
