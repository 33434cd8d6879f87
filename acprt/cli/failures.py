"""What went wrong with an agent, in words that say what to look at next, and as an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from acprt.cli.exit_codes import ExitCode
from acprt.cli.terminal_text import shown
from acprt.errors import INCOMING_TRANSPORT_CLOSED, ErrorCode, RpcError, mask_secrets
from acprt.runtime.connection import Connection
from acprt.runtime.ends import ConnectionState

__all__ = ["Failure", "failure_of", "has_ended"]

_CLOSED = (INCOMING_TRANSPORT_CLOSED, "connection_closed")
_VERSION_HINT = """
This command speaks version 1 of ACP, which an agent of the draft of version 2 alone does not. Start it in version 1 \
if it can; `acprt check --v2` and `acprt call initialize` with params of version 2 reach it as it is."""
_STDERR_LINES = 20  # of the agent's last words: what fits beside the rest on a screen


class Failure(click.ClickException):
    """A failure that ends the command with `exit_code`; its text goes to stderr."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # of the class for click, which reads it from the instance

    def show(self, file: Any = None) -> None:
        """One paragraph on stderr."""
        click.echo(shown(f"acprt: {self.format_message()}", sys.stderr), err=True, file=file)

    def as_json(self) -> dict[str, Any]:
        """What stands on stdout in its place with `--json`: the same facts for programs."""
        cause = self.__cause__
        facts: dict[str, Any] = {"message": self.message, "exitCode": int(self.exit_code)}
        if isinstance(cause, RpcError):
            facts |= {"code": cause.code, "data": cause.data}
        return {"error": facts}


def failure_of(
    error: Exception,
    stage: str,
    *,
    said_by_agent: bool = False,
    plain_text: str = "",
    ways_to_sign_in: Sequence[str] = (),
    more_time: str = "",
) -> Failure:
    """The failure that `error` is, met in `stage`. `said_by_agent`: the connection was open when it came, so whatever
    it tells of an end is not about this agent. `plain_text` is a line of the agent's stdout that is no message,
    `ways_to_sign_in` are the ids of what the agent offers, `more_time` says what gives it longer than it had.
    """
    if isinstance(error, TimeoutError):
        hint = f"; {more_time}" if more_time else ""
        return Failure(f"{stage}: no answer in time{_not_the_protocol(plain_text)}{hint}", ExitCode.TIMED_OUT)
    if not isinstance(error, RpcError):
        return Failure(f"{stage}: {error}", ExitCode.FAILED)
    facts = error.data if isinstance(error.data, dict) else {}
    reason = None if said_by_agent else facts.get("reason")
    if reason == "spawn_failed":
        return Failure(f"the agent could not be started: {facts.get('error')}", ExitCode.SPAWN_FAILED)
    if reason in _CLOSED:
        return Failure(
            f"{stage}: {_ended(facts)}{_not_the_protocol(plain_text)}{_stderr(facts)}", ExitCode.PROTOCOL_ERROR
        )
    # -32602 with the same data is the agent's word about our params, where it is built on acprt, too.
    is_unreadable = facts.get("phase") == "deserialization" and error.code == ErrorCode.INTERNAL_ERROR
    if facts.get("reason") == "version_mismatch" or is_unreadable:
        hint = _VERSION_HINT if str(facts.get("error")).endswith("the peer speaks 2") else ""
        return Failure(f"{stage}: the agent's answer cannot be used: {error}{hint}", ExitCode.PROTOCOL_ERROR)
    hint = ""
    if error.code == ErrorCode.AUTH_REQUIRED:
        offered = f": {', '.join(ways_to_sign_in)}" if ways_to_sign_in else ""
        hint = f"\nSign in first, with the agent's own command or by --auth and one of its methods{offered}"
    elif stage == "initialize" and (facts.get("supported") == [2] or error.code == ErrorCode.INVALID_PARAMS):
        hint = _VERSION_HINT  # version 2 has an error that lists what is spoken; some miss members of its params first
    return Failure(f"{stage}: the agent answered with an error: {error}{hint}", ExitCode.PEER_ERROR)


def has_ended(cx: Connection) -> bool:
    """Whether the connection is over, or its input is: no error tells, since an agent may send each of ours itself."""
    return cx.ends.state is not ConnectionState.OPEN


def _ended(facts: dict[str, Any]) -> str:
    status = facts.get("exit_status")
    if not isinstance(status, int):
        return "the agent closed its output"
    return f"the agent ended by signal {-status}" if status < 0 else f"the agent ended with exit code {status}"


def _not_the_protocol(plain_text: str) -> str:
    return f"; its first line on stdout is not the protocol: {plain_text!r}" if plain_text else ""


def _stderr(facts: dict[str, Any]) -> str:
    tail = facts.get("stderr_tail")
    if not isinstance(tail, str) or not tail.strip():
        return ""
    lines = mask_secrets(tail).rstrip().splitlines()[-_STDERR_LINES:]
    return "\nIts stderr ends:\n" + "\n".join(f"  {line}" for line in lines)
