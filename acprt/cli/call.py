"""`acprt call`: one raw request to an agent, and its reply on stdout, as the wire has them.

The handshake comes first unless it is the call itself, since agents refuse everything before it.
"""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from acprt.acp import v1
from acprt.cli.agent_command import AgentChoice, AgentCommand, agent_options, protocol_text, text_or_stdin
from acprt.cli.failures import Failure
from acprt.cli.output import print_json, print_pretty
from acprt.cli.permissions import answer_permissions, permission_option, question_of
from acprt.cli.talk import Talk, cli_client
from acprt.cli.terminal_text import shown
from acprt.runtime.endpoint import Endpoint
from acprt.trace import TraceEvent

__all__ = ["call"]


@click.command(cls=AgentCommand)
@click.argument("method")
@click.argument("params", required=False)
@agent_options(
    cwd="The folder of the session that --session opens; here, unless it is given. The agent itself is started here.",
    timeout="For each step: start, handshake, sign-in, session, and the answer to METHOD.",
)
@permission_option
@click.option("--json", "as_json", is_flag=True, help='One line: {"result": …}, or {"error": …} for a failure.')
@click.option("--raw", is_flag=True, help="Do not shake hands first. METHOD initialize implies it.")
@click.option("--session", "in_session", is_flag=True, help="Open a session first and put its id into the params.")
@click.option("--auth", metavar="ID", help="Sign in by this method of the agent first.")
@click.option("--notifications", is_flag=True, help="Print what the agent sends meanwhile to stderr, a line each.")
def call(
    *,
    method: str,
    params: str | None,
    agent: AgentChoice,
    permission: str | None,
    as_json: bool,
    raw: bool,
    in_session: bool,
    auth: str | None,
    notifications: bool,
) -> None:
    """Send one request to an agent and print the result. PARAMS are JSON, `{}` unless they are given
    (with --raw: none); `-` reads them from stdin.

    \b
    acprt call initialize '{"protocolVersion": 1}' -- my-agent
    acprt call session/list -- my-agent
    acprt call session/prompt '{"prompt": [{"type": "text", "text": "hi"}]}' --session -- my-agent

    The handshake is that of version 1 of ACP; for another version, call `initialize` yourself. The agent is offered no
    files and no terminal.

    Exit codes: 0 a result, 2 usage, 3 the agent could not be started, 4 it ended or broke the protocol, 5 no answer
    in time, 6 it answered with an error.
    """
    protocol_text(method, "METHOD")
    is_raw = raw or method == "initialize"
    if is_raw and (in_session or auth):
        raise click.UsageError("--session and --auth need a handshake, which --raw and `initialize` leave out")
    arguments = _params_of(params, in_session=in_session, is_raw=is_raw)
    conversation = Talk(agent)
    endpoint: Endpoint
    if is_raw:
        endpoint = Endpoint("acprt")
    else:
        client = cli_client()
        answer_permissions(client, permission, conversation.ask, _tell)
        endpoint = client
    if notifications:
        endpoint.trace(_show_message)

    async def body() -> Any:
        if not is_raw:
            await conversation.initialize(auth)
        if not in_session:
            return await _ask(conversation, method, arguments)
        async with await conversation.open_session() as opened:
            return await _ask(conversation, method, {"sessionId": opened.id, **arguments})

    try:
        result = conversation.run(endpoint, body)
    except Failure as failure:
        if as_json:
            print_json(failure.as_json())
        raise
    if as_json:
        print_json({"result": result})
    else:
        print_pretty(result)


async def _ask(conversation: Talk, method: str, params: Any) -> Any:
    with conversation.step(method, f"waiting for {method}"):
        return await conversation.cx.send_request(method, params).block_task(timeout=conversation.agent.timeout)


def _params_of(text: str | None, *, in_session: bool, is_raw: bool) -> Any:
    if text is None:
        return None if is_raw else {}  # each method of ACP takes an object, and many agents insist on it
    try:
        params = msgspec.json.decode(text_or_stdin(text))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise click.UsageError(f"PARAMS are not JSON: {error}") from None
    if in_session and not isinstance(params, dict):
        raise click.UsageError("--session needs PARAMS that are a JSON object")
    return params


def _tell(request: v1.RequestPermissionRequest, answer: str) -> None:
    click.echo(shown(f"? {question_of(request)}: {answer}", sys.stderr), err=True)


def _show_message(event: TraceEvent) -> None:
    if event.direction == "in" and b'"method"' in event.line:
        click.echo(shown(event.line.decode("utf-8", "replace"), sys.stderr), err=True)
        sys.stderr.flush()
