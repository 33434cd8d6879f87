"""`acprt prompt`: what it prints, and what the shell is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from acprt.cli.exit_codes import ExitCode
from tests.cli.running import PROGRAM, SCRIPTED, acprt, environment
from tests.cli.terminal import Terminal


def test_the_agents_text_is_on_stdout_and_nothing_else() -> None:
    result = acprt("prompt", "say hello", "--", *SCRIPTED)

    assert (result.exit_code, result.stdout, result.stderr) == (0, "hello\n", "")


def test_a_prompt_may_come_from_stdin() -> None:
    assert acprt("prompt", "-", "--", *SCRIPTED, stdin="say from the pipe").stdout == "from the pipe\n"


def test_messages_of_their_own_begin_lines_of_their_own() -> None:
    assert acprt("prompt", "messages", "--", *SCRIPTED).stdout == "one\ntwo\n"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("end_turn", 0),
        ("max_tokens", 10),
        ("max_turn_requests", 11),
        ("refusal", 12),
        ("cancelled", 13),
        ("_tired", 4),  # the protocol has no such reason
    ],
)
def test_each_stop_reason_has_an_exit_code(reason: str, code: int) -> None:
    result = acprt("prompt", f"stop {reason}", "--", *SCRIPTED)

    assert result.exit_code == code
    assert result.stderr == ("" if code == 0 else f"[{reason}]\n") or code == ExitCode.PROTOCOL_ERROR


def test_tool_calls_are_told_on_stderr_when_they_begin_and_end() -> None:
    result = acprt("prompt", "tool", "--", *SCRIPTED)

    assert result.stdout == ""
    assert result.stderr == "- Edit notes [in_progress]\n- Edit notes [completed]\n"
    assert acprt("prompt", "tool", "--quiet", "--", *SCRIPTED).stderr == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "reject_once"),  # nobody is there to be asked
        (["--permission", "allow"], "allow_once"),
        (["--permission", "allow-always"], "allow_always"),
        (["--permission", "reject"], "reject_once"),
    ],
)
def test_permissions_are_answered_by_policy(options: list[str], said: str) -> None:
    result = acprt("prompt", "ask", *options, "--", *SCRIPTED)

    assert result.stdout == f"{said}\n"
    assert result.stderr.startswith(f"? Delete everything: {said.replace('_', ' ')}")
    assert ("see --permission" in result.stderr) is (not options)


def test_asking_needs_somebody_to_ask() -> None:
    result = acprt("prompt", "ask", "--permission", "ask", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.USAGE
    assert "needs a terminal" in result.stderr


def test_json_is_every_update_as_it_came_and_the_outcome_last() -> None:
    lines = [json.loads(line) for line in acprt("prompt", "tool", "--json", "--", *SCRIPTED).stdout.splitlines()]

    kinds = [line["update"]["sessionUpdate"] for line in lines[:-1]]
    assert kinds == ["available_commands_update", "tool_call", "tool_call_update", "plan"]
    assert lines[-1] == {"stopReason": "end_turn", "sessionId": "s-1"}


def test_json_of_a_failure_is_the_error_with_its_exit_code() -> None:
    result = acprt("prompt", "error", "--json", "--", *SCRIPTED)

    *_, last = map(json.loads, result.stdout.splitlines())
    assert last["error"]["code"] == -32603
    assert last["error"]["exitCode"] == result.exit_code == ExitCode.PEER_ERROR


def test_an_error_of_the_agent_ends_the_line_first() -> None:
    result = acprt("prompt", "error", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.PEER_ERROR
    assert result.stdout == "half a line\n"
    assert result.stderr == "acprt: session/prompt: the agent answered with an error: [-32603] the model is away\n"


@pytest.mark.parametrize("reason", ["incoming_transport_closed", "connection_closed", "spawn_failed"])
def test_an_error_that_tells_of_another_end_is_not_the_end_of_this_agent(reason: str) -> None:
    result = acprt("prompt", f"lie {reason}", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.PEER_ERROR
    assert result.stderr.startswith("acprt: session/prompt: the agent answered with an error: [-32603] an inner conn")


def test_an_agent_that_dies_is_a_protocol_error_with_its_last_words() -> None:
    result = acprt("prompt", "die", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.PROTOCOL_ERROR
    assert "ended with exit code 7" in result.stderr
    assert "out of memory" in result.stderr


def test_a_program_that_is_not_there_is_a_spawn_failure() -> None:
    result = acprt("prompt", "hi", "--", "no-such-agent-anywhere")

    assert result.exit_code == ExitCode.SPAWN_FAILED
    assert "no-such-agent-anywhere" in result.stderr


def test_a_program_that_speaks_something_else_is_named() -> None:
    result = acprt("prompt", "hi", "--", "echo", "Welcome!")

    assert result.exit_code == ExitCode.PROTOCOL_ERROR
    assert "its first line on stdout is not the protocol: 'Welcome!'" in result.stderr


def test_an_agent_of_another_version_is_a_protocol_error() -> None:
    result = acprt("prompt", "hi", "--", *SCRIPTED, "version=7")

    assert result.exit_code == ExitCode.PROTOCOL_ERROR
    assert "the peer speaks 7" in result.stderr
    assert "version 2" not in result.stderr


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        ([*SCRIPTED, "version=2"], ExitCode.PROTOCOL_ERROR),  # answers with the only version that it speaks
        ([*PROGRAM, "run", "acprt.testing.testy:agent_v2"], ExitCode.PEER_ERROR),  # refuses every other one
    ],
)
def test_an_agent_of_version_2_alone_gets_a_hint_what_reaches_it(agent: list[str], code: ExitCode) -> None:
    result = acprt("prompt", "hi", "--", *agent)

    assert result.exit_code == code
    assert "This command speaks version 1 of ACP" in result.stderr
    assert "acprt check --v2" in result.stderr


def test_a_line_that_is_no_message_harms_nothing() -> None:
    assert acprt("prompt", "say hello", "--", *SCRIPTED, "noise").stdout == "hello\n"


def test_silence_is_bounded_at_each_step() -> None:
    result = acprt("prompt", "hi", "--timeout", "0.2", "--", *SCRIPTED, "mute")

    assert result.exit_code == ExitCode.TIMED_OUT
    assert result.stderr == (
        "acprt: initialize: no answer in time; --timeout waits longer, --stderr shows what it says there\n"
    )


def test_a_mode_that_is_not_answered_is_bounded_as_the_other_steps() -> None:
    result = acprt("prompt", "hi", "--mode", "never", "--timeout", "0.5", "--stderr", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.TIMED_OUT
    assert result.stderr == "acprt: session/set_mode: no answer in time; --timeout waits longer\n"


def test_silence_during_the_turn_is_bounded_on_request() -> None:
    result = acprt("prompt", "wait", "--idle-timeout", "0.3", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.TIMED_OUT
    assert result.stdout == "waiting\n"
    assert "no answer in time; --idle-timeout waits longer" in result.stderr


def test_a_mode_and_a_sign_in_come_first() -> None:
    refused = acprt("prompt", "say hello", "--", *SCRIPTED, "auth")
    assert refused.exit_code == ExitCode.PEER_ERROR
    assert refused.stderr.endswith("by --auth and one of its methods: key, browser\n")

    result = acprt("prompt", "say hello", "--json", "--mode", "code", "--auth", "key", "--", *SCRIPTED, "auth")
    updates = [json.loads(line).get("update", {}) for line in result.stdout.splitlines()]
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "code"} in updates


def test_a_session_may_be_resumed() -> None:
    assert acprt("prompt", "say again", "--resume", "s-1", "--", *SCRIPTED).stdout == "again\n"


def test_the_agents_command_is_required_and_stands_behind_two_dashes() -> None:
    result = acprt("prompt", "hello")

    assert result.exit_code == ExitCode.USAGE
    assert "give it after `--`" in result.stderr
    assert "Usage: acprt prompt [OPTIONS] TEXT -- AGENT..." in result.stderr


def test_the_agents_command_may_be_one_word_or_have_an_environment() -> None:
    words = " ".join(SCRIPTED)

    assert acprt("prompt", "say hello", "--", words).stdout == "hello\n"
    assert acprt("prompt", "say hello", "--", "X=a b", *SCRIPTED).stdout == "hello\n"
    assert acprt("prompt", "say hello", "--", "X=1").exit_code == ExitCode.USAGE


def test_a_trace_holds_both_directions(tmp_path) -> None:
    path = tmp_path / "wire.jsonl"
    done = subprocess.run(
        [*PROGRAM, "prompt", "say hello", "--trace", str(path), "--", *SCRIPTED], timeout=45, env=environment()
    )

    assert done.returncode == 0
    text = path.read_text()
    assert "session/prompt" in text
    assert "end_turn" in text


def test_what_the_agent_writes_to_stderr_is_shown_on_request() -> None:
    result = acprt("prompt", "die", "--stderr", "--", *SCRIPTED)

    assert "[stderr] out of memory\n" in result.stderr


def test_interrupting_before_the_turn_ends_the_command(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "prompt", "hi", "--", *SCRIPTED, "mute"], tmp_path)
    terminal.expect("connecting to ")
    terminal.type("\x03")

    assert terminal.ended() == ExitCode.INTERRUPTED
    terminal.close()


def test_interrupting_cancels_the_turn() -> None:
    with subprocess.Popen(
        [*PROGRAM, "prompt", "wait", "--", *SCRIPTED], stdout=subprocess.PIPE, env=environment(), text=True, bufsize=1
    ) as program:
        assert program.stdout is not None
        assert program.stdout.read(7) == "waiting"
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=30) == ExitCode.CANCELLED


def test_a_reader_that_has_gone_ends_an_agent_that_floods() -> None:
    with subprocess.Popen(
        [*PROGRAM, "prompt", "flood", "--", *SCRIPTED], stdout=subprocess.PIPE, env=environment(), text=True
    ) as program:
        assert program.stdout is not None
        agent = int(program.stdout.readline())
        program.stdout.close()

        assert program.wait(timeout=8) == ExitCode.FAILED  # a cancelled turn alone is waited for ten seconds
        with pytest.raises(ProcessLookupError):
            os.kill(agent, 0)


def test_interrupting_twice_ends_the_command() -> None:
    with subprocess.Popen(
        [*PROGRAM, "prompt", "hang", "--", *SCRIPTED], stdout=subprocess.PIPE, env=environment(), text=True, bufsize=1
    ) as program:
        assert program.stdout is not None
        assert program.stdout.read(7) == "waiting"
        while program.poll() is None:  # the second may come before the first is handled: they are one to the kernel
            program.send_signal(signal.SIGINT)
            try:
                program.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
        assert program.returncode == ExitCode.INTERRUPTED


def test_in_a_terminal_it_says_what_it_waits_for_and_asks(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "prompt", "ask", "--", *SCRIPTED], tmp_path)
    terminal.expect("connecting to ")
    terminal.expect("0:00:00")
    terminal.expect("? Delete everything")
    terminal.expect("2 allow always")
    terminal.expect("nothing to refuse: ")
    terminal.type("2\n")
    terminal.expect("allow_always")

    assert terminal.ended() == 0
    terminal.close()


def test_a_turn_can_be_cancelled_while_it_asks(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "prompt", "ask", "--", *SCRIPTED], tmp_path)
    terminal.expect("nothing to refuse: ")
    terminal.type("\x03")
    terminal.expect("cancelled")

    assert terminal.ended() == 0  # what this agent makes of it
    terminal.close()


def test_an_agents_text_steers_no_terminal_but_is_whole_in_a_pipe(tmp_path) -> None:
    terminal = Terminal([*PROGRAM, "prompt", "escape", "--", *SCRIPTED], tmp_path)
    terminal.expect("end")
    assert "\x1b]0;owned" not in terminal.raw
    assert terminal.ended() == 0
    terminal.close()

    assert acprt("prompt", "escape", "--", *SCRIPTED).stdout == "\x1b]0;owned\x07end\n"


def test_words_that_are_the_agents_are_sent_behind_two_dashes() -> None:
    result = acprt("prompt", "hello", "my-agent", "-m", "flag")

    assert result.exit_code == ExitCode.USAGE
    assert "The agent's command goes after `--`" in result.stderr


@pytest.mark.parametrize("option", ["--timeout", "--idle-timeout"])
def test_seconds_are_numbers(option: str) -> None:
    result = acprt("prompt", "hello", option, "nan", "--", *SCRIPTED)

    assert result.exit_code == ExitCode.USAGE
    assert "'nan' is not a valid number of seconds" in result.stderr


def test_bytes_that_are_no_text_cost_no_prompt() -> None:
    done = subprocess.run(
        [*PROGRAM, "prompt", "-", "--", *SCRIPTED],
        input=b"say caf\xe9",
        capture_output=True,
        timeout=45,
        env=environment(PYTHONUTF8="1"),
    )

    assert (done.returncode, done.stdout.decode()) == (0, "caf\ufffd\n")
    assert acprt("prompt", "say caf\udce9", "--", *SCRIPTED).stdout == "caf\ufffd\n"


def test_a_folder_that_the_protocol_cannot_name_is_refused(tmp_path) -> None:
    folder = tmp_path / "caf\udce9"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("file names are UTF-8 here")
    result = acprt("prompt", "say hello", "--cwd", str(folder), "--", *SCRIPTED)

    assert result.exit_code == ExitCode.USAGE
    assert "--cwd is not UTF-8" in result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_trace_that_cannot_be_kept_is_told() -> None:
    done = subprocess.run(
        [*PROGRAM, "prompt", "say hello", "--trace", "/dev/full", "--", *SCRIPTED],
        capture_output=True,
        text=True,
        timeout=45,
        env=environment(),
    )

    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "trace events are lost" in done.stderr
