"""The Claude Code command as a child process: its arguments, its environment, its way to end.

It is an `AgentProcess` in all else. It must never put on the command line what belongs into `initialize`: a command
line is short, and everybody on the machine can read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from acprt.claude.errors import ProgramNotFound, StartError, WorkingDirectoryNotFound
from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.transports.base import Sink
from acprt.transports.process import AgentProcess

__all__ = ["CLAUDE_LIMITS", "ClaudeProcess"]

CLAUDE_LIMITS = Limits(exit_grace_seconds=5.0, term_grace_seconds=5.0)
"""The command writes its session to disk after EOF, and stops its shells after SIGTERM: both may take seconds."""

_STREAM = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
_ASK_HOST = ("--permission-prompt-tool", "stdio")


class ClaudeProcess(AgentProcess):
    """The command to be started: `ClaudeProcess("claude", cwd=".")`; further words come before the options made here.

    - `include_partial_messages`: `StreamEvent`s while an answer is made (on).
    - `replay_user_messages`: prompts come back as they are taken in; `include_hook_events`: frames about hooks.
    - `permission_mode`: `default`, `acceptEdits`, `plan`, … as on the wire; `allowed_tools`: tools that need no asking.
    - `resume`: id of a session to go on with, `fork_session` under a new id; `session_id`: that of a new one (UUID).
    - `model`, `max_turns`, `setting_sources`, `strict_mcp_config`, `forward_subagent_text`: as the command has them.
    - `session_states`: `SessionStateChangedMessage`s, which tell for certain when nothing more is owed (on).

    `cwd`, `env`, `inherit_env`, `on_stderr`, `die_with_parent`, `limits` are those of `acprt.AgentProcess`; graces of
    the teardown are 5 s each. Opening raises `ProgramNotFound`, `WorkingDirectoryNotFound` or another `StartError`.
    """

    def __init__(
        self,
        *argv: str | os.PathLike[str],
        include_partial_messages: bool = True,
        replay_user_messages: bool = False,
        include_hook_events: bool = False,
        permission_mode: str | None = None,
        allowed_tools: Sequence[str] = (),
        resume: str | None = None,
        session_id: str | None = None,
        fork_session: bool = False,
        model: str | None = None,
        max_turns: int | None = None,
        setting_sources: Sequence[str] | None = None,
        strict_mcp_config: bool = False,
        forward_subagent_text: bool = False,
        session_states: bool = True,
        env: Mapping[str, str | None] | None = None,
        inherit_env: bool = True,
        cwd: str | os.PathLike[str] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        die_with_parent: bool = False,
        limits: Limits | None = None,
    ) -> None:
        if not argv:
            raise TypeError('the command is missing: ClaudeProcess("claude", …)')
        switches = {
            "--include-partial-messages": include_partial_messages,
            "--replay-user-messages": replay_user_messages,
            "--include-hook-events": include_hook_events,
            "--fork-session": fork_session,
            "--strict-mcp-config": strict_mcp_config,
            "--forward-subagent-text": forward_subagent_text,
        }
        values = {  # with an equals sign: a value that begins with a dash would be taken for an option
            "--permission-mode": "manual" if permission_mode == "default" else permission_mode,
            "--allowedTools": ",".join(map(_tool_name, _words("allowed_tools", allowed_tools))) or None,
            "--resume": resume,
            "--session-id": session_id,
            "--model": model,
            "--max-turns": max_turns,
            "--setting-sources": None
            if setting_sources is None
            else ",".join(_words("setting_sources", setting_sources)),
        }
        options = [switch for switch, is_on in switches.items() if is_on]
        options += [f"{option}={value}" for option, value in values.items() if value is not None]
        super().__init__(
            *argv,
            *_STREAM,
            *options,
            env=_environment(env, cwd, session_states=session_states),
            inherit_env=inherit_env,
            cwd=cwd,
            on_stderr=on_stderr,
            die_with_parent=die_with_parent,
            limits=limits or CLAUDE_LIMITS,
        )

    def ask_host(self) -> None:
        """Have the command ask its host before a tool runs; without that it refuses what nobody allowed."""
        if _ASK_HOST[0] not in self.argv:
            self.argv = (*self.argv, *_ASK_HOST)

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start the command and deliver to `sink`. Raises StartError; nothing is left then."""
        try:
            super().open(sink, limits)
        except RpcError as error:
            cause = error.__cause__
            why = error.data.get("error", "") if isinstance(error.data, dict) else ""
            if isinstance(cause, OSError) and self.cwd is not None and cause.filename == self.cwd:
                raise WorkingDirectoryNotFound(why) from cause
            if isinstance(cause, FileNotFoundError):
                raise ProgramNotFound(why) from cause
            raise StartError(why) from cause


def _environment(
    env: Mapping[str, str | None] | None, cwd: str | os.PathLike[str] | None, *, session_states: bool
) -> dict[str, str | None]:
    """The child's: it must not take itself for a child of the command, and must know who drives it."""
    # The entry point is a word that the command knows: what it makes of another one was not tried.
    made: dict[str, str | None] = {"CLAUDECODE": None, "CLAUDE_CODE_ENTRYPOINT": "sdk-py"}
    if session_states:
        made["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] = "1"
    if cwd is not None:
        made["PWD"] = os.path.abspath(cwd)
    return made | dict(env or {})


def _words(option: str, words: Sequence[str]) -> Sequence[str]:
    if isinstance(words, str):  # a sequence of its letters, to Python
        raise TypeError(f"{option} is a list of words: [{words!r}], not {words!r}")
    return words


def _tool_name(rule: str) -> str:
    """A tool, or a rule such as `Bash(git log:*)`; the command cuts the list at commas outside of parentheses."""
    depth = 0
    for character in rule:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0 or depth > 1 or (character == "," and depth == 0):
            break
    else:
        if depth == 0 and rule.strip():
            return rule
    raise ValueError(f"not one tool or permission rule: {rule!r}")
