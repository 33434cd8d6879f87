"""Inputs that broke other programs, each at the level where a user meets it: whole agents and clients, real pipes.

Those that concern one room are tested beside that room.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from tests.conftest import LOOPS
from tests.programs import python_code

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30.0
WORDS = "你好 🙂 e\u0301 \u05e9\u05dc\u05d5\u05dd ß \U00020000"
LEGACY = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}

AGENT = """
import asyncio, logging, os, subprocess, sys
import acprt

agent = acprt.Endpoint("agent")
{handlers}
if {loop!r} == "uvloop":
    acprt.run(agent)
else:
    asyncio.run(agent.serve(acprt.stdio()))
"""


@pytest.fixture(params=LOOPS)
def loop_name(request: pytest.FixtureRequest) -> str:
    """Both loops, in the child."""
    return request.param


def agent_with(handlers: str, loop_name: str) -> list[str]:
    """The command of an agent that has these handlers."""
    return python_code(AGENT.format(handlers=handlers, loop=loop_name))


def run_agent(command: list[str], *requests: Any, **options: Any) -> tuple[list[Any], str]:
    """Pipe the requests in, all at once, then EOF. The agent's answers in order of their ids, and its stderr."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, input=lines.encode(), capture_output=True, timeout=SECONDS, **({"env": environment} | options)
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return sorted(answers, key=lambda answer: answer["id"]), done.stderr.decode()


def request(id: int, method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


class TestLegacyEnvironment:
    """Input 5: a legacy code page and LC_ALL=C. The wire is UTF-8 whatever the locale says."""

    HANDLERS = """
@agent.method("echo")
async def echo(params):
    os.write(2, params["text"].encode() + b"\\n")
    return {"text": params["text"], "length": len(params["text"])}
"""
    CLIENT = """
import asyncio, json, sys
import acprt

text, command = json.loads(sys.argv[1]), json.loads(sys.argv[2])
heard = []

async def main():
    agent = acprt.AgentProcess(*command, on_stderr=heard.append)
    async with acprt.Endpoint("client").connect(agent) as cx:
        answer = await cx.send_request("echo", {"text": text}).block_task(timeout=20)
    print(json.dumps([answer["text"] == text, answer["length"], heard]))

asyncio.run(main())
"""

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
    def test_text_survives_in_both_directions_and_on_stderr(self, loop_name, encoding) -> None:
        command = json.dumps(agent_with(self.HANDLERS, loop_name))
        done = subprocess.run(
            [sys.executable, "-c", self.CLIENT, json.dumps(WORDS), command],
            env={**os.environ, **LEGACY, "PYTHONIOENCODING": encoding},
            capture_output=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [True, len(WORDS), [WORDS]]

    def test_prompt_of_a_command_line_survives(self) -> None:
        """The example takes its text from the arguments, which Python decodes by the locale."""
        raw_prompt, echo_agent = (str(ROOT / "examples" / name) for name in ("raw_prompt.py", "echo_agent.py"))
        done = subprocess.run(
            [sys.executable, raw_prompt, f"{sys.executable} {echo_agent}", WORDS.encode()],
            env={**os.environ, **LEGACY},
            capture_output=True,
            timeout=SECONDS,
        )
        assert done.stdout.decode() == f"{WORDS}\n[end_turn]\n"


class TestOutputOfAHandler:
    """Input 10: whatever a handler, a library or a child prints, the wire stays pure and the text is on stderr."""

    HANDLERS = """
logging.basicConfig(stream=sys.stdout, format="%(message)s")

@agent.method("noisy")
async def noisy(params):
    print("noise: print")
    sys.__stdout__.write("noise: sys.__stdout__\\n")
    sys.__stdout__.flush()
    os.write(1, b"noise: descriptor\\n")
    logging.getLogger().error("noise: logging")
    subprocess.run(["/bin/sh", "-c", "echo noise: child"], check=True)
    print('{"jsonrpc":"2.0","id":1,"result":"noise: forged"}')
    return "quiet"

@agent.method("noisy/sync")
def noisy_in_a_thread(params):
    print("noise: thread")
    return "quiet"
"""
    NOISE = ("print", "sys.__stdout__", "descriptor", "logging", "child", "forged", "thread")

    def test_wire_stays_pure(self, loop_name) -> None:
        answers, errors = run_agent(agent_with(self.HANDLERS, loop_name), request(1, "noisy"), request(2, "noisy/sync"))
        assert [answer["result"] for answer in answers] == ["quiet", "quiet"]
        for noise in self.NOISE:
            assert f"noise: {noise}" in errors


class TestProgramOfAHandler:
    """Input 11: a program that reads stdin to its end, started with default arguments, reads nothing of the wire."""

    HANDLERS = """
@agent.method("sync")
def sync(params):
    return subprocess.run(["cat"], capture_output=True, check=True).stdout.decode()

@agent.method("async")
async def asynchronous(params):
    cat = await asyncio.create_subprocess_exec("cat", stdout=subprocess.PIPE)
    output, _ = await cat.communicate()
    return output.decode()
"""

    def test_it_ends_at_once_and_every_request_is_answered(self, run, loop_name) -> None:
        """While the wire stays open, so that only its own stdin can have ended it."""

        async def main() -> None:
            agent = acprt.AgentProcess(*agent_with(self.HANDLERS, loop_name), env={"PYTHONPATH": str(ROOT)})
            async with acprt.Endpoint("client").connect(agent) as cx:
                for _ in range(2):
                    sent = [cx.send_request(method).block_task(timeout=SECONDS) for method in ("sync", "async") * 3]
                    assert await asyncio.gather(*sent) == [""] * 6

        run(main(), timeout=SECONDS)


class TestStartUp:
    """Input 16, for who uses the API: four failures, four errors. The command line of them is in test_examples.py."""

    def test_command_is_missing(self, run) -> None:
        async def main() -> None:
            with pytest.raises(acprt.RpcError) as caught:
                await initialize("no-such-agent --acp")
            assert caught.value.data["reason"] == "spawn_failed"
            assert caught.value.data["stage"] == "spawn"
            assert "there is no program 'no-such-agent', nor on PATH" in str(caught.value)

        run(main())

    def test_command_exits(self, run) -> None:
        async def main() -> None:
            with pytest.raises(acprt.RpcError) as caught:
                await initialize("sh -c 'echo first >&2; echo second >&2; exit 3'")
            assert acprt.is_incoming_transport_closed(caught.value)
            assert caught.value.data["method"] == "initialize"
            assert caught.value.data["exit_status"] == 3
            assert caught.value.data["stderr_tail"] == "first\nsecond\n"

        run(main())

    def test_command_stays_silent(self, run) -> None:
        async def main() -> None:
            with pytest.raises(TimeoutError, match=r"no answer to initialize \(id 1\) after 0\.\d s.* is running"):
                await initialize("sh -c 'cat >/dev/null'", timeout=0.2)

        run(main())

    def test_command_speaks_plain_text(self, run) -> None:
        async def main() -> None:
            spoken = asyncio.Event()
            client = acprt.Endpoint("client")
            client.trace(lambda event: spoken.set() if b"Welcome" in event.line else None)
            command = "sh -c 'read request; echo Welcome to agent; cat >/dev/null'"
            async with client.connect(acprt.AgentProcess.parse(command)) as cx:
                sent = cx.send_request("initialize", {"protocolVersion": 1})
                await spoken.wait()
                with pytest.raises(TimeoutError, match=r"1 lines? of the peer .* no JSON-RPC.*Welcome to agent"):
                    await sent.block_task(timeout=0.2)

        run(main())


async def initialize(command: str, timeout: float = SECONDS) -> Any:
    async with acprt.Endpoint("client").connect(acprt.AgentProcess.parse(command)) as cx:
        return await cx.send_request("initialize", {"protocolVersion": 1}).block_task(timeout=timeout)


class TestIdleLimit:
    """Input 17: a limit on silence is an asyncio.timeout that each update puts off. An absolute one is `timeout=`."""

    IDLE_SECONDS = 5.0

    def test_updates_put_the_end_off_and_silence_brings_it(self) -> None:
        """Thirty updates one second apart succeed under a limit of five; then five seconds of silence fail."""
        clock = _ClockLoop()
        agent, client = acprt.Endpoint("agent"), acprt.Endpoint("client")
        limits: list[asyncio.Timeout] = []
        silence = asyncio.Event()

        @agent.method("session/prompt")
        async def prompt(params: Any, cx: acprt.Connection) -> str:
            for _ in range(30):
                clock.advance(1.0)
                cx.send_notification("session/update", {})
                await cx.send_request("client/in_step").block_task()  # answered behind the update
            if params["then"] == "silence":
                silence.set()
                await asyncio.Event().wait()
            return "end_turn"

        @client.on_receive_notification("session/update")
        async def update(params: Any) -> None:
            limits[-1].reschedule(clock.time() + self.IDLE_SECONDS)

        @client.on_receive_request("client/in_step")
        async def in_step(params: Any, responder: acprt.Responder[None]) -> None:
            responder.respond(None)

        async def turn(cx: acprt.Connection, then: str) -> Any:
            async with asyncio.timeout(self.IDLE_SECONDS) as limit:
                limits.append(limit)
                return await cx.send_request("session/prompt", {"then": then}).block_task()

        async def main() -> None:
            async with client.connect(agent) as cx:
                started = clock.time()
                assert await turn(cx, "answer") == "end_turn"
                assert clock.time() - started >= 30.0
                silent = asyncio.create_task(turn(cx, "silence"))
                await silence.wait()
                clock.advance(self.IDLE_SECONDS - 0.5)
                with pytest.raises(acprt.RpcError):
                    await cx.send_request("no/such_method").block_task()  # time for whatever is due
                assert not silent.done()
                clock.advance(1.0)
                with pytest.raises(TimeoutError):
                    await silent

        with asyncio.Runner(loop_factory=lambda: clock) as runner:
            runner.run(asyncio.wait_for(main(), 3_600))


class _ClockLoop(asyncio.SelectorEventLoop):
    """A loop whose clock also goes when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self._advanced = 0.0

    def time(self) -> float:
        return super().time() + self._advanced

    def advance(self, seconds: float) -> None:
        self._advanced += seconds
