"""What `acprt chat` prints for good, in which order, and where a growing Markdown text is cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from acprt.acp import v1
from acprt.cli.chat.markdown import finished_part
from acprt.cli.chat.screen import Screen
from acprt.cli.terminal_text import printable


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("one line", ""),
        ("one\n\ntwo", "one\n\n"),
        ("one\n\ntwo\n\n", "one\n\ntwo\n\n"),
        ("```\na\n\nb", ""),
        ("```\na\n\nb\n```\nc", "```\na\n\nb\n```\n"),
        ("````\n```\n\n````\n", "````\n```\n\n````\n"),
        ("~~~ python\n```\n\n", ""),
        ("```\n``` not the end\n\n", ""),
    ],
)
def test_a_text_is_cut_behind_its_last_whole_block(text: str, done: str) -> None:
    assert finished_part(text) == (done, text[len(done) :])


@given(st.lists(st.sampled_from(["a", "\n", "\n\n", "```", "~~~~", " ", "- x\n", "| a |\n"]), max_size=30))
def test_however_it_arrives_the_same_parts_are_finished(pieces: list[str]) -> None:
    whole, rest = finished_part("".join(pieces))
    printed, waiting = "", ""
    for piece in pieces:
        done, waiting = finished_part(waiting + piece)
        printed += done

    assert (printed, waiting) == (whole, rest)


def test_text_before_a_tool_call_is_printed_before_it() -> None:
    output = io.StringIO()
    screen = Screen(Console(file=output, width=60))
    with screen.turn():
        screen.update(v1.AgentMessageChunk(content=v1.TextContent(text="Let me look.")))
        screen.update(v1.ToolCall(tool_call_id="t", title="Read"))
        screen.update(v1.ToolCallUpdate(tool_call_id="t", status="completed"))
        screen.update(v1.AgentMessageChunk(content=v1.TextContent(text="There.")))

    lines = [line.strip() for line in output.getvalue().splitlines() if line.strip()]
    assert lines == ["Let me look.", "✓ Read  other", "There."]


def test_what_a_terminal_cannot_show_is_named_where_it_came() -> None:
    output = io.StringIO()
    screen = Screen(Console(file=output, width=60))
    with screen.turn():
        screen.update(v1.AgentMessageChunk(content=v1.TextContent(text="Look:")))
        screen.update(v1.AgentMessageChunk(content=v1.ResourceLink(name="notes", uri="file:///notes")))
        screen.update(v1.AgentMessageChunk(content=v1.ImageContent(data="", mime_type="image/png")))

    lines = [line.strip() for line in output.getvalue().splitlines() if line.strip()]
    assert lines == ["Look:", "[notes: file:///notes]", "[image]"]


def test_an_update_of_a_call_that_was_never_announced_is_shown() -> None:
    output = io.StringIO()
    screen = Screen(Console(file=output, width=60))
    with screen.turn():
        screen.update(v1.ToolCallUpdate(tool_call_id="t", title="Delete", status="failed"))

    assert "✗ Delete" in output.getvalue()


def test_what_a_tool_brought_is_cut() -> None:
    output = io.StringIO()
    screen = Screen(Console(file=output, width=60))
    text = "\n".join(f"line {number}" for number in range(100))
    with screen.turn():
        content: list[v1.ToolCallContent] = [v1.Content(content=v1.TextContent(text=text))]
        screen.update(v1.ToolCall(tool_call_id="t", title="Read", status="completed", content=content))

    assert "… 88 lines more" in output.getvalue()
    assert "line 12" not in output.getvalue()


@given(st.text())
def test_printable_text_holds_no_control_but_tabs_and_line_feeds(text: str) -> None:
    assert not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in printable(text) if letter not in ("\t", "\n")
    )
