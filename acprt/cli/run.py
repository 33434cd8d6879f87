"""`acprt run`: serve an endpoint of the user's on stdin and stdout, or say how an editor starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from acprt.cli.editors import EDITORS, snippet
from acprt.cli.loading import load_endpoint
from acprt.cli.logs import LOG_LEVELS, log_to_stderr
from acprt.cli.trace_file import opened_sink, trace_option
from acprt.runtime.run import run as serve

__all__ = ["run"]


@click.command()
@click.argument("target", metavar="MODULE:ENDPOINT")
@click.option(
    "--app-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Where modules and files are looked for.",
)
@click.option("--reload", is_flag=True, help="Start it anew when a Python file of --app-dir changes.")
@trace_option
@click.option("--log-level", type=click.Choice(LOG_LEVELS), help="Show acprt's log on stderr. [default: warning]")
@click.option("--exit-with-parent", is_flag=True, help="End when the process that started it dies.")
@click.option("--editor", type=click.Choice(EDITORS), help="Print the settings that let an editor start this.")
def run(
    *,
    target: str,
    app_dir: Path,
    reload: bool,
    trace: str | None,
    log_level: str | None,
    exit_with_parent: bool,
    editor: str | None,
) -> None:
    """Serve an endpoint of yours on stdin and stdout until EOF.

    MODULE:ENDPOINT is `package.module:name` or `file.py:name`; a name may be a function that makes the endpoint, and
    may be left out where the module has one endpoint only.

    \b
    acprt run my_agent:agent
    acprt run my_agent.py --trace wire.jsonl
    acprt run my_agent:agent --editor zed

    Exit codes: 0 EOF, or a signal to end; 1 the endpoint could not be loaded (with --reload: none was until EOF); 2
    usage.
    """
    folder = app_dir.absolute()
    if log_level is not None:
        log_to_stderr(log_level)
    command = [sys.executable, "-m", "acprt", "run", target, "--app-dir", str(folder)]
    command += [f"--log-level={log_level}"] if log_level is not None else []
    command += [f"--trace={os.path.abspath(trace)}"] if trace is not None else []
    if editor is not None:
        endpoint = load_endpoint(target, folder)  # a snippet for what cannot be started helps nobody
        command += ["--reload"] if reload else []
        command += ["--exit-with-parent"] if exit_with_parent else []
        click.echo(snippet(editor, endpoint.name, command), nl=False)
    elif reload:
        from acprt.cli.reload import serve_reloading

        serve_reloading(command, folder, exit_with_parent=exit_with_parent)
    else:
        endpoint = load_endpoint(target, folder)
        if trace is not None:
            endpoint.trace(opened_sink(trace))
        serve(endpoint, exit_with_parent=exit_with_parent)
