"""`acprt run`: serve an endpoint of the user's on stdin and stdout, or say how an editor starts it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from acprt.cli.editors import EDITORS, snippet
from acprt.cli.loading import load_endpoint
from acprt.cli.logs import LOG_LEVELS, log_to_stderr
from acprt.runtime.run import run as serve
from acprt.trace import FileSink

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
@click.option("--trace", type=click.Path(dir_okay=False), metavar="FILE", help="Record every message to FILE.")
@click.option("--log-level", type=click.Choice(LOG_LEVELS), help="Show acprt's log on stderr. [default: warning]")
@click.option("--exit-with-parent", is_flag=True, help="End when the process that started it dies.")
@click.option("--editor", type=click.Choice(EDITORS), help="Print the settings for an editor instead of serving.")
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
    """
    folder = app_dir.absolute()
    if log_level is not None:
        log_to_stderr(log_level)
    if editor is not None:
        endpoint = load_endpoint(target, folder)  # a snippet for what cannot be started helps nobody
        command = [sys.executable, "-m", "acprt", "run", target, "--app-dir", str(folder)]
        click.echo(snippet(editor, endpoint.name, command), nl=False)
        return
    if reload:
        from acprt.cli.reload import serve_reloading

        options = [f"--log-level={log_level}"] if log_level is not None else []
        options += [f"--trace={trace}"] if trace is not None else []
        serve_reloading([sys.executable, "-m", "acprt", "run", target, "--app-dir", str(folder), *options], folder)
        return
    endpoint = load_endpoint(target, folder)
    if trace is not None:
        try:
            endpoint.trace(FileSink(trace))
        except OSError as error:
            raise click.UsageError(f"--trace: {error}") from None
    serve(endpoint, exit_with_parent=exit_with_parent)
