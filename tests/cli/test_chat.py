"""`acprt chat` in a terminal: what is typed, what is shown, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acprt.cli.exit_codes import ExitCode
from tests.cli.running import PROGRAM, SCRIPTED, acprt
from tests.cli.terminal import Terminal

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


def ready(terminal: Terminal) -> None:
    """Wait until a line can be typed: the bar at the bottom is drawn last."""
    terminal.expect("scripted  ·  mode ")


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start a chat with the scripted agent and wait until it can be typed to."""
    opened: list[Terminal] = []

    def start(*options: str, agent: tuple[str, ...] = ()) -> Terminal:
        terminal = Terminal([*PROGRAM, "chat", *options, "--", *SCRIPTED, *agent], tmp_path)
        opened.append(terminal)
        terminal.expect("scripted in ")
        ready(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


def test_a_turn_is_shown_and_the_end_of_input_leaves(chat) -> None:
    terminal = chat()
    terminal.type("say **hello** to `you`\r")
    terminal.expect("hello to you")
    terminal.expect(" s)")
    ready(terminal)
    terminal.type(CTRL_D)

    assert terminal.ended() == 0


def test_tool_calls_diffs_and_the_plan_are_shown(chat) -> None:
    terminal = chat()
    terminal.type("tool\r")

    terminal.expect("✓ Edit notes")
    terminal.expect("-old")
    terminal.expect("+new")
    terminal.expect("● all of it")


@pytest.mark.parametrize(("keys", "said"), [("1\r", "allow_once"), ("9\r2\r", "allow_always"), ("\r", "reject_once")])
def test_a_permission_is_asked_for_and_answered_by_number(keys: str, said: str, chat) -> None:
    terminal = chat()
    terminal.type("ask\r")
    terminal.expect("? Delete everything")
    terminal.expect("2 allow always")
    terminal.expect("Enter to refuse: ")
    terminal.type(keys)

    terminal.expect(said)


def test_interrupting_a_question_cancels_the_turn(chat) -> None:
    terminal = chat()
    terminal.type("ask\r")
    terminal.expect("Enter to refuse: ")
    terminal.type(CTRL_C)

    terminal.expect("cancelled")


def test_interrupting_cancels_the_turn_and_the_chat_goes_on(chat) -> None:
    terminal = chat()
    terminal.type("wait\r")
    terminal.expect("waiting")
    terminal.type(CTRL_C)
    terminal.expect("(cancelled, ")
    ready(terminal)
    terminal.type("say still here\r")
    terminal.expect("still here")
    terminal.expect(" s)")
    ready(terminal)
    terminal.type(CTRL_C)

    assert terminal.ended() == 0


def test_interrupting_twice_leaves_an_agent_that_does_not_listen(chat) -> None:
    terminal = chat()
    terminal.type("hang\r")
    terminal.expect("waiting")
    terminal.type(CTRL_C)
    terminal.expect("Ctrl-C again leaves")
    terminal.type(CTRL_C)

    assert terminal.ended() == ExitCode.INTERRUPTED


def test_an_error_that_tells_of_another_end_does_not_end_the_chat(chat) -> None:
    terminal = chat()
    terminal.type("lie incoming_transport_closed\r")
    terminal.expect("the agent answered with an error")
    ready(terminal)
    terminal.type("say still here\r")

    terminal.expect("still here")


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", ExitCode.TERMINATED), ("SIGHUP", ExitCode.HUNG_UP)])
def test_a_signal_in_mid_turn_leaves_the_terminal_as_it_was(number: str, code: ExitCode, chat) -> None:
    terminal = chat()
    terminal.type("hang\r")
    terminal.expect("waiting")
    assert not terminal.echoes()
    terminal.program.send_signal(signal.Signals[number])

    assert terminal.ended() == code
    assert terminal.echoes()


def test_a_signal_while_a_line_is_typed_leaves_the_terminal_as_it_was(chat) -> None:
    terminal = chat()
    terminal.program.send_signal(signal.SIGTERM)

    assert terminal.ended() == ExitCode.TERMINATED
    assert terminal.echoes()


def test_an_error_is_shown_and_the_chat_goes_on(chat) -> None:
    terminal = chat()
    terminal.type("error\r")
    terminal.expect("the model is away")
    ready(terminal)
    terminal.type("say next\r")
    terminal.expect("next")


def test_an_agent_that_dies_ends_the_chat_with_its_last_words(chat) -> None:
    terminal = chat()
    terminal.type("die\r")
    terminal.expect("acprt: session/prompt: the agent ended with exit code 7")
    terminal.expect("out of memory")

    assert terminal.ended() == ExitCode.PROTOCOL_ERROR


def test_an_agent_that_ends_between_turns_is_noticed_at_once(chat) -> None:
    terminal = chat()
    terminal.type("leave\r")
    terminal.expect("ended with exit code 8")

    assert terminal.ended() == ExitCode.PROTOCOL_ERROR


def test_modes_are_listed_and_set(chat) -> None:
    terminal = chat()
    terminal.expect("Ask")  # the bar at the bottom
    terminal.type(":mode code\r")
    terminal.expect("* code")
    ready(terminal)
    terminal.expect("Code")


def test_commands_of_the_chat_and_of_the_agent_are_completed(chat) -> None:
    terminal = chat()
    terminal.type("/")
    terminal.expect("searches")
    terminal.type(CTRL_C)  # empties the line
    terminal.type(":help\r")
    terminal.expect(":quit")
    terminal.expect("/web")
    ready(terminal)
    terminal.type(":nonsense\r")
    terminal.expect("there is no :nonsense")
    ready(terminal)
    terminal.type(":quit\r")

    assert terminal.ended() == 0


def test_lines_of_earlier_chats_come_back_unless_they_shall_not(chat, tmp_path) -> None:
    terminal = chat()
    terminal.type("say remembered\r")
    terminal.expect(" s)")
    ready(terminal)
    terminal.type(CTRL_D)
    assert terminal.ended() == 0
    history = tmp_path / "acprt" / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600

    terminal = chat()
    terminal.type(UP)
    terminal.expect("say remembered")

    terminal = chat("--no-history")
    terminal.type("say forgotten\r")
    terminal.expect(" s)")
    assert "forgotten" not in history.read_text()


def test_a_session_that_is_loaded_shows_what_was_said(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "chat", "--load", "s-1", "--", *SCRIPTED], tmp_path)
    terminal.expect("> an earlier question")
    terminal.expect("an earlier answer")
    terminal.expect("scripted in ")
    terminal.close()


def test_an_agents_text_cannot_steer_the_terminal(chat) -> None:
    terminal = chat()
    terminal.type("escape\r")
    terminal.expect("owned")

    assert "\x1b]0;owned" not in terminal.raw


def test_without_a_terminal_it_names_the_command_for_scripts() -> None:
    result = acprt("chat", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.USAGE
    assert "acprt prompt" in result.stderr


def test_an_agent_that_is_not_there_is_a_spawn_failure(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "chat", "--", "no-such-agent-anywhere"], tmp_path)
    terminal.expect("could not be started")
    assert terminal.ended() == ExitCode.SPAWN_FAILED
    terminal.close()


def test_a_history_that_cannot_be_kept_is_refused_with_the_way_out(tmp_path) -> None:
    tmp_path.joinpath("acprt").write_text("a file where the folder should be")
    terminal = Terminal([*PROGRAM, "chat", "--", *SCRIPTED], tmp_path)
    terminal.expect("--no-history")

    assert terminal.ended() == ExitCode.USAGE
    terminal.close()


def test_an_agent_of_version_2_alone_gets_a_hint_what_reaches_it(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "chat", "--", *SCRIPTED, "version=2"], tmp_path)
    terminal.expect("This command speaks version 1 of ACP")

    assert terminal.ended() == ExitCode.PROTOCOL_ERROR
    terminal.close()


def test_a_session_that_cannot_be_opened_is_told_by_what_was_asked(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "chat", "--resume", "s-1", "--", *SCRIPTED, "auth"], tmp_path)
    terminal.expect("acprt: session/resume: the agent answered with an error")
    assert terminal.ended() == ExitCode.PEER_ERROR
    terminal.close()
