"""What a user of the stream can meet beyond the runtime's own errors, drawn as one tree.

    Exception
    ├── ValueError
    │   └── UnreadableLine             a line that is not a JSON object
    └── ClaudeError
        ├── StartError                 the command could not be started
        │   ├── ProgramNotFound
        │   └── WorkingDirectoryNotFound
        ├── ProcessEnded               the command is gone, and took what was open with it
        ├── PromptRefused              the command did not take a prompt
        ├── MessagesLost               a reader was too slow, or the result was unreadable
        └── TurnFailed                 a turn ended with an error result
            └── AuthenticationFailed   because nobody is logged in

Control requests that the command refuses raise `acprt.RpcError`: -32601 for `unsupported_request`, else -32603 with
`data["error_code"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acprt.errors import mask_secrets

if TYPE_CHECKING:
    from acprt.claude.messages import ResultMessage

__all__ = [
    "AuthenticationFailed",
    "ClaudeError",
    "MessagesLost",
    "ProcessEnded",
    "ProgramNotFound",
    "PromptRefused",
    "StartError",
    "TurnFailed",
    "UnreadableLine",
    "WorkingDirectoryNotFound",
]

_SHOWN = 1000  # characters of a text that an error repeats


class UnreadableLine(ValueError):
    """A line that is not a JSON object: `excerpt` is its start, at most 200 characters, secrets masked."""

    def __init__(self, line: bytes, why: str) -> None:
        self.excerpt = mask_secrets(line[:800].decode("utf-8", "replace"))[:200]
        self.why = why[:200]
        self.is_blank = not line.strip()
        super().__init__(f"not a message of the stream ({self.why}): {self.excerpt}")


class ClaudeError(Exception):
    """Base of what goes wrong with the command or with a turn."""


class StartError(ClaudeError):
    """The command could not be started."""


class ProgramNotFound(StartError):
    """There is no such program."""


class WorkingDirectoryNotFound(StartError):
    """The working directory cannot be entered."""


class ProcessEnded(ClaudeError):
    """The command is gone. One error for one end: the exit status that follows an error result is part of it.

    `exit_status` is None when it is not known, negative for a signal; `stderr_tail` the end of its stderr;
    `last_result` the error result that it left, if any.
    """

    def __init__(
        self, what: str, exit_status: int | None, stderr_tail: str = "", last_result: ResultMessage | None = None
    ) -> None:
        self.exit_status = exit_status
        self.stderr_tail = stderr_tail
        self.last_result = last_result
        ended = "the command has ended" if exit_status is None else f"the command ended with status {exit_status}"
        text = f"{what}: {ended}"
        if last_result is not None:
            text += f" after {last_result.subtype}: {last_result.text[:_SHOWN]}"
        if stderr_tail.strip():
            text += f"; its stderr ends: {stderr_tail.strip()[-_SHOWN:]}"
        super().__init__(mask_secrets(text))


class PromptRefused(ClaudeError):
    """The command did not take a prompt: `state` is what it said of it (`refused`, `discarded`)."""

    def __init__(self, uuid: str, state: str) -> None:
        self.uuid = uuid
        self.state = state
        super().__init__(f"prompt {uuid} was {state} by the command")


class MessagesLost(ClaudeError):
    """Messages of a turn are gone: its reader was too slow for `Limits.session_bytes`, or its result was unreadable."""


class TurnFailed(ClaudeError):
    """A turn ended with an error: `result` has everything, `session_id` names the session."""

    def __init__(self, result: ResultMessage) -> None:
        self.result = result
        self.session_id = result.session_id
        reason = result.terminal_reason or result.subtype or "no reason was given"
        said = f": {result.text[:_SHOWN]}" if result.text else ""
        super().__init__(mask_secrets(f"the turn failed ({reason}){said}"))


class AuthenticationFailed(TurnFailed):
    """Nobody is logged in, or the credentials are not accepted: log in with the command itself, or give it a key."""
