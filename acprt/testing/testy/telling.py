"""What testy tells: every kind of session update and every kind of content, with fixed words.

It only sends; what it asks of the client is in `asking` and `eliciting`.
"""

from __future__ import annotations

from acprt.acp import updates
from acprt.acp.schema import v1
from acprt.testing.testy.sessions import UPDATED_AT
from acprt.testing.testy.turn import Turn

__all__ = ["tell_content", "tell_session", "tell_tool_calls"]

_IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

_INPUT, _OUTPUT = "/tmp/testy-input.txt", "/tmp/testy-output.txt"  # noqa: S108  (names only: nothing is opened)

_COMMANDS = (
    v1.AvailableCommand(
        name="full",
        description="Run every scenario",
        input=v1.UnstructuredCommandInput(hint="nothing is needed here"),
    ),
    v1.AvailableCommand(name="callbacks", description="Ask the client for everything it can be asked"),
    v1.AvailableCommand(name="elicitations", description="Ask the user with forms and links"),
)


def tell_session(turn: Turn) -> None:
    """Info, mode, options, commands and usage of the session."""
    session = turn.session
    turn.send(v1.SessionInfoUpdate(title="Testy deterministic session", updated_at=UPDATED_AT))
    turn.send(v1.CurrentModeUpdate(current_mode_id=session.mode))
    turn.send(v1.ConfigOptionUpdate(config_options=session.config_options()))
    turn.send(v1.AvailableCommandsUpdate(available_commands=list(_COMMANDS)))
    turn.send(v1.UsageUpdate(used=128, size=4096, cost=v1.Cost(amount=0.0, currency="USD")))


def tell_content(turn: Turn) -> None:
    """Messages of all three speakers, and every kind of content block."""

    def id(kind: str) -> str:
        return turn.ids.message(f"testy-{kind}")

    heard = f"received {len(turn.prompt)} prompt content block(s)"
    turn.send(updates.user_message(heard, message_id=id("user-message")))
    turn.send(updates.agent_thought("the same thought every time", message_id=id("thought-message")))
    turn.send(updates.agent_message("text content block", message_id=id("content-text")))
    image = v1.ImageContent(data=_IMAGE, mime_type="image/png", uri="file:///tmp/testy-pixel.png")
    turn.send(updates.agent_message(image, message_id=id("content-image")))
    sound = v1.AudioContent(data=_SOUND, mime_type="audio/wav")
    turn.send(updates.agent_message(sound, message_id=id("content-audio")))
    link = v1.ResourceLink(name="Testy reference", uri="file:///tmp/testy-reference.txt", mime_type="text/plain")
    turn.send(updates.agent_message(link, message_id=id("resource-message")))
    text = v1.TextResourceContents(
        text="text of an embedded resource", uri="file:///tmp/testy-embedded.txt", mime_type="text/plain"
    )
    turn.send(updates.agent_message(v1.EmbeddedResource(resource=text), message_id=id("content-resource")))


def tell_tool_calls(turn: Turn, terminal_id: str | None = None) -> None:
    """A call that reads, one that edits, one that shows a terminal if there is one, and a plan."""
    reading = updates.tool_call(
        "Read the fixture",
        id=turn.ids.call("testy-tool-read"),
        kind="read",
        locations=[(_INPUT, 1)],
        raw_input={"path": _INPUT},
    )
    turn.send(reading)
    turn.send(updates.tool_call_update(reading, status="in_progress", content=[f"reading {_INPUT}"]))
    turn.send(
        updates.tool_call_update(reading, status="completed", content=[f"read {_INPUT}"], raw_output={"bytes": 12})
    )
    editing = updates.tool_call(
        "Edit the fixture", id=turn.ids.call("testy-tool-edit"), kind="edit", raw_input={"path": _OUTPUT}
    )
    turn.send(editing)
    change = updates.diff(_OUTPUT, "after\n", old_text="before\n")
    turn.send(updates.tool_call_update(editing, status="completed", content=[change], raw_output={"changed": True}))
    if terminal_id is not None:
        running = updates.tool_call(
            "Run in a terminal",
            id=turn.ids.call("testy-tool-terminal"),
            kind="execute",
            raw_input={"command": "printf testy"},
        )
        turn.send(running)
        shown = v1.Terminal(terminal_id=terminal_id)
        turn.send(updates.tool_call_update(running, status="completed", content=[shown]))
    turn.send(
        updates.plan(
            v1.PlanEntry(content="Tell everything", priority="high", status="completed"),
            v1.PlanEntry(content="Ask for everything", priority="medium", status="in_progress"),
            v1.PlanEntry(content="Report what came of it", priority="low", status="pending"),
        )
    )
