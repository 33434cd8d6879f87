"""`acprt prompt`: one prompt to any ACP agent. Its text goes to stdout, the rest to stderr.

The exit code tells the stop reason. With `--json` stdout is one JSON object a line instead: every update as it came,
and the outcome last.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import click

from acprt.acp import v1
from acprt.acp.sessions import Session
from acprt.cli.agent_command import AgentChoice, AgentCommand, Seconds, agent_options, text_or_stdin
from acprt.cli.exit_codes import for_stop_reason
from acprt.cli.failures import Failure
from acprt.cli.permissions import answer_permissions, permission_option
from acprt.cli.talk import Talk, cli_client
from acprt.cli.turn_output import JsonOutput, Output, TextOutput

__all__ = ["prompt"]


@click.command(cls=AgentCommand)
@click.argument("text")
@agent_options(
    cwd="The folder of the session; here, unless it is given. The agent itself is started here in any case.",
    timeout="For each step before the turn (start, sign-in, session, mode), not for the turn: see --idle-timeout.",
)
@permission_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: each update, and the outcome last.")
@click.option("--quiet", "-q", is_flag=True, help="Print the agent's text and errors, nothing else.")
@click.option("--mode", metavar="ID", help="Set the session mode first.")
@click.option("--resume", metavar="ID", help="Go on with a session of this id, where the agent can.")
@click.option("--auth", metavar="ID", help="Sign in by this method of the agent first.")
@click.option(
    "--idle-timeout",
    type=Seconds(min=0),
    default=0,
    metavar="SECONDS",
    help="How long the agent may be silent during the turn; how long it works is not bounded. [default: for ever]",
)
def prompt(
    *,
    text: str,
    agent: AgentChoice,
    permission: str | None,
    as_json: bool,
    quiet: bool,
    mode: str | None,
    resume: str | None,
    auth: str | None,
    idle_timeout: float,
) -> None:
    """Send one prompt to an agent and print what it says. TEXT is `-` to read it from stdin.

    \b
    acprt prompt "What does this project do?" -- my-agent --flag
    git diff | acprt prompt - --permission reject -- my-agent > review.md

    It speaks version 1 of ACP, sends text only, and offers the agent no files and no terminal of its own. --permission
    answers what the agent asks; what it does without asking is not prevented. Where stdout is closed, the turn is
    cancelled and the agent ended.

    The exit code tells why the agent stopped: 0 end_turn, 10 max_tokens, 11 max_turn_requests, 12 refusal, 13
    cancelled. Otherwise: 2 usage, 3 the agent could not be started, 4 it ended or broke the protocol, 5 no answer in
    time, 6 it answered with an error. Ctrl-C cancels the turn; a second one ends the command.
    """
    prompt_text = text_or_stdin(text).decode("utf-8", "replace")  # a diff may hold other bytes: they cost no prompt
    output: Output = JsonOutput() if as_json else TextOutput(quiet=quiet)
    client = cli_client()
    conversation = Talk(agent)
    answer_permissions(client, permission, conversation.ask, output.permission)

    async def body() -> v1.StopReason:
        await conversation.initialize(auth)
        async with await conversation.open_session(resume=resume) as opened:
            await conversation.set_mode(opened, mode)
            _cancel_on_interrupt(opened)
            async with conversation.no_silence_of(idle_timeout or None):
                return await _turn(conversation, opened, prompt_text, output)

    try:
        stop_reason = conversation.run(client, body)
    except Failure as failure:
        output.failed(failure)
        raise
    sys.exit(for_stop_reason(stop_reason))


async def _turn(conversation: Talk, opened: Session, text: str, output: Output) -> v1.StopReason:
    """Send the prompt and show what comes. Raises OSError, the agent ended, when the output takes no more."""
    turn = opened.prompt(text)
    with conversation.step("session/prompt", f"waiting for {conversation.agent.name}"):
        async for update in turn:
            conversation.stop_waiting()
            try:
                output.update(update)
            except OSError:
                opened.abandon()
                await conversation.hang_up()
                raise
    response = turn.response
    assert response is not None, "the iterator ended, so the agent has answered"
    output.outcome(opened, response)
    return response.stop_reason


def _cancel_on_interrupt(opened: Session) -> None:
    """The first Ctrl-C asks the agent to stop; the next one ends the command."""
    loop = asyncio.get_running_loop()
    whole = asyncio.current_task()
    assert whole is not None, "a coroutine runs in a task"

    def interrupted() -> None:
        loop.add_signal_handler(signal.SIGINT, whole.cancel)
        opened.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupted)
