"""`acprt run` and `acprt echo`: serving an endpoint, and what stands in the way of that."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from acprt.cli.editors import EDITORS
from acprt.cli.exit_codes import ExitCode
from tests.cli.running import PROGRAM, acprt, acprt_program, environment

HELLO = """
import acprt
from acprt import acp
from acprt.acp import v1

def make():
    agent = acp.Agent("greeter", version="1.0")

    @agent.method
    async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id="s")

    @agent.method
    async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
        acp.SessionUpdates(cx, request.session_id).message("hello")
        return v1.PromptResponse(stop_reason="end_turn")

    return agent
"""
SECONDS = 45


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("greeter.py").write_text(f"{HELLO}\nagent = make()\n")
    tmp_path.joinpath("factory.py").write_text(HELLO)
    tmp_path.joinpath("noisy.py").write_text(f"print('loading'){HELLO}\nagent = make()\n")
    tmp_path.joinpath("broken.py").write_text("def agent():\n    raise ValueError('no key')\n")
    tmp_path.joinpath("several.py").write_text(f"{HELLO}\none, two = make(), make()\n")
    return tmp_path


@pytest.mark.parametrize("target", ["greeter:agent", "greeter", "greeter.py", "greeter.py:agent", "factory:make"])
def test_an_endpoint_is_served_by_module_or_file(target: str, folder: Path) -> None:
    result = acprt("prompt", "hi", "--", *PROGRAM, "run", target, "--app-dir", str(folder))

    assert (result.exit_code, result.stdout) == (0, "hello\n"), result.stderr


def test_what_a_module_prints_while_it_is_loaded_is_kept_off_the_wire(folder: Path) -> None:
    done = acprt_program("run", "noisy:agent", "--app-dir", str(folder))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "loading\n")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere:agent", "there is no module 'nowhere'"),
        ("nowhere.py", "there is no file"),
        ("greeter:other", "module 'greeter' has no 'other'"),
        ("greeter:HELLO", "has no 'HELLO'"),
        ("several", "name the endpoint, as in several:agent; the module has: one, two"),
        ("factory", "the module has: none"),
        ("json:dumps.__name__", "is str, not an endpoint"),
    ],
)
def test_a_target_that_is_not_there_is_a_usage_error(target: str, says: str, folder: Path) -> None:
    done = acprt_program("run", target, "--app-dir", str(folder))

    assert done.returncode == ExitCode.USAGE
    assert says in done.stderr


def test_a_module_that_fails_shows_its_own_frames_only(folder: Path) -> None:
    done = acprt_program("run", "broken:agent", "--app-dir", str(folder))

    assert done.returncode == ExitCode.FAILED
    assert "no key" in done.stderr
    assert "broken.py" in done.stderr
    assert "loading.py" not in done.stderr
    assert "broken:agent cannot be served" in done.stderr


def test_a_trace_is_written_on_request(folder: Path) -> None:
    trace = folder / "wire.jsonl"
    agent = [*PROGRAM, "run", "greeter", "--app-dir", str(folder), "--trace", str(trace)]

    assert acprt("prompt", "hi", "--", *agent).exit_code == 0
    assert "session/prompt" in trace.read_text()


@pytest.mark.parametrize("editor", EDITORS)
def test_each_editor_gets_settings_that_name_the_agent_and_its_command(editor: str, folder: Path) -> None:
    done = acprt_program("run", "greeter:agent", "--app-dir", str(folder), "--editor", editor)

    assert done.returncode == 0
    comment, _, settings = done.stdout.partition("\n")
    assert comment.startswith(("//", "--", ";;"))
    assert '"greeter"' in settings
    assert str(folder) in settings
    if comment.startswith("//"):
        (servers,) = json.loads(settings).values()
        assert servers["greeter"]["args"] == ["-m", "acprt", "run", "greeter:agent", "--app-dir", str(folder)]


def test_the_settings_of_an_editor_keep_the_options(folder: Path) -> None:
    trace = folder / "wire.jsonl"
    options = ["--log-level", "info", "--trace", str(trace), "--reload", "--exit-with-parent"]
    done = acprt_program("run", "greeter:agent", "--app-dir", str(folder), *options, "--editor", "zed")

    args = json.loads(done.stdout.partition("\n")[2])["agent_servers"]["greeter"]["args"]
    assert args[6:] == ["--log-level=info", f"--trace={trace}", "--reload", "--exit-with-parent"]


def test_the_command_in_the_settings_starts_the_agent(folder: Path) -> None:
    done = acprt_program("run", "greeter:agent", "--app-dir", str(folder), "--editor", "zed")
    server = json.loads(done.stdout.partition("\n")[2])["agent_servers"]["greeter"]

    result = acprt("prompt", "hi", "--", shlex.join([server["command"], *server["args"]]))
    assert result.stdout == "hello\n"


def test_reloading_keeps_the_client_connected(folder: Path) -> None:
    with reloading("greeter.py", folder) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None

        def ask(number: int, method: str, params: object) -> dict[str, object]:
            assert program.stdin is not None
            assert program.stdout is not None
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            program.stdin.write(f"{json.dumps(request)}\n")
            while (message := json.loads(program.stdout.readline())).get("id") != number:
                said.append(message["params"]["update"]["content"]["text"])
            return message

        said: list[str] = []
        prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}
        assert "result" in ask(1, "initialize", {"protocolVersion": 1})
        assert ask(2, "session/prompt", prompt)["result"] == {"stopReason": "end_turn"}

        source = folder / "greeter.py"
        source.write_text(source.read_text().replace('"hello"', '"good morning"'))
        assert "files changed" in program.stderr.readline()
        assert ask(3, "session/prompt", prompt)["result"] == {"stopReason": "end_turn"}
        assert said == ["hello", "good morning"]

        source.write_text("this is no Python")
        assert "files changed" in program.stderr.readline()
        while "could not be started" not in (line := program.stderr.readline()):
            pass
        assert line.endswith("initialize: the agent ended with exit code 1; a changed file starts it anew\n")
        error = ask(4, "session/prompt", prompt)["error"]
        assert isinstance(error, dict)
        assert error["data"]["reason"] == "reload_failed"

        program.stdin.close()
        assert program.wait(timeout=SECONDS) == 0


def reloading(target: str, folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    words = [*PROGRAM, "run", target, "--app-dir", str(folder), "--reload"]
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), text=True, bufsize=1)


@pytest.mark.parametrize("target", ["broken:agent", "nowhere"])
def test_reloading_fails_at_eof_if_no_agent_came_to_run(target: str, folder: Path) -> None:
    with reloading(target, folder) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        while "the agent ended with exit status" not in program.stderr.readline():
            pass
        program.stdin.close()

        assert program.wait(timeout=SECONDS) == ExitCode.FAILED
        assert program.stderr.read().startswith("acprt: no agent came to run before the end of the input")


def test_reloading_an_agent_that_nobody_asked_is_no_failure(folder: Path) -> None:
    done = acprt_program("run", "greeter", "--app-dir", str(folder), "--reload")

    assert (done.returncode, done.stderr) == (ExitCode.OK, "")


def test_reloading_ends_with_its_parent_on_request(folder: Path) -> None:
    command = [*PROGRAM, "run", "greeter", "--app-dir", str(folder), "--reload", "--exit-with-parent"]
    parent = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(parent, stdin=pipe, stdout=pipe, env=environment(), text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n')
        assert "result" in program.stdout.readline()
        program.kill()

        assert program.stdout.read() == ""  # whoever held it has gone, though stdin is open


def test_reloading_tells_of_an_agent_that_ends_by_itself(folder: Path) -> None:
    with reloading("broken:agent", folder) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        while "the agent ended with exit status 1; a changed file starts it anew" not in program.stderr.readline():
            pass
        program.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "initialize"}\n')
        assert json.loads(program.stdout.readline())["error"]["data"]["reason"] == "reload_failed"

        source = folder / "broken.py"
        source.write_text(f"{HELLO}\nagent = make()\n")
        assert "files changed" in program.stderr.readline()
        program.stdin.write('{"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"protocolVersion": 1}}\n')
        assert json.loads(program.stdout.readline())["result"]["protocolVersion"] == 1

        program.stdin.close()
        assert program.wait(timeout=SECONDS) == ExitCode.OK


def test_the_echo_agent_says_what_it_is_told() -> None:
    result = acprt("prompt", "hello\nworld", "--", *PROGRAM, "echo")

    assert (result.exit_code, result.stdout) == (0, "hello\nworld\n")


def test_the_echo_agent_speaks_the_draft_too() -> None:
    params = '{"protocolVersion": 2, "info": {"name": "test", "version": "1"}, "capabilities": {}}'
    result = acprt("call", "initialize", params, "--", *PROGRAM, "echo")

    assert json.loads(result.stdout)["protocolVersion"] == 2
