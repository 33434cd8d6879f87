"""`acprt show`: a trace as lines, filtered, coloured, followed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from acprt.cli.show_preview import preview
from acprt.cli.show_records import read_records
from tests.cli.running import PROGRAM, SECONDS, acprt, environment
from tests.cli.traced import AGENT, CLIENT, Trace


@pytest.fixture
def trace(tmp_path) -> str:
    """Two sessions, an error, a line that is no message."""
    made = Trace()
    made.ask(1, "initialize", {"protocolVersion": 1, "clientInfo": {"name": "ed", "version": "2"}})
    made.answer(1, "initialize", {"protocolVersion": 1}, latency=0.5)
    made.turn(2, "s1", "hello", "Hi", " there")
    made.turn(3, "s2", "other", "Yes")
    made.ask("2", "no/such")
    made.answer("2", "no/such", {"code": -32601, "message": "Method not found"}, is_error=True)
    made.add(AGENT, type="malformed", text="Segmentation fault", error="Parse error")
    return made.write(tmp_path / "trace.jsonl")


def shown(*words: str) -> list[str]:
    """The lines that the command prints, the one about the connection left out."""
    done = acprt("show", *words)
    assert done.exit_code == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("──")]


class TestLines:
    def test_each_event_is_a_line(self, trace):
        """Who to whom, kind, method, id, latency, session, and what it is about."""
        lines = shown(trace)
        assert len(lines) == 12
        assert "Client → Agent  request      initialize #1 protocol 1, ed 2" in lines[0]
        assert "Agent → Client response     initialize #1 500.0 ms protocol 1" in lines[1]
        assert "request      session/prompt #2 @s1 hello" in lines[2]
        assert "notification session/update @s1 agent_message_chunk: Hi" in lines[3]
        assert "response     session/prompt #2 250.0 ms @s1 end_turn" in lines[5]
        assert "no/such #2 [-32601] Method not found" in lines[10]
        assert "malformed    malformed Parse error — Segmentation fault" in lines[11]

    def test_connections_are_announced(self, tmp_path):
        """Where another one has its turn."""
        first, second = Trace("one#1"), Trace("two#1", pid=2)
        first.ask(1, "a")
        second.ask(1, "b")
        (tmp_path / "t").write_text("".join(json.dumps(each.records[0]) + "\n" for each in (first, second, first)))
        done = acprt("show", str(tmp_path / "t"))
        titles = [line for line in done.stdout.splitlines() if line.startswith("──")]
        assert titles == ["── one#1 (pid 1) ──", "── two#1 (pid 2) ──", "── one#1 (pid 1) ──"]

    def test_colour_is_for_terminals_or_on_request(self, trace):
        """Nothing else is written to a file."""
        assert "\x1b[" not in acprt("show", trace).stdout
        assert "\x1b[" in acprt("show", "--color", trace).stdout

    def test_terminal_obeys_nothing_that_a_peer_wrote(self, tmp_path):
        """Escape sequences, line ends and marks that turn a line around are shown, not done."""
        made = Trace("evil\x1b[2J#1")
        made.turn(1, "s\x1b", "\x1b]0;title\x07 a\nb\r\u202ec")
        made.ask(2, "m\x1b[31m", {"k\x9b": "\x1b[1m"})
        done = acprt("show", "--full", made.write(tmp_path / "t"))
        assert not set("\x1b\x07\r\x9b\u202e") & set(done.stdout)
        assert "\\e]0;title\\x07 a\\nb\\r\\x202ec" in done.stdout

    def test_full_shows_the_message(self, trace):
        """Under its line."""
        assert '          "text": "hello"' in shown("--full", "--id", "2", "--session", "s1", trace)

    def test_lines_that_are_no_records_are_counted(self, trace):
        """A trace may be cut anywhere; the rest is shown."""
        with open(trace, "a") as file:
            file.write('garbage\n[]\n{"type": "requ')
        done = acprt("show", trace)
        assert len(done.stdout.splitlines()) == 13
        assert "3 lines" in done.stderr

    def test_file_that_is_not_there(self):
        """2, and why."""
        done = acprt("show", "no-such-file")
        assert done.exit_code == 2
        assert "no-such-file: No such file" in done.stderr

    @pytest.mark.parametrize(
        ("method", "params", "text"),
        [
            ("session/new", {"cwd": "/home"}, "/home"),
            ("fs/read_text_file", {"path": "/a.py"}, "/a.py"),
            ("terminal/create", {"command": "ls", "args": ["-l"]}, "ls -l"),
            (
                "session/request_permission",
                {"toolCall": {"title": "rm"}, "options": [{"name": "Yes"}, {"name": "No"}]},
                "rm: Yes | No",
            ),
            ("session/prompt", {"prompt": [{"type": "image"}, {"type": "text", "text": "see"}]}, "[image] see"),
            (
                "session/update",
                {"update": {"sessionUpdate": "plan", "entries": [{"status": "completed"}, {}]}},
                "1 of 2",
            ),
            ("session/update", {"update": {"sessionUpdate": "tool_call", "title": "Read", "status": "x"}}, "Read, x"),
            ("session/update", {"update": 3}, '{"update":3}'),
            ("session/prompt", {"prompt": {"a": []}}, "[None]"),
            ("terminal/create", {"args": 3}, '{"args":3}'),
            ("own/method", {"x": [1, None]}, '{"x":[1,null]}'),
        ],
    )
    def test_gist_of_a_message(self, tmp_path, method, params, text):
        """Whatever its shape."""
        made = Trace()
        made.ask(1, method, params)
        (line,) = shown(made.write(tmp_path / "t"))
        assert text in line


ANY = st.recursive(st.none() | st.integers(-9, 9) | st.text(max_size=3), lambda some: st.lists(some, max_size=3))
NAMES = st.sampled_from(
    [
        *("update", "sessionUpdate", "content", "prompt", "type", "text", "entries", "options", "toolCall", "title"),
        *("command", "args", "outcome", "availableCommands", "clientInfo", "message", "status", "pid", "code", "name"),
    ]
)
BODY = st.recursive(ANY, lambda some: st.dictionaries(NAMES, some, max_size=4) | st.lists(some, max_size=3))
METHODS = ["initialize", "session/prompt", "session/update", "session/request_permission", "terminal/create", "x"]


@hypothesis.given(
    body=BODY,
    method=st.sampled_from([*METHODS, "session/new", "fs/read_text_file", "tools/call"]),
    kind=st.sampled_from(["request", "response", "notification", "message", "process"]),
    is_error=st.booleans(),
)
def test_no_message_is_too_odd_to_be_shown(body, method, kind, is_error):
    """It holds for every shape, on one line."""
    raw = json.dumps({"type": kind, "method": method, "params": body, "is_error": is_error, "event": "exited"}).encode()
    (record,) = read_records([raw], print)
    assert len(preview(record)) <= 160
    assert "\n" not in preview(record)
    assert record.is_bad in (True, False)


class TestFilters:
    @pytest.mark.parametrize(
        ("words", "count"),
        [
            (["--method", "initialize"], 2),
            (["--method", "session/*"], 7),
            (["--method", "session/prompt", "--method", "no/*"], 6),
            (["--session", "s1"], 4),
            (["--session", "s"], 7),
            (["--id", "2"], 4),
            (["--id", '"2"'], 2),
            (["--errors"], 2),
            (["--errors", "--method", "no/such"], 1),
            (["--connection", "agent#1"], 12),
            (["--connection", "other"], 0),
        ],
    )
    def test_conditions_are_joined(self, trace, words, count):
        """An answer goes with the method of its request."""
        assert len(shown(*words, trace)) == count

    def test_json_is_the_records(self, trace):
        """For the next program."""
        lines = acprt("show", "--json", "--errors", trace).stdout.splitlines()
        assert [json.loads(line)["type"] for line in lines] == ["response", "malformed"]

    def test_stdin_is_read(self, trace):
        """`-` is a file, too."""
        with open(trace) as file:
            done = acprt("show", "--id", "3", "-", stdin=file.read())
        assert done.stdout.count("session/prompt") == 2

    def test_page_does_not_follow(self, trace):
        """Two things that do not go together are told."""
        assert acprt("show", "--follow", "--html", "x.html", trace).exit_code == 2


def test_follow_shows_what_is_added_until_it_is_interrupted(trace, tmp_path):
    """A record is shown once its line is whole; a file that begins anew is read anew."""
    more = Trace()
    more.add(CLIENT, type="notification", method="fresh/one", params={})
    line = json.dumps(more.records[0]) + "\n"
    words = [*PROGRAM, "show", "--follow", "--method", "fresh/*", trace]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        with open(trace, "a") as file:
            file.write(line[:20])
            file.flush()
            file.write(line[20:])
        assert process.stdout.readline().startswith("──")
        assert "fresh/one" in process.stdout.readline()
        os.truncate(trace, 0)
        with open(trace, "a") as file:
            file.write(line.replace("fresh/one", "fresh/two"))
        assert "fresh/two" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_a_trace_without_what_is_looked_for_is_told(trace, tmp_path):
    """Silence could mean anything."""
    done = acprt("show", "--session", "no-such", trace)

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"acprt: nothing to show: {trace} has no such event\n"


@pytest.mark.parametrize("time", ["1e17", "-1e17", '"noon"'])
def test_a_time_that_no_clock_shows_costs_its_line(trace, tmp_path, time):
    """The others are shown."""
    odd = tmp_path / "odd.jsonl"
    first, *others = Path(trace).read_text().splitlines()
    odd.write_text("\n".join([re.sub(r'"time":\s*[^,]+', f'"time": {time}', first), *others]))
    done = acprt("show", str(odd))

    assert done.exit_code == 0
    assert "1 lines of" in done.stderr
    assert len(done.stdout.splitlines()) == len(acprt("show", trace).stdout.splitlines()) - 1


def test_no_member_of_a_record_steers_the_terminal(tmp_path):
    """A trace may come from anybody."""
    made = Trace()
    made.add(AGENT, type="mal\x1b]0;x\x07formed", text="x", error="e")
    made.records[0] |= {"from": "\x1b[2J", "to": "\x9b2J", "method": "\x1b[1m", "session": "\x1b[3m"}
    done = acprt("show", "--full", "--no-color", made.write(tmp_path / "t.jsonl"))

    assert done.exit_code == 0
    assert not set(done.stdout) & {"\x1b", "\x07", "\x9b"}
