"""`acprt replay`: the client of a trace once more, and where the answers differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROGRAM, acprt
from tests.cli.terminal import Terminal
from tests.cli.traced import AGENT, CLIENT, Trace

AGENT_PROGRAM = Path(__file__).with_name("replayed_agent.py")


@pytest.fixture
def agent(tmp_path):
    """`agent(**changes)`: the words that start the agent of tests, different from the recorded one in that."""

    def words(**changes: Any) -> list[str]:
        return [sys.executable, "-I", "-S", str(AGENT_PROGRAM), json.dumps(changes)]

    return words


def conversation() -> Trace:
    """What the unchanged agent says to a client that asks for a session, a turn with a permission, and a cancel."""
    made = Trace()
    made.ask(10, "initialize", {"protocolVersion": 1})
    made.answer(10, "initialize", {"protocolVersion": 1, "startedAt": 123})
    made.ask(11, "session/new", {"cwd": "/"})
    made.answer(11, "session/new", {"sessionId": "recorded-session"})
    prompt = {"sessionId": "recorded-session", "prompt": [{"type": "text", "text": "go"}]}
    made.ask(12, "session/prompt", prompt)
    for text in ("Working ", "on ", "it at 2020-01-01T00:00:00Z"):
        made.chunk("recorded-session", text)
    asked = {"sessionId": "recorded-session", "toolCall": {"toolCallId": "recorded-tool"}, "options": []}
    made.ask("recorded-1", "session/request_permission", asked, side=AGENT)
    outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    made.answer("recorded-1", "session/request_permission", outcome, side=CLIENT)
    made.update("recorded-session", "tool_call_update", toolCallId="recorded-tool", status="selected")
    made.add(CLIENT, type="notification", method="session/cancel", params={"sessionId": "recorded-session"})
    made.answer(12, "session/prompt", {"stopReason": "cancelled"})
    return made


def replay(trace: Trace, tmp_path: Path, *words: str, agent: list[str], timeout: float = 20) -> Any:
    """Run it."""
    file = trace.write(tmp_path / "trace.jsonl")
    return acprt("replay", file, "--timeout", str(timeout), *words, "--", *agent)


class TestSame:
    def test_same_agent_says_the_same(self, tmp_path, agent):
        """Its session ids, tool ids, request ids, times and the cut of its chunks differ in every run."""
        done = replay(conversation(), tmp_path, agent=agent())
        assert (done.exit_code, done.stdout) == (0, "")
        assert "the same: 7 messages of the agent" in done.stderr

    def test_client_speaks_of_the_ids_of_this_run(self, tmp_path, agent):
        """The agent refuses a session, or an answer, that it does not know; it did not have to."""
        trace = tmp_path / "again.jsonl"
        done = replay(conversation(), tmp_path, "--trace", str(trace), agent=agent())
        assert done.exit_code == 0
        said = [json.loads(line) for line in trace.read_text().splitlines()]
        sessions = {each["session"] for each in said if "session" in each}
        assert len(sessions) == 1
        assert "recorded-session" not in sessions

    def test_session_can_be_opened_elsewhere(self, tmp_path, agent):
        """The recorded folder may be that of another machine."""
        trace = tmp_path / "again.jsonl"
        made = conversation()
        made.records[2]["params"]["cwd"] = "/recorded/folder"
        for words, folder in (([], "/recorded/folder"), (["--cwd", str(tmp_path)], str(tmp_path))):
            assert replay(made, tmp_path, "--trace", str(trace), *words, agent=agent()).exit_code == 0
            said = [json.loads(line) for line in trace.read_text().splitlines()]
            assert [each["params"]["cwd"] for each in said if each["method"] == "session/new" and "params" in each][
                -1
            ] == folder

    def test_lines_that_are_no_messages_are_said_again(self, tmp_path, agent):
        """And batches as batches."""
        made = Trace()
        made.add(CLIENT, type="malformed", text="not json", error="Parse error")
        made.add(AGENT, type="response", id=None, is_error=True, payload={"code": -32700, "message": "Parse error"})
        for n in (0, 1):
            made.ask(n, "initialize", {}, batch=[n, 2])
        for n in (0, 1):
            made.answer(n, "initialize", {"protocolVersion": 1}, batch=[n, 2])
        done = replay(made, tmp_path, "--ignore", "initialize", agent=agent())
        assert (done.exit_code, done.stdout) == (0, "")


class TestDifferent:
    def test_difference_is_shown(self, tmp_path, agent):
        """As a diff of what the two agents said; 1."""
        done = replay(conversation(), tmp_path, agent=agent(stop="end_turn"))
        assert done.exit_code == 1
        assert '-    "stopReason": "cancelled"' in done.stdout
        assert '+    "stopReason": "end_turn"' in done.stdout

    def test_text_can_be_left_out(self, tmp_path, agent):
        """What a model says varies; its answers need not."""
        other = agent(text="Something else")
        assert replay(conversation(), tmp_path, agent=other).exit_code == 1
        assert replay(conversation(), tmp_path, "--answers-only", agent=other).exit_code == 0
        assert replay(conversation(), tmp_path, "--ignore", "session/update", agent=other).exit_code == 0

    def test_error_in_place_of_an_answer_is_one(self, tmp_path, agent):
        """Whatever it says."""
        done = replay(conversation(), tmp_path, agent=agent(refuses="session/prompt"), timeout=1)
        assert "-answer session/prompt" in done.stdout
        assert "+error session/prompt" in done.stdout

    def test_request_that_nobody_recorded_is_refused_at_once(self, tmp_path, agent):
        """The agent is not left waiting, and the diff shows what it asked."""
        done = replay(conversation(), tmp_path, agent=agent(asks="fs/read_text_file"))
        assert done.exit_code == 1
        assert "+request fs/read_text_file" in done.stdout

    def test_json_is_for_programs(self, tmp_path, agent):
        """The same in one object."""
        done = replay(conversation(), tmp_path, "--json", agent=agent(stop="end_turn"))
        told = json.loads(done.stdout)
        assert done.exit_code == 1
        assert (told["same"], told["stuck"], told["messages"]) == (False, None, {"recorded": 8, "replayed": 7})
        assert any("end_turn" in line for line in told["diff"])

    @pytest.mark.parametrize("line", ['{"jsonrpc":"2.0","id":[],"result":1}', '{"id":{},"method":"x"}', "[]", "[5]"])
    def test_what_is_no_message_is_told_and_harms_nothing(self, tmp_path, agent, line):
        """Also where it looks like one."""
        program = tmp_path / "agent.py"
        program.write_text(f"import runpy\nprint({line!r}, flush=True)\nrunpy.run_path({str(AGENT_PROGRAM)!r})\n")
        done = replay(conversation(), tmp_path, agent=[sys.executable, "-I", "-S", str(program), "{}"])
        assert done.exit_code == 0
        assert f"not a message: {line}\n" in done.stderr


class TestEnds:
    def test_agent_that_keeps_silent_is_not_waited_for_longer_than_asked(self, tmp_path, agent):
        """5, and what was missing."""
        done = replay(conversation(), tmp_path, agent=agent(silent="session/new"), timeout=0.3)
        assert done.exit_code == 5
        assert "the answer to request 11 did not come within 0.3 s" in done.stderr

    def test_agent_that_ends_too_early(self, tmp_path, agent):
        """4, at once."""
        done = replay(conversation(), tmp_path, agent=agent(ends="session/new"))
        assert done.exit_code == 4
        assert "the agent ended before the answer to request 11" in done.stderr
        assert "--stderr shows" in done.stderr

    def test_agent_that_cannot_be_started(self, tmp_path):
        """3."""
        assert replay(conversation(), tmp_path, agent=["./no-such-agent"]).exit_code == 3

    def test_trace_without_a_client(self, tmp_path, agent):
        """2, with the connections that are in it."""
        made = Trace("mine#1")
        made.add(AGENT, type="notification", method="m", params={})
        done = replay(made, tmp_path, agent=agent())
        assert done.exit_code == 2
        assert "connections in it: mine#1" in done.stderr

    def test_what_the_trace_has_lost_is_told(self, tmp_path, agent):
        """Masked and cut values are sent as they stand there."""
        made = conversation()
        made.records[0] |= {"masked": True, "cut": 1}
        done = replay(made, tmp_path, agent=agent())
        assert "long values of 1 messages" in done.stderr
        assert "secrets of 1 messages" in done.stderr

    def test_ctrl_c_is_no_difference(self, tmp_path, agent):
        """130, while an answer is waited for."""
        trace = conversation().write(tmp_path / "trace.jsonl")
        terminal = Terminal([*PROGRAM, "replay", trace, "--", *agent(silent="session/new")], tmp_path)
        terminal.expect("replaying ")
        terminal.type("\x03")
        assert terminal.ended() == 130
        terminal.close()
