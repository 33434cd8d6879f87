"""`acprt call`: one request, and the reply as the wire has it."""

from __future__ import annotations

import json
import sys

import pytest

from acprt.cli.exit_codes import ExitCode
from tests.cli.running import SCRIPTED, acprt


def test_the_result_is_one_line_of_json() -> None:
    result = acprt("call", "test/params", '{"deep": [1, null, "ä"]}', "--", *SCRIPTED)

    assert result.exit_code == 0
    assert result.stdout == '{"deep":[1,null,"ä"]}\n'


def test_params_may_come_from_stdin_or_be_left_out() -> None:
    assert acprt("call", "test/params", "-", "--", *SCRIPTED, stdin='{"a": 1}').stdout == '{"a":1}\n'
    assert acprt("call", "test/params", "--", *SCRIPTED).stdout == "{}\n"


def test_initialize_is_sent_as_it_is_given() -> None:
    result = acprt("call", "initialize", '{"protocolVersion": 1}', "--", *SCRIPTED, "version=9")

    assert json.loads(result.stdout)["protocolVersion"] == 9  # no handshake of the command's own judged it


def test_without_a_handshake_an_agent_may_still_answer() -> None:
    assert acprt("call", "test/params", "{}", "--raw", "--", *SCRIPTED, "version=9").stdout == "{}\n"


def test_a_session_can_be_opened_first() -> None:
    prompt = '{"prompt": [{"type": "text", "text": "stop refusal"}]}'
    result = acprt("call", "session/prompt", prompt, "--session", "--", *SCRIPTED)

    assert json.loads(result.stdout) == {"stopReason": "refusal"}


def test_what_the_agent_sends_meanwhile_is_shown_on_request() -> None:
    prompt = '{"prompt": [{"type": "text", "text": "say hello"}]}'
    result = acprt("call", "session/prompt", prompt, "--session", "--notifications", "--", *SCRIPTED)

    methods = [json.loads(line)["method"] for line in result.stderr.splitlines()]
    assert methods == ["session/update", "session/update"]  # its commands, and what it said


def test_a_permission_that_nobody_was_asked_for_is_told() -> None:
    prompt = '{"prompt": [{"type": "text", "text": "ask"}]}'
    result = acprt("call", "session/prompt", prompt, "--session", "--", *SCRIPTED)

    assert json.loads(result.stdout) == {"stopReason": "end_turn"}
    assert result.stderr == "? Delete everything: reject once (there is nobody to ask; see --permission)\n"


def test_an_error_is_on_stderr_and_with_json_on_stdout_too() -> None:
    plain = acprt("call", "no/such", "--", *SCRIPTED)
    as_json = acprt("call", "no/such", "--json", "--", *SCRIPTED)

    assert plain.exit_code == as_json.exit_code == ExitCode.PEER_ERROR
    assert plain.stdout == ""
    assert "[-32601] Method not found" in plain.stderr
    assert json.loads(as_json.stdout)["error"]["code"] == -32601


def test_json_wraps_the_result() -> None:
    assert acprt("call", "test/params", "[1]", "--json", "--raw", "--", *SCRIPTED).stdout == '{"result":[1]}\n'


@pytest.mark.parametrize(
    "words",
    [
        ["test/params", "{nonsense"],
        ["test/params", "[]", "--session"],
        ["initialize", "{}", "--session"],
        ["test/params", "{}", "--raw", "--auth", "key"],
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(words: list[str]) -> None:
    result = acprt("call", *words, "--", "no-such-agent-anywhere")

    assert result.exit_code == ExitCode.USAGE


def test_bytes_that_are_no_json_are_refused_before_anything_starts() -> None:
    in_params = acprt("call", "test/params", '{"a": "caf\udce9"}', "--", "no-such-agent-anywhere")
    in_method = acprt("call", "caf\udce9", "--", "no-such-agent-anywhere")

    assert in_params.exit_code == in_method.exit_code == ExitCode.USAGE
    assert "PARAMS are not JSON" in in_params.stderr
    assert "METHOD is not UTF-8" in in_method.stderr


def test_params_that_are_left_out_are_an_object_as_every_method_of_the_protocol_takes_one(tmp_path) -> None:
    trace = tmp_path / "trace.jsonl"
    acprt("call", "test/params", "--trace", str(trace), "--", *SCRIPTED)
    acprt("call", "test/params", "--raw", "--trace", str(trace), "--", *SCRIPTED)

    records = [json.loads(line) for line in trace.read_text().splitlines()]
    asked = [record for record in records if record["type"] == "request" and record["method"] == "test/params"]
    assert [record.get("params") for record in asked] == [{}, None]


def test_an_agents_word_about_our_params_is_an_answer_whatever_it_is_built_on() -> None:
    """acprt's own data about params that cannot be read has the members of its data about answers."""
    result = acprt("call", "session/new", "--", sys.executable, "-m", "acprt", "echo")

    assert result.exit_code == ExitCode.PEER_ERROR
    assert "the agent answered with an error: [-32602]" in result.stderr
