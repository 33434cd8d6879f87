"""examples/agent_benchmark.py: what one agent does wrong costs its task and no other, and a stopped run goes on."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PROGRAM = EXAMPLES / "agent_benchmark.py"
ECHO = f"{shlex.quote(sys.executable)} {shlex.quote(str(EXAMPLES / 'echo_agent.py'))}"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}
SECONDS = 45

# An agent that leaves its tracks: a line in `started` per start. Told "die" it exits, told "hang" it is silent.
TRACKED = """\
import asyncio, os, sys
import acprt
from acprt import acp
from acprt.acp import v1

with open("started", "a") as started:
    started.write(f"{os.getpid()}\\n")
agent = acp.Agent("tracked", version="1")

@agent.method
async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    return v1.NewSessionResponse(session_id="s")

@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    text = request.prompt[0].text
    if text == "die":
        print("I was told to", file=sys.stderr)
        os._exit(3)
    if text == "hang":
        await asyncio.Event().wait()
    if text == "refuse":
        raise acprt.RpcError.auth_required()
    if text == "ask":
        options = [v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = v1.ToolCallUpdate(tool_call_id="1")
        question = v1.RequestPermissionRequest(session_id="s", tool_call=call, options=options)
        text = (await cx.send_request(question).block_task()).outcome.option_id
    chunk = v1.AgentMessageChunk(content=v1.TextContent(text=text))
    cx.send_notification(v1.SessionNotification(session_id="s", update=chunk))
    return v1.PromptResponse(stop_reason="end_turn")

acprt.run(agent)
"""


@pytest.fixture
def tracked(tmp_path: Path) -> str:
    """The command of that agent, which runs in `tmp_path`."""
    program = tmp_path / "tracked.py"
    program.write_text(TRACKED)
    return shlex.join([sys.executable, str(program)])


def tasks_in(folder: Path, **tasks: str | tuple[str, str]) -> str:
    lines = []
    for id, task in tasks.items():
        prompt, expect = task if isinstance(task, tuple) else (task, "")
        lines.append(json.dumps({"id": id, "prompt": prompt, "expect": expect}) + "\n")
    (folder / "tasks.jsonl").write_text("".join(lines))
    return str(folder / "tasks.jsonl")


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def results_in(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "results.jsonl").read_text().splitlines()
    return {f"{result['agent']} {result['task']}": result for result in map(json.loads, lines)}


def starts_in(folder: Path) -> int:
    return len((folder / "started").read_text().splitlines())


class TestOutcomes:
    def test_answer_is_kept_and_judged(self, tmp_path):
        """The echo agent's text is in the result; `expect` tells passed from failed, and none is always met."""
        tasks = tasks_in(tmp_path, right=("hello there", "hel+o"), wrong=("hello", "^good bye"), any="hm")
        done = run_in(tmp_path, tasks, "--agent", f"echo={ECHO}", "--chart", "chart.svg")
        assert done.returncode == 0, done.stderr
        results = results_in(tmp_path)
        assert results["echo right"]["text"] == "hello there"
        assert results["echo right"]["stop_reason"] == "end_turn"
        assert results["echo right"]["updates"] >= 1
        assert 0 < results["echo right"]["first_update_seconds"] <= results["echo right"]["seconds"]
        assert [results[f"echo {id}"]["status"] for id in ("right", "wrong", "any")] == ["passed", "failed", "passed"]
        head, row = (line.split() for line in done.stdout.splitlines())
        assert (row[0], row[1], row[head.index("passed")], row[head.index("failed")]) == ("echo", "3", "2", "1")
        bars = [title.text for title in ElementTree.parse(tmp_path / "chart.svg").findall(".//{*}title")]
        assert bars == ["2 passed", "1 failed"]

    def test_crash_and_hang_cost_one_task_each(self, tmp_path, tracked):
        """The tasks beside them pass, with the same agent and with another; a dead agent's last words are kept."""
        tasks = tasks_in(tmp_path, before="one", crash="die", silence="hang", after="two")
        agents = ["--agent", f"tracked={tracked}", "--agent", f"echo={ECHO}"]
        done = run_in(tmp_path, tasks, *agents, "--timeout", "8", "--retries", "0", "--parallel", "2")
        assert done.returncode == 0, done.stderr
        results = results_in(tmp_path)
        assert {name: result["status"] for name, result in results.items()} == {
            "tracked before": "passed",
            "tracked crash": "crashed",
            "tracked silence": "timeout",
            "tracked after": "passed",
            "echo before": "passed",
            "echo crash": "passed",
            "echo silence": "passed",
            "echo after": "passed",
        }
        assert "I was told to" in results["tracked crash"]["error"]

    def test_agent_that_cannot_start_or_answers_an_error_is_told_apart(self, tmp_path, tracked):
        """A program that is not there is a crash; an error answer is an error, with its text."""
        tasks = tasks_in(tmp_path, one="refuse")
        agents = ["--agent", "gone=/nonexistent/agent", "--agent", f"tracked={tracked}"]
        assert run_in(tmp_path, tasks, *agents, "--retries", "0").returncode == 0
        results = results_in(tmp_path)
        assert (results["gone one"]["status"], results["tracked one"]["status"]) == ("crashed", "error")
        assert "-32000" in results["tracked one"]["error"]

    def test_what_an_agent_asks_is_allowed(self, tmp_path, tracked):
        tasks = tasks_in(tmp_path, one=("ask", "^yes$"))
        assert run_in(tmp_path, tasks, "--agent", f"tracked={tracked}").returncode == 0
        assert results_in(tmp_path)["tracked one"]["status"] == "passed"


class TestAttempts:
    def test_crash_is_tried_again_and_a_wrong_answer_is_not(self, tmp_path, tracked):
        """Each attempt is a process of its own."""
        tasks = tasks_in(tmp_path, crash="die", wrong=("one", "two"))
        assert run_in(tmp_path, tasks, "--agent", f"tracked={tracked}", "--retries", "2").returncode == 0
        results = results_in(tmp_path)
        assert results["tracked crash"]["attempts"] == 3
        assert "attempts" not in results["tracked wrong"]
        assert starts_in(tmp_path) == 4

    def test_no_process_is_left_behind(self, tmp_path, tracked):
        """Not even that of an agent which hangs."""
        tasks = tasks_in(tmp_path, silence="hang")
        assert (
            run_in(tmp_path, tasks, "--agent", f"tracked={tracked}", "--timeout", "5", "--retries", "0").returncode == 0
        )
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "started").read_text()), 0)


class TestResuming:
    def test_what_is_done_is_not_run_again(self, tmp_path, tracked):
        """A second run with one task more starts one agent; its summary has all."""
        agent = ["--agent", f"tracked={tracked}"]
        run_in(tmp_path, tasks_in(tmp_path, one="one", two="two"), *agent)
        assert starts_in(tmp_path) == 2
        done = run_in(tmp_path, tasks_in(tmp_path, one="one", two="two", three="three"), *agent)
        assert starts_in(tmp_path) == 3
        assert "2 results were there; 1 to go" in done.stderr
        assert done.stdout.splitlines()[1].split()[:3] == ["tracked", "3", "3"]

    def test_again_runs_what_did_not_pass(self, tmp_path, tracked):
        """And its new result takes the place of the old one."""
        agent = ["--agent", f"tracked={tracked}", "--retries", "0"]
        run_in(tmp_path, tasks_in(tmp_path, good="one", bad="die"), *agent)
        done = run_in(tmp_path, tasks_in(tmp_path, good="one", bad="two"), *agent, "--again")
        assert starts_in(tmp_path) == 3
        assert done.stdout.splitlines()[1].split()[:3] == ["tracked", "2", "2"]

    def test_line_that_was_cut_off_is_run_again(self, tmp_path, tracked):
        """A run that is killed while it writes leaves half a line."""
        agent = ["--agent", f"tracked={tracked}"]
        tasks = tasks_in(tmp_path, one="one", two="two")
        run_in(tmp_path, tasks, *agent, "--parallel", "1")
        path = tmp_path / "results.jsonl"
        path.write_bytes(path.read_bytes()[:-10])
        assert run_in(tmp_path, tasks, *agent).returncode == 0
        assert starts_in(tmp_path) == 3
        assert {result["status"] for result in results_in(tmp_path).values()} == {"passed"}

    def test_interrupted_run_says_how_to_go_on(self, tmp_path, tracked):
        """Ctrl-C while an agent hangs: what is done stays, no traceback, and no agent is left."""
        tasks = tasks_in(tmp_path, one="one", silence="hang")
        command = [
            sys.executable,
            "-W",
            "error",
            str(PROGRAM),
            tasks,
            "--agent",
            f"tracked={tracked}",
            "--parallel",
            "1",
        ]
        with subprocess.Popen(
            command, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as program:
            assert program.stderr is not None
            assert program.stderr.readline() == "1/2 tracked one: passed\n"
            program.send_signal(signal.SIGINT)
            rest = program.stderr.read()
        assert program.returncode == 1
        assert "the same command goes on" in rest
        assert "Traceback" not in rest
        assert list(results_in(tmp_path)) == ["tracked one"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "a"}', "tasks.jsonl:1: Object missing required field `prompt`"),
        ('{"id": "a", "prompt": "x", "expct": "y"}', "unknown field `expct`"),
        ('{"id": "a", "prompt": "x", "expect": "("}', "tasks.jsonl:1: "),
        ('{"id": "a", "prompt": "x"}\n{"id": "a", "prompt": "y"}', "ids are there twice: a"),
    ],
)
def test_bad_task_is_named_before_anything_runs(tmp_path, tracked, line, complaint):
    (tmp_path / "tasks.jsonl").write_text(line + "\n")
    done = run_in(tmp_path, "tasks.jsonl", "--agent", f"tracked={tracked}")
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not (tmp_path / "started").exists()
