"""What an agent's command is: read from text, shown without its secrets, turned into arguments and an environment.

It must never start anything, run a shell, or change the environment of this process.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from acprt.errors import mask_secrets

__all__ = [
    "as_arguments",
    "as_config",
    "as_environment",
    "child_environment",
    "parse_command",
    "show_command",
    "show_environment",
]

_ASSIGNMENT = r"[A-Za-z_][A-Za-z0-9_]*="  # AG-04: `1A=x` and `=x` are commands
_SHLEX_TEXTS = {
    "No closing quotation": "missing closing quote",
    "No escaped character": "nothing follows the last backslash",
}


class _JsonCommand(msgspec.Struct, forbid_unknown_fields=True):
    command: str
    args: list[str] = []
    env: dict[str, str | None] = {}  # null removes an inherited variable, as it does in `AgentProcess(env=)`


def parse_command(text: str) -> tuple[list[str], dict[str, str | None]]:
    """The words and the environment that `text` asks for (AG-03 to AG-05). A ValueError says what is wrong with it."""
    text = text.strip()
    if text.startswith("{"):
        try:
            config = msgspec.json.decode(text, type=_JsonCommand)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ValueError(f"Failed to parse JSON: {error}") from None
        if not config.command:
            raise ValueError("Failed to parse JSON: `command` is empty")
        return [config.command, *config.args], config.env
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"Failed to parse command: {_SHLEX_TEXTS.get(str(error), error)}") from None
    env: dict[str, str | None] = {}
    while words and re.match(_ASSIGNMENT, words[0]):
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    if not words:
        raise ValueError(
            "No command found (only environment variables provided)" if env else "Arguments cannot be empty"
        )
    return words, env


def as_arguments(argv: Sequence[str | os.PathLike[str]]) -> tuple[str, ...]:
    """`argv` as plain words; refuses what no program could be started with."""
    words = tuple(os.fspath(word) for word in argv)
    if not words:
        raise ValueError("Arguments cannot be empty")
    for word in words:
        if not isinstance(word, str):  # type: ignore[redundant-expr,unused-ignore]  # callers may not check types
            raise TypeError(f"an argument of the agent must be a str or a path of str, not {type(word).__name__}")
        if "\0" in word:
            raise ValueError(f"an argument of the agent holds a NUL character: {word!r}")
    if not words[0]:
        raise ValueError("the agent's command is an empty word")
    return words


def as_environment(env: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """A copy of `env`; refuses names and values that no environment can hold."""
    copy = dict(env or {})
    unchecked: dict[Any, Any] = dict(copy)  # callers may not check their types
    for name, value in unchecked.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str)):
            raise TypeError(f"env maps names to str (or None, to remove the variable); {name!r} does not")
        if not name or "=" in name or "\0" in name or "\0" in (value or ""):
            raise ValueError(f"env cannot hold the variable {name!r}: its name is empty or has '=', or a NUL is in it")
    return copy


def as_config(argv: Sequence[str], env: Mapping[str, str | None]) -> dict[str, Any]:
    """The JSON form of a command, empty parts left out, the environment sorted by name (AG-01, AG-07)."""
    config: dict[str, Any] = {"command": argv[0]}
    if argv[1:]:
        config["args"] = list(argv[1:])
    if env:
        config["env"] = dict(sorted(env.items()))
    return config


def child_environment(env: Mapping[str, str | None], *, inherit: bool) -> dict[str, str]:
    """The whole environment of the child: this process's as it is now (or nothing), then `env`; None removes."""
    merged: dict[str, str | None] = {**os.environ, **env} if inherit else dict(env)
    return {name: value for name, value in merged.items() if value is not None}


def show_command(argv: Sequence[str]) -> list[str]:
    """`argv` for people: the values of secret-looking options masked (DEC-21)."""
    shown: list[str] = []
    secret_follows = False
    for word in argv:
        name, equals, _ = word.partition("=")
        if secret_follows and not word.startswith("-"):
            shown.append("***")
        elif equals and _is_secret(name):
            shown.append(f"{name}=***")
        else:
            shown.append(mask_secrets(word))
        secret_follows = word.startswith("-") and not equals and _is_secret(word)
    return shown


def show_environment(env: Mapping[str, str | None]) -> dict[str, str | None]:
    """`env` for people: secret values masked, removals as None."""
    return {
        name: None if value is None else "***" if _is_secret(name) else mask_secrets(value)
        for name, value in env.items()
    }


def _is_secret(name: str) -> bool:
    return mask_secrets(f"{name}=x") != f"{name}=x"
