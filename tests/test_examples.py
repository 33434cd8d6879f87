"""Runs every program of examples/ as its user would, and looks at what it prints and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import acprt

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ECHO_AGENT = shlex.join([sys.executable, str(EXAMPLES / "echo_agent.py")])
SLOW_AGENT = shlex.join([sys.executable, str(EXAMPLES / "slow_agent.py")])  # one that can be stopped
SECONDS = 45

SCRIPTED_AGENT = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def say(text):
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send(method="session/update", params={"sessionId": "s", "update": update})

def ask(method, **params):
    send(id="ours", method=method, params={"sessionId": "s", **params})
    answer = json.loads(sys.stdin.readline())
    return answer.get("result", answer.get("error"))

def turn(script):
    for result in ({"protocolVersion": 1}, {"sessionId": "s"}):
        send(id=json.loads(sys.stdin.readline())["id"], result=result)
    prompt = json.loads(sys.stdin.readline())
    script()
    send(id=prompt["id"], result={"stopReason": "end_turn"})
    sys.stdin.read()

"""


def run_example(name: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """Run an example to its end, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    settings: dict[str, Any] = {"env": ENVIRONMENT, "stdin": subprocess.DEVNULL, "timeout": SECONDS}
    return subprocess.run(command, capture_output=True, encoding="utf-8", **(settings | options))


def prompt_to(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run raw_prompt against an agent that runs `script` when it is prompted."""
    program = f"{SCRIPTED_AGENT}def script():\n{textwrap.indent(script, '    ')}\nturn(script)"
    return run_example("raw_prompt.py", *options, shlex.join([sys.executable, "-c", program]), "hello")


def answering(outcome: str) -> str:
    """The command of an agent that answers its first request with `outcome`."""
    return shlex.join(
        [sys.executable, "-c", f"{SCRIPTED_AGENT}send(id=json.loads(sys.stdin.readline())['id'], {outcome})"]
    )


def test_every_example_is_run_here() -> None:
    """Examples are run by a test."""
    tests = Path(__file__).parent
    pages = [*tests.rglob("test_*examples.py"), tests / "test_agent_benchmark.py"]
    tested = re.findall(r"\b(\w+\.py)\b", "".join(page.read_text(encoding="utf-8") for page in pages))
    assert {path.name for path in EXAMPLES.glob("*.py")} <= set(tested)


class TestGreeter:
    def test_client_prints_progress_before_the_greeting(self) -> None:
        """greeter_client.py starts greeter.py; the notification leaves before the answer."""
        done = run_example("greeter_client.py")
        assert (done.stdout, done.stderr, done.returncode) == ("50 %\nHello, Ada!\n", "", 0)


class TestEchoAgent:
    def test_text_comes_back_whole_and_in_order(self) -> None:
        """What `make demo` shows."""
        text = "hello  there\n 你好 🙂 e\u0301 a\u2028b"
        done = run_example("raw_prompt.py", ECHO_AGENT, text)
        assert (done.stdout, done.stderr, done.returncode) == (f"{text}\n[end_turn]\n", "", 0)

    def test_prompt_before_initialize_is_refused(self) -> None:
        """An error, and nothing else."""
        request = '{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}\n'
        done = run_example("echo_agent.py", stdin=None, input=request)
        assert '"code":-32600' in done.stdout
        assert done.stdout.count("\n") == 1
        assert (done.stderr, done.returncode) == ("", 0)

    def test_sparse_client_is_answered(self) -> None:
        """No capabilities, null members, a version as text; the answer is the version that is spoken."""
        params = '{"protocolVersion":"2","clientInfo":null}'
        request = f'{{"jsonrpc":"2.0","id":"0","method":"initialize","params":{params}}}\n'
        done = run_example("echo_agent.py", stdin=None, input=request)
        assert '"id":"0"' in done.stdout
        assert '"protocolVersion":1' in done.stdout


class TestRawPrompt:
    def test_interrupt_cancels_the_turn(self) -> None:
        """Ctrl-C becomes session/cancel; the agent's answer ends the program as usual."""
        command = [sys.executable, str(EXAMPLES / "raw_prompt.py"), SLOW_AGENT, "word " * 5_000]
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        ) as program:
            try:
                assert program.stdout is not None
                assert program.stdout.read(5) == b"word "
                program.send_signal(signal.SIGINT)
                output, errors = program.communicate(timeout=SECONDS)
            finally:
                program.kill()
        assert output.endswith(b"\n[cancelled]\n")
        assert (errors, program.returncode) == (b"", 0)

    @pytest.mark.parametrize(
        ("kinds", "chosen"),
        [
            (["reject_once", "allow_always", "allow_once"], "selected 2"),
            (["reject_once", "allow_always", "reject_always"], "selected 1"),
            (["new_kind", "reject_once"], "selected 0"),
            ([], "cancelled None"),
        ],
    )
    def test_permission_is_chosen_by_kind(self, kinds, chosen) -> None:
        """Once, then always, then the first; ids and names are the agent's own; the tool call may be unknown."""
        options = [{"optionId": str(n), "name": "?", "kind": kind} for n, kind in enumerate(kinds)]
        done = prompt_to(
            f"answer = ask('session/request_permission', toolCall={{'toolCallId': 'new'}}, options={options})\n"
            "say(' '.join([answer['outcome']['outcome'], str(answer['outcome'].get('optionId'))]))"
        )
        assert done.stdout == f"{chosen}\n[end_turn]\n"

    @pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create", "vendor/request"])
    def test_what_it_does_not_offer_is_refused(self, method) -> None:
        """At once, and the turn goes on."""
        done = prompt_to(f"say(str(ask({method!r}, path='/nowhere')['code']))")
        assert done.stdout == "-32601\n[end_turn]\n"

    def test_other_updates_are_passed_over(self) -> None:
        """Unknown kinds, content that is no text, members nobody knows."""
        done = prompt_to(
            "image = {'sessionUpdate': 'agent_message_chunk', 'content': {'type': 'image', 'data': ''}}\n"
            "for update in ({'sessionUpdate': 'new_kind', 'thing': [1, None]}, image, {}):\n"
            "    send(method='session/update', params={'sessionId': 's', 'update': update, 'x': 1})\n"
            "send(method='vendor/notify', params=None)\n"
            "say('done')"
        )
        assert (done.stdout, done.returncode) == ("done\n[end_turn]\n", 0)

    def test_agent_that_refuses_is_quoted(self) -> None:
        """The reason is the agent's own: its code, message and data, and the stage it was in."""
        done = run_example(
            "raw_prompt.py", answering("error={'code': 1001, 'message': 'none', 'data': {'exit': 1}}"), "hi"
        )
        assert re.fullmatch(
            r"raw_prompt: initialize failed after \d+\.\d s: the agent answered with an error: "
            r'\[1001\] none: \{"exit":1\}\n',
            done.stderr,
        )
        assert done.returncode == 1

    def test_other_protocol_version_is_not_gone_on_with(self) -> None:
        """The answer is checked."""
        done = run_example("raw_prompt.py", answering("result={'protocolVersion': 2}"), "hello")
        assert "does not speak version 1 of the protocol: {'protocolVersion': 2}" in done.stderr
        assert done.returncode == 1


class TestStartUpFailure:
    """Input 16: four failures, four readable messages, each with its stage and the time it took."""

    def test_command_is_missing(self) -> None:
        done = run_example("raw_prompt.py", "no-such-agent --acp", "hello")
        assert re.match(
            r"raw_prompt: start failed after 0\.\d s: the agent could not be started: "
            r"there is no program 'no-such-agent', nor on PATH",
            done.stderr,
        )
        assert (done.stdout, done.returncode) == ("", 1)

    def test_command_exits(self) -> None:
        done = run_example("raw_prompt.py", "sh -c 'echo first >&2; echo second >&2; exit 3'", "hello")
        assert re.fullmatch(
            r"raw_prompt: initialize failed after \d+\.\d s: the agent ended with exit status 3\n"
            r"Its stderr ends:\n  first\n  second\n",
            done.stderr,
        )
        assert (done.stdout, done.returncode) == ("", 1)

    def test_command_stays_silent(self) -> None:
        done = run_example("raw_prompt.py", "--timeout", "0.3", "sh -c 'cat >/dev/null'", "hello")
        assert re.fullmatch(
            r"raw_prompt: initialize failed after 0\.[3-9] s: the agent stayed silent; see --help .*\n", done.stderr
        )
        assert (done.stdout, done.returncode) == ("", 1)

    def test_command_speaks_plain_text(self) -> None:
        command = "sh -c 'echo Welcome to agent; cat >/dev/null'"
        done = run_example("raw_prompt.py", "--timeout", "0.3", command, "hello")
        assert re.search(
            r"^raw_prompt: initialize failed after 0\.[3-9] s: this is not the protocol, "
            r"the first line on its stdout is 'Welcome to agent'; the agent stayed silent",
            done.stderr,
            re.MULTILINE,
        )
        assert (done.stdout, done.returncode) == ("", 1)

    def test_command_speaks_plain_text_and_exits(self) -> None:
        done = run_example("raw_prompt.py", "sh -c 'echo usage: agent FILE; exit 2'", "hello")
        assert "this is not the protocol, the first line on its stdout is 'usage: agent FILE'" in done.stderr
        assert "the agent ended with exit status 2" in done.stderr

    def test_command_cannot_be_read(self) -> None:
        done = run_example("raw_prompt.py", "agent 'unclosed", "hello")
        assert re.match(r"raw_prompt: start failed .*missing closing quote", done.stderr)

    def test_agent_dies_in_mid_turn(self) -> None:
        done = prompt_to("say('half an ans'); print('out of memory', file=sys.stderr); sys.exit(9)")
        assert re.match(r"raw_prompt: session/prompt failed .* the agent ended with exit status 9\n", done.stderr)
        assert done.stderr.endswith("  out of memory\n")
        assert done.stdout == "half an ans"

    def test_agent_goes_silent_in_mid_turn(self) -> None:
        """Input 17: the limit of a turn is on silence."""
        done = prompt_to("say('half an ans'); sys.stdin.read()", "--idle-timeout", "0.3")
        assert re.match(r"raw_prompt: session/prompt failed after 0\.\d s: the agent stayed silent", done.stderr)
        assert done.stdout == "half an ans"

    def test_long_turn_is_not_silence(self) -> None:
        """Input 17: updates put the end off, so a turn may take longer than the limit."""
        script = "import time\nfor _ in range(12):\n    say('.')\n    time.sleep(0.1)"
        done = prompt_to(script, "--idle-timeout", "1")
        assert (done.stdout, done.returncode) == ("............\n[end_turn]\n", 0)

    def test_each_stage_has_half_a_minute_unless_told_otherwise(self) -> None:
        """Real agents take up to 8 s to start."""
        usage = run_example("raw_prompt.py", "--help").stdout
        defaults = [int(number) for number in re.findall(r"default:\s+(\d+)\.0\)", usage)]
        assert len(defaults) == 2
        assert min(defaults) >= 30


class TestProxy:
    PROXY = shlex.join([sys.executable, str(EXAMPLES / "proxy.py"), ECHO_AGENT])

    def test_turn_passes_through(self) -> None:
        """proxy.py names what it forwards, on stderr; the client sees no difference."""
        done = run_example("raw_prompt.py", self.PROXY, "hello there")
        assert (done.stdout, done.stderr, done.returncode) == ("hello there\n[end_turn]\n", "", 0)

    def test_one_shot_input_is_answered_to_the_end(self) -> None:
        """What was piped in before EOF is answered; every message is named."""
        lines = [
            '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}',
            '{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}',
            '{"jsonrpc":"2.0","id":2,"method":"no/such_method"}',
        ]
        done = run_example("proxy.py", ECHO_AGENT, stdin=None, input="\n".join(lines))
        answers = sorted(done.stdout.splitlines())
        assert [re.sub(r'.*"id":(\d+).*', r"\1", answer) for answer in answers] == ["0", "1", "2"]
        assert '"protocolVersion":1' in answers[0]
        assert '"sessionId":"sess-1"' in answers[1]
        assert '"code":-32601' in answers[2]
        assert "proxy: request session/new from the client\n" in done.stderr
        assert done.returncode == 0

    def test_cancels_pass_through(self) -> None:
        """Of a session as they are; of a request to what it is behind the proxy, where it has another id."""
        command = [sys.executable, "-W", "error", str(EXAMPLES / "proxy.py"), SLOW_AGENT]
        with subprocess.Popen(
            command,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None

            def send(method: str, params: Any, **id: int) -> None:
                line = json.dumps({"jsonrpc": "2.0", **id, "method": method, "params": params})
                program.stdin.write(line.encode() + b"\n")  # type: ignore[union-attr]  # asserted above

            def answer_to(id: int) -> Any:
                for line in program.stdout or ():
                    message = json.loads(line)
                    if message.get("id") == id:
                        return message.get("result", message.get("error"))
                raise AssertionError("the proxy ended")

            try:
                send("initialize", {"protocolVersion": 1}, id=0)
                send("session/new", {"cwd": "/", "mcpServers": []}, id=1)
                session = answer_to(1)
                prompt = session | {"prompt": [{"type": "text", "text": "word " * 5_000}]}
                send("session/prompt", prompt, id=2)
                send("session/prompt", prompt, id=3)  # the proxy counts from 1: 2 is its 3, and this one its 4
                send("$/cancel_request", {"requestId": 3})
                assert answer_to(3)["code"] == acprt.ErrorCode.REQUEST_CANCELLED
                send("session/cancel", session)
                assert answer_to(2) == {"stopReason": "cancelled"}
                program.stdin.close()
                assert program.wait(SECONDS) == 0
            finally:
                program.kill()

    def test_message_without_params_passes(self, run) -> None:
        """`raw_params` is empty for a message that has none: forwarded, it has none again."""

        async def main() -> None:
            backend, heard = acprt.Endpoint("backend"), []

            @backend.method("x/ask")
            async def ask(params):
                return [params]

            @backend.on_receive_notification("x/tell")
            async def tell(params) -> None:
                heard.append(params)

            front = acprt.Endpoint("front")
            async with acprt.Endpoint("middle").connect(backend) as onward:

                @front.on_receive_dispatch
                async def forward(dispatch: acprt.Dispatch) -> None:
                    if dispatch.responder is not None:
                        sent = onward.send_request(dispatch.method, dispatch.raw_params)
                        sent.forward_response_to(dispatch.responder)
                    else:
                        onward.send_notification(dispatch.method, dispatch.raw_params)

                async with acprt.Endpoint("client").connect(front) as cx:
                    cx.send_notification("x/tell")
                    assert await cx.send_request("x/ask").block_task(timeout=5) == [None]
            assert heard == [None]

        run(main())

    def test_dispatch_handler_that_passes_a_response_on_does_not_lose_it(self, run) -> None:
        """RR-03 is for routers that are dropped, not for responses that are passed on."""

        async def main() -> None:
            agent, client = acprt.Endpoint("agent"), acprt.Endpoint("client")

            @agent.method("x/ask")
            async def ask(params):
                return "answer"

            @client.on_receive_dispatch
            async def look(dispatch: acprt.Dispatch) -> acprt.Handled:
                return acprt.Handled.no(dispatch)

            async with client.connect(agent) as cx:
                assert await cx.send_request("x/ask").block_task(timeout=5) == "answer"

        run(main())
