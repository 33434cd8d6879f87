"""What the command answers when an agent asks whether it may go on: by a policy, or by asking the user.

Options are chosen by their kind; ids and names are the agent's own words. It never allows what the user did not.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import click

from acprt.acp import v1
from acprt.acp.client import Client
from acprt.acp.permissions import allow_always, allow_first, reject, select_option
from acprt.cli.terminal_text import printable

__all__ = ["POLICIES", "Ask", "answer_permissions", "ask_in_terminal", "permission_option", "question_of"]

POLICIES = ["ask", "allow", "allow-always", "reject"]

Ask = Callable[[v1.RequestPermissionRequest], Awaitable[v1.RequestPermissionResponse]]
"""Asks the user, and gives the answer."""

permission_option = click.option(
    "--permission",
    type=click.Choice(POLICIES),
    help="What to answer when the agent asks for permission. [default: ask in a terminal, else reject]",
)


def answer_permissions(
    client: Client, policy: str | None, ask: Ask, tell: Callable[[v1.RequestPermissionRequest, str], None]
) -> None:
    """Let `client` answer permission requests. `tell` hears how each was answered without the user."""
    hint = ""
    if policy is None and _somebody_is_there():
        policy = "ask"
    elif policy is None:
        policy, hint = "reject", " (there is nobody to ask; see --permission)"
    elif policy == "ask" and not _somebody_is_there():
        raise click.UsageError("--permission ask needs a terminal on stdin and stderr")

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        if policy == "ask":
            return await ask(request)
        answer = {"allow": allow_first, "allow-always": allow_always, "reject": reject}[policy](request)
        tell(request, _chosen_name(request, answer) + hint)
        return answer


def question_of(request: v1.RequestPermissionRequest) -> str:
    """What the agent wants, in its own words; some agents give none."""
    return printable(request.tool_call.title or "go on")


async def ask_in_terminal(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
    """Put the question on stderr and read the number of an option from stdin; anything else refuses."""
    click.echo(f"\n? {question_of(request)}", err=True)
    for number, option in enumerate(request.options, 1):
        click.echo(f"  {number} {printable(option.name)}", err=True)
    click.echo("  number, or nothing to refuse: ", err=True, nl=False)
    chosen = {str(number): option.option_id for number, option in enumerate(request.options, 1)}
    option_id = chosen.get(await _terminal_line())
    return reject(request) if option_id is None else select_option(request, option_id)


async def _terminal_line() -> str:
    """A line of the terminal on stdin; the wait can be cancelled, which a thread that reads could not."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = sys.stdin.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 4096).decode("utf-8", "replace").strip()  # a terminal gives whole lines


def _somebody_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _chosen_name(request: v1.RequestPermissionRequest, answer: v1.RequestPermissionResponse) -> str:
    match answer.outcome:
        case v1.SelectedPermissionOutcome(option_id=option_id):
            return printable(next(option.name for option in request.options if option.option_id == option_id))
        case _:
            return "cancelled"
