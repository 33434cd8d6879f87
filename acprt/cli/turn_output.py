"""How `acprt prompt` shows a turn: as text for a person, or as JSON lines for a program.

Both get the same calls in the same order. Nothing here talks to the agent.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import click
import msgspec

from acprt.acp import v1
from acprt.acp.sessions import Session
from acprt.cli.failures import Failure
from acprt.cli.output import print_json
from acprt.cli.permissions import question_of
from acprt.cli.terminal_text import shown
from acprt.cli.tool_calls import ToolCalls

__all__ = ["JsonOutput", "Output", "TextOutput"]


class Output(Protocol):
    """Where a turn is shown. Each method may raise OSError: nobody reads, or nothing can be written any more."""

    def update(self, update: Any) -> None:
        """One update, in the order of the wire."""

    def permission(self, request: v1.RequestPermissionRequest, answer: str) -> None:
        """A permission request was answered without the user."""

    def outcome(self, opened: Session, response: v1.PromptResponse) -> None:
        """The turn is over."""

    def failed(self, failure: Failure) -> None:
        """It is over for another reason, which stderr tells next."""


class TextOutput(Output):
    """The agent's text on stdout; tool calls, permissions and an unusual end on stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._calls = ToolCalls()
        self._in_line = False  # whether stdout stands in the middle of a line
        self._message_id: str | None = None

    def update(self, update: Any) -> None:
        """Text as it comes; a tool call when it begins and when it ends."""
        match update:
            case v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=message_id):
                if message_id != self._message_id:
                    self._end_line()  # another message
                    self._message_id = message_id
                click.echo(shown(text, sys.stdout), nl=False)
                sys.stdout.flush()
                if text:
                    self._in_line = not text.endswith("\n")
            case v1.ToolCall() | v1.ToolCallUpdate():
                call, is_news = self._calls.apply(update)
                if is_news:
                    self._note(f"- {call.title} [{call.status}]")

    def permission(self, request: v1.RequestPermissionRequest, answer: str) -> None:
        """So that a refusal is no riddle."""
        self._note(f"? {question_of(request)}: {answer}")

    def outcome(self, opened: Session, response: v1.PromptResponse) -> None:
        """End the line, and say why the agent stopped where that is not the usual reason."""
        self._end_line()
        if response.stop_reason != "end_turn":
            self._note(f"[{response.stop_reason}]")

    def failed(self, failure: Failure) -> None:
        """What was said stands for itself."""
        self._end_line()

    def _note(self, text: str) -> None:
        if not self._quiet:
            self._end_line()
            click.secho(shown(text, sys.stderr), err=True, dim=True)

    def _end_line(self) -> None:
        if self._in_line:
            click.echo()
            self._in_line = False


class JsonOutput(Output):
    """JSON lines on stdout."""

    def update(self, update: Any) -> None:
        """As the wire has it."""
        print_json({"update": update})

    def permission(self, request: v1.RequestPermissionRequest, answer: str) -> None:
        """The question's tool call and the name of the option that was chosen."""
        print_json({"permission": {"toolCall": request.tool_call, "answer": answer}})

    def outcome(self, opened: Session, response: v1.PromptResponse) -> None:
        """The stop reason, the session, and what else the agent's answer holds."""
        print_json({**msgspec.to_builtins(response), "sessionId": opened.id})

    def failed(self, failure: Failure) -> None:
        """The same facts for programs."""
        print_json(failure.as_json())
