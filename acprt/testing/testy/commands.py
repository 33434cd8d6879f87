"""What testy understands: the text of a prompt is a command, as JSON or in plain words.

Pure: text in, command out. Whatever is not understood is a greeting, so that no prompt fails by its wording.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

__all__ = [
    "GREETING",
    "CallTool",
    "Command",
    "Echo",
    "Greet",
    "Help",
    "ListTools",
    "RunScenario",
    "Scenario",
    "help_text",
    "parse",
    "prompt_of",
    "text_of",
]

GREETING = "Hello, world!"

Scenario = Literal[
    "session_updates",
    "content",
    "tool_calls",
    "callbacks",
    "elicitations",
    "cancel_status",
    "wait_for_cancel",
    "full",
]
"""A script of several steps; docs/testing.md tells what each one does."""


class _Command(msgspec.Struct, tag_field="command"):
    pass


class Help(_Command, tag="help"):
    """One line about what there is to say."""


class Greet(_Command, tag="greet"):
    """`Hello, world!`"""


class Echo(_Command, tag="echo"):
    """Say `message`."""

    message: str


class RunScenario(_Command, tag="run_scenario"):
    """Run a scenario and report what came of it."""

    scenario: Scenario


class ListTools(_Command, tag="list_tools"):
    """List the tools of the session's MCP server that is called `server`."""

    server: str


class CallTool(_Command, tag="call_tool"):
    """Call a tool of an MCP server. `params` that are no object count as none."""

    server: str
    tool: str
    params: Any = None


Command: TypeAlias = Help | Greet | Echo | RunScenario | ListTools | CallTool

_decode = msgspec.json.Decoder(Command).decode

_ALIASES: dict[str, Scenario] = {
    "session updates": "session_updates",
    "updates": "session_updates",
    "tool calls": "tool_calls",
    "tools": "tool_calls",
    "client_callbacks": "callbacks",
    "client callbacks": "callbacks",
    "elicitation": "elicitations",
    "elicit": "elicitations",
    "cancel status": "cancel_status",
    "cancel": "cancel_status",
    "wait for cancel": "wait_for_cancel",
    "all": "full",
}
_SCENARIOS: dict[str, Scenario] = {name: name for name in get_args(Scenario)} | _ALIASES


def text_of(texts: Iterable[str]) -> str:
    """The command that the text blocks of a prompt make up."""
    return " ".join(texts)


def parse(text: str) -> Command:
    """The command that `text` means. JSON goes first, then `help`, a scenario by its name or alias, `echo …`."""
    words = text.strip()
    if words.startswith("{"):
        try:
            return _decode(words)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            return Greet()
    if words.lower() == "help":
        return Help()
    scenario = _SCENARIOS.get(words.lower())
    if scenario is not None:
        return RunScenario(scenario)
    return Echo(words.removeprefix("echo ")) if words.startswith("echo ") else Greet()


def prompt_of(command: Command) -> str:
    """The prompt text that means `command`: its JSON form."""
    return msgspec.json.encode(command).decode()


def help_text(scenarios: Iterable[str] = get_args(Scenario)) -> str:
    """One line: the commands, the `scenarios` and the JSON form."""
    known = ", ".join(scenarios)
    return f"I know: help, greet, echo <message>, {known}. Or as JSON: {prompt_of(RunScenario('full'))}"
