"""Every exit code of the `acprt` command, in one place; scripts may depend on them.

A subcommand never invents a number of its own: `acprt trace`, which hands on the exit code of the program that it
wraps, is the one exception.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acprt.acp.schema.v1 import StopReason

__all__ = ["ExitCode", "for_stop_reason"]


class ExitCode(IntEnum):
    """What the number that the shell sees means."""

    OK = 0  # for `prompt`: the agent ended its turn, `end_turn`
    FAILED = (
        1  # the answer is no: a check failed, a replay differs, no endpoint was loaded; or output cannot be written
    )
    USAGE = 2  # the command line is wrong, or names what is not there
    SPAWN_FAILED = 3  # the agent could not be started
    PROTOCOL_ERROR = 4  # the agent ended, or said what is not the protocol
    TIMED_OUT = 5  # nothing came in the time that was given
    PEER_ERROR = 6  # the agent answered with a JSON-RPC error
    MAX_TOKENS = 10  # `prompt`: the turn stopped for `max_tokens`
    MAX_TURN_REQUESTS = 11  # `prompt`: … for `max_turn_requests`
    REFUSAL = 12  # `prompt`: … for `refusal`
    CANCELLED = 13  # `prompt`: … for `cancelled`
    HUNG_UP = 129  # its terminal closed (SIGHUP), as shells say it; the agent was ended first
    INTERRUPTED = 130  # Ctrl-C ended the command itself
    TERMINATED = 143  # SIGTERM did


_STOP_REASONS: dict[StopReason, ExitCode] = {
    "end_turn": ExitCode.OK,
    "max_tokens": ExitCode.MAX_TOKENS,
    "max_turn_requests": ExitCode.MAX_TURN_REQUESTS,
    "refusal": ExitCode.REFUSAL,
    "cancelled": ExitCode.CANCELLED,
}


def for_stop_reason(stop_reason: StopReason) -> ExitCode:
    """The exit code of a turn that ended for `stop_reason`, one of those of the protocol."""
    return _STOP_REASONS[stop_reason]
