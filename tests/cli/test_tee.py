"""`acprt trace`: whoever talks through it must not be able to tell that it is there; the trace tells what was said."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROGRAM, SECONDS, acprt_program, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes and signals")

INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"apiKey":"hunter2"}}\n'


def python(code: str) -> list[str]:
    """An agent that is a line of Python, started as fast as can be."""
    return [sys.executable, "-I", "-S", "-c", code]


def tee(trace: Path, *options: str, agent: list[str], **settings: Any) -> subprocess.Popen[bytes]:
    """The tee in front of `agent`, on pipes."""
    given: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    given["env"] = environment()
    return subprocess.Popen([*PROGRAM, "trace", "-o", str(trace), *options, "--", *agent], **(given | settings))


def through(trace: Path, data: bytes, *options: str, agent: list[str]) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a tee whose editor writes `data` and closes."""
    with tee(trace, *options, agent=agent) as process:
        out, err = process.communicate(data, timeout=SECONDS)
    return process.returncode, out, err


def records(trace: Path) -> list[dict[str, Any]]:
    """What was recorded."""
    return [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]


class TestBytes:
    def test_any_bytes_pass_unchanged(self, tmp_path):
        """Malformed UTF-8, NULs, no line end at the end: the tee has no opinion."""
        data = random.Random(7).randbytes(3_000_000)
        assert through(tmp_path / "t", data, agent=["cat"]) == (0, data, b"")

    def test_line_beyond_every_limit_passes_unchanged(self, tmp_path):
        """The trace keeps its beginning and its size."""
        line = b'{"jsonrpc":"2.0","id":"big","method":"m","params":["' + b"x" * 20_000_000 + b'"]}\n'
        assert through(tmp_path / "t", line, agent=["cat"]) == (0, line, b"")
        first = records(tmp_path / "t")[0]
        assert (first["type"], first["id"], first["method"]) == ("request", "big", "m")
        assert (first["size"], first["cut"]) == (len(line) - 1, 1)

    def test_descriptors_that_do_not_block_are_served(self, tmp_path):
        """Editors on Node hand out sockets, whose description they share."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        data = b"y" * 4_000_000 + b"\n"
        with ours, tee(tmp_path / "t", agent=["cat"], stdin=theirs, stdout=theirs) as process:
            theirs.close()

            def write() -> None:
                ours.sendall(data)
                ours.shutdown(socket.SHUT_WR)

            writer = threading.Thread(target=write)
            writer.start()
            got = bytearray()
            while piece := ours.recv(1 << 20):
                got += piece
            writer.join(SECONDS)
            assert process.wait(SECONDS) == 0
        assert bytes(got) == data

    def test_stderr_passes(self, tmp_path):
        """Recorded or not."""
        agent = python("import sys; sys.stderr.write('one\\ntwo')")
        assert through(tmp_path / "a", b"", agent=agent) == (0, b"", b"one\ntwo")
        assert through(tmp_path / "b", b"", "--stderr", agent=agent) == (0, b"", b"one\ntwo")
        assert records(tmp_path / "a") == []
        assert [each["text"] for each in records(tmp_path / "b") if each["type"] == "stderr"] == ["one", "two"]

    def test_disk_that_is_full_costs_the_trace_alone(self):
        """Nothing that passes waits for it."""
        if not os.path.exists("/dev/full"):
            pytest.skip("needs /dev/full")
        code, out, _ = through(Path("/dev/full"), INITIALIZE, agent=["cat"])
        assert (code, out) == (0, INITIALIZE)


class TestEnds:
    def test_end_of_input_reaches_the_agent_and_its_answer_the_editor(self, tmp_path):
        """A half-close is one."""
        agent = python("import sys; n = len(sys.stdin.read()); print('got', n)")
        assert through(tmp_path / "t", b"12345", agent=agent)[:2] == (0, b"got 5\n")

    def test_agent_that_closes_its_output_is_seen_to(self, tmp_path):
        """While it goes on reading."""
        agent = python("import os; os.write(1, b'bye'); os.close(1); os.read(0, 9); os._exit(4)")
        with tee(tmp_path / "t", agent=agent) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.read() == b"bye"
            assert process.poll() is None
            process.stdin.write(b"go")
            process.stdin.close()
            assert process.wait(SECONDS) == 4

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
    def test_full_disk_behind_stdout_ends_the_agents_output_and_is_told(self, tmp_path):
        """As for an agent whose reader is gone; its exit code is still that of the tee."""
        agent = python("import os\ntry:\n while True: os.write(1, b'x' * 999)\nexcept BrokenPipeError: os._exit(5)")
        with open("/dev/full", "wb") as full, tee(tmp_path / "t", agent=agent, stdout=full) as process:
            _, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (5, b"acprt: the output cannot be written: No space left on device\n")

    def test_agent_that_closes_its_input_is_seen_to(self, tmp_path):
        """The editor's writes fail, as they would without the tee."""
        agent = python("import os, signal; os.close(0); os.write(1, b'.'); signal.pause()")
        with tee(tmp_path / "t", agent=agent) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.read(1) == b"."
            with pytest.raises(BrokenPipeError):
                for _ in range(100_000):
                    os.write(process.stdin.fileno(), b"x" * 1000)
            process.kill()

    def test_editor_that_stops_reading_is_seen_by_the_agent(self, tmp_path):
        """It gets the broken pipe that is meant for it."""
        agent = python("import os\ntry:\n  while True: os.write(1, b'x' * 1000)\nexcept BrokenPipeError: os._exit(7)")
        with tee(tmp_path / "t", agent=agent) as process:
            assert process.stdout is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.wait(SECONDS) == 7

    @pytest.mark.parametrize("code", [0, 1, 77, 255])
    def test_exit_code_is_the_agents(self, tmp_path, code):
        """Editors show it."""
        assert through(tmp_path / "t", b"", agent=["sh", "-c", f"exit {code}"])[0] == code

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV"])
    def test_death_by_a_signal_is_the_agents(self, tmp_path, name):
        """The same signal, not a number that stands for it."""
        number = signal.Signals[name]
        agent = python(f"import os; os.kill(os.getpid(), {int(number)})")
        assert through(tmp_path / "t", b"", "--stderr", agent=agent)[0] == -number
        (exited,) = (each for each in records(tmp_path / "t") if each.get("event") == "exited")
        assert exited["payload"]["status"] == -number

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
    def test_signals_are_for_the_agent(self, tmp_path, name):
        """It decides what they mean; its answer to them still passes."""
        number = int(signal.Signals[name])
        agent = python(
            "import os, signal, sys\n"
            f"signal.signal({number}, lambda *_: (os.write(1, b'caught'), os._exit(9)))\n"
            "os.write(1, b'r')\nwhile True: signal.pause()"
        )
        with tee(tmp_path / "t", agent=agent, start_new_session=True) as process:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"r"
            process.send_signal(number)
            assert process.stdout.read() == b"caught"
            assert process.wait(SECONDS) == 9

    def test_descendant_that_holds_the_pipe_does_not_hold_the_tee(self, tmp_path):
        """The agent's end is the end; what it said before still passes."""
        agent = ["sh", "-c", "sleep 30 & echo last; exit 5"]
        with tee(tmp_path / "t", agent=agent, stderr=None) as process:
            assert process.stdout is not None
            assert process.stdout.read() == b"last\n"
            assert process.wait(10) == 5

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent")
    def test_killing_the_tee_kills_the_agent(self, tmp_path):
        """A SIGKILL cannot be passed on; no agent is left behind all the same."""
        with tee(tmp_path / "t", agent=python("import os, signal; os.write(1, b'r'); signal.pause()")) as process:
            assert process.stdout is not None
            assert process.stdout.read(1) == b"r"
            process.kill()
            assert process.stdout.read() == b""  # the agent was the last to hold the other end

    def test_agent_that_cannot_be_started(self, tmp_path):
        """3, and the reason."""
        done = acprt_program("trace", "-o", str(tmp_path / "t"), "--", "./no-such-agent")
        assert (done.returncode, done.stdout) == (3, "")
        assert "'./no-such-agent' could not be started: No such file" in done.stderr

    def test_wrong_use_is_told(self, tmp_path):
        """2: no command, no file, a file that cannot be."""
        for words in (["-o", "t"], ["--", "cat"], ["-o", str(tmp_path / "no" / "t"), "--", "cat"]):
            assert acprt_program("trace", *words, cwd=tmp_path).returncode == 2


class TestTrace:
    AGENT = python(
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "  id = json.loads(line)['id']\n"
        "  print(json.dumps({'jsonrpc': '2.0', 'id': id, 'result': {'protocolVersion': 1}}), flush=True)\n"
        "  print('no json', flush=True)"
    )

    def test_messages_are_recorded_in_order_and_paired(self, tmp_path):
        """The request stands before its answer, always; the sides have their names."""
        code, out, _ = through(tmp_path / "t", INITIALIZE, "--name", "mine", agent=self.AGENT)
        assert (code, out.count(b"\n")) == (0, 2)
        asked, answered, rubbish = records(tmp_path / "t")
        assert [asked["type"], answered["type"], rubbish["type"]] == ["request", "response", "malformed"]
        assert (asked["from"], asked["to"], answered["from"], answered["to"]) == ("Client", "Agent", "Agent", "Client")
        assert answered["latency"] > 0
        assert answered["protocol"] == "acp"
        assert asked["connection"].startswith("mine#")
        assert rubbish["text"] == "no json"

    def test_secrets_are_masked_unless_that_is_refused(self, tmp_path):
        """What passes is not touched."""
        for options, key in (((), "***"), (("--no-redact",), "hunter2")):
            trace = tmp_path / f"t{len(options)}"
            assert through(trace, INITIALIZE, *options, agent=["cat"])[1] == INITIALIZE
            assert records(trace)[0]["params"]["apiKey"] == key

    def test_life_of_the_agent_is_recorded_when_asked_for(self, tmp_path):
        """Its command without secrets, its pid, its exit."""
        through(tmp_path / "t", b"", "--stderr", agent=["sh", "-c", "exit 3", "--token", "hush"])
        started, exited = records(tmp_path / "t")
        assert started["payload"]["command"] == ["sh", "-c", "exit 3", "--token", "***"]
        assert exited["payload"] == {"pid": started["payload"]["pid"], "status": 3}

    def test_new_file_is_private(self, tmp_path):
        """A trace holds prompts and files."""
        through(tmp_path / "t", b"", agent=["true"])
        assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600


def test_ctrl_c_in_a_terminal_reaches_the_agent_once(tmp_path):
    """A terminal sends it to the whole group, so the tee must not send it again."""
    pty = pytest.importorskip("pty")
    agent = python(
        "import os, signal\ncount = 0\n"
        "def caught(*_):\n  global count\n  count += 1\n"
        "signal.signal(signal.SIGINT, caught)\n"
        "os.write(1, b'ready\\n')\nos.read(0, 1)\n"
        "os.write(1, b'caught %d\\n' % count)"
    )
    terminal, inside = pty.openpty()
    # The first terminal that the leader of a session opens is its own.
    takes_it = "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execv(sys.argv[1], sys.argv[1:])"
    words = [*python(takes_it), *PROGRAM, "trace", "-o", str(tmp_path / "t"), "--", *agent]
    ends = {"stdin": inside, "stdout": inside, "stderr": inside}
    process = subprocess.Popen(words, start_new_session=True, env=environment(), **ends)
    os.close(inside)
    seen = b""
    with os.fdopen(terminal, "r+b", buffering=0) as screen:
        while b"ready" not in seen:
            seen += screen.read(1000)
        screen.write(b"\x03")
        while b"^C" not in seen:
            seen += screen.read(1000)
        screen.write(b"x\n")
        while b"caught" not in seen:
            seen += screen.read(1000)
        assert process.wait(SECONDS) == 0
    assert b"caught 1" in seen
