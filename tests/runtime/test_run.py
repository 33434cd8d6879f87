"""`acprt.run`: a process that serves its stdin and stdout, and ends whatever its handlers do."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import pytest

from acprt.runtime.run import _watch_parent
from tests.programs import python_code
from tests.runtime.scripted import SHUTTING_DOWN, error, notification, request, result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 30

PREAMBLE = """
import asyncio, os, signal, sys, threading, time
if {hide_uvloop}:
    sys.modules["uvloop"] = None
import acprt
from acprt import Limits
sys.modules["acprt.runtime.run"]._SIGNAL_DRAIN_SECONDS = sys.modules["acprt.runtime.tasks"]._LAST_WAIT = {moment}
agent = acprt.Endpoint("agent")

@agent.method("ready")
async def ready(params): return "ready"

@agent.method("slow")
async def slow(params):
    await asyncio.Event().wait()
"""


MOMENT = 1.0
"""Seconds that a signal leaves to running handlers, and each cancel to who swallows it."""


class Agent:
    """A child that runs `acprt.run` on pipes; everything the test waits for is bounded."""

    def __init__(self, program: str, *, run: str, loop: str, moment: float, **options: Any) -> None:
        code = PREAMBLE.format(hide_uvloop=loop == "asyncio", moment=moment) + textwrap.dedent(program) + f"\n{run}\n"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(
            python_code(code),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            **(pipes | options),
        )
        self.process = cast("subprocess.Popen[bytes]", child)
        self._unread = b""

    def send(self, *messages: Any) -> None:
        """Write messages as lines."""
        stdin = self._pipe(self.process.stdin)
        stdin.write(b"".join((m if isinstance(m, bytes) else msgspec.json.encode(m)) + b"\n" for m in messages))
        stdin.flush()

    def receive(self) -> Any:
        """The next line that it writes, decoded."""
        fd, until = self._pipe(self.process.stdout).fileno(), time.monotonic() + SECONDS
        while b"\n" not in self._unread:
            readable, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
            assert readable, f"nothing more was written; stderr: {self.stop()}"
            data = os.read(fd, 65536)
            assert data, f"its output ended; stderr: {self.stop()}"
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return msgspec.json.decode(line)

    def until_ready(self) -> None:
        """Let it start and dispatch everything sent so far."""
        self.send(request("ready", "ready"))
        assert self.receive() == result("ready", "ready")

    def end(self, *, within: float = SECONDS, status: int = 0) -> tuple[list[Any], str]:
        """Close its stdin, and wait for its end: what it still wrote, and its stderr."""
        out, err = self.process.communicate(timeout=within)
        assert self.process.returncode == status, err.decode()
        return [msgspec.json.decode(line) for line in (self._unread + out).splitlines()], err.decode()

    def end_by(self, number: int, *, within: float = SECONDS) -> tuple[list[Any], str]:
        """Send a signal with stdin left open, and wait for its end."""
        self.process.send_signal(number)
        self.process.wait(within)
        return self.end()

    def stop(self) -> str:
        """Kill it; its stderr."""
        self.process.kill()
        return self.process.communicate(timeout=SECONDS)[1].decode()

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None, "this stream is no pipe of the test's"
        return stream


@contextmanager
def agent(
    program: str = "",
    *,
    run: str = "acprt.run(agent)",
    loop: str = "uvloop",
    moment: float = MOMENT / 10,
    **options: Any,
) -> Iterator[Agent]:
    """An `Agent` that is gone afterwards. It is less patient than a real one, except where that is tested."""
    child = Agent(program, run=run, loop=loop, moment=moment, **options)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.stop()
        for stream in (child.process.stdin, child.process.stdout, child.process.stderr):
            if stream is not None:
                stream.close()


both_loops = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
each_signal = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


class TestEof:
    @both_loops
    def test_piped_requests_are_answered_and_the_exit_code_is_0(self, loop):
        """ST-01: one request line and EOF, with a handler that takes its time."""
        program = """
        @agent.method("add")
        async def add(params):
            await asyncio.sleep(0.05)
            return sum(params)
        """
        with agent(program, loop=loop) as child:
            child.send(request(1, "add", [1, 2]), request(2, "add", [3, 4]))
            lines, err = child.end()
            assert sorted(lines, key=lambda line: line["id"]) == [result(1, 3), result(2, 7)]
            assert err == ""

    @pytest.mark.parametrize(
        ("stdin", "stdout"), [("file", "file"), ("file", "append"), ("null", "null"), ("closed", "closed")]
    )
    @both_loops
    def test_redirected_files_are_served_like_pipes(self, loop, stdin, stdout, tmp_path):
        """Never an abort, never a hang, exit code 0. The whole matrix is in tests/transports/test_stdio.py."""
        given = tmp_path / "in"
        given.write_bytes(msgspec.json.encode(request(1, "ready")) + b"\n")
        written = tmp_path / "out"
        written.write_bytes(b"before\n")
        with (
            open(given if stdin == "file" else os.devnull, "rb") as source,
            open(os.devnull if stdout == "null" else written, "ab" if stdout == "append" else "wb") as target,
        ):
            closed = [number for number, kind in ((0, stdin), (1, stdout)) if kind == "closed"]

            def close() -> None:
                for number in closed:
                    os.close(number)

            before: Callable[[], None] | None = close if closed else None
            with agent(loop=loop, stdin=source, stdout=target, preexec_fn=before) as child:
                _, err = child.process.communicate(timeout=SECONDS)
                assert child.process.returncode == 0, err.decode()
                assert err == b""
        answer = msgspec.json.encode(result(1, "ready")) + b"\n" if stdin == "file" else b""
        if stdout == "file":
            assert written.read_bytes() == answer
        elif stdout == "append":
            assert written.read_bytes() == b"before\n" + answer

    def test_limits_of_run_win_over_those_of_the_endpoint(self):
        """DEC-28: here the drain, which would take an hour."""
        program = "agent.limits = Limits(drain_seconds=3600)"
        with agent(program, run="acprt.run(agent, limits=Limits(drain_seconds=0.05, line_bytes=100))") as child:
            child.send(request(1, "slow"), request(2, "ready", ["x" * 100]))
            assert child.receive()["error"]["data"]["limit"] == 100
            lines, err = child.end()
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]
            assert "1 requests were still running 0.05 s after EOF" in err or err == ""

    @both_loops
    def test_synchronous_handler_that_never_returns_does_not_hold_up_the_exit(self, loop):
        """DEC-15: its thread is left behind with the process."""
        program = """
        @agent.method("stuck")
        def stuck(params):
            threading.Event().wait()
        """
        with agent(program, run="acprt.run(agent, limits=Limits(drain_seconds=0.05))", loop=loop) as child:
            child.send(request(1, "stuck"))
            child.until_ready()
            lines, _ = child.end(within=10)
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]

    def test_what_handlers_print_goes_to_stderr(self):
        """PY-77: the wire stays clean, from the first import to the exit."""
        program = """
        import subprocess
        print("at import", file=sys.stderr)

        @agent.method("noisy")
        async def noisy(params):
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run(["echo", "echoed"])
            return input_is_empty()

        def input_is_empty():
            return subprocess.run(["cat"], capture_output=True).stdout.decode()
        """
        with agent(program) as child:
            child.send(request(1, "noisy"))
            lines, err = child.end()
            assert lines == [result(1, "")]
            assert sorted(err.split()) == ["at", "echoed", "import", "printed", "written"]

    def test_stdout_is_given_back_afterwards(self):
        """What the program prints when it has served goes where it always did."""
        with agent(run="acprt.run(agent); print('\"after\"')") as child:
            child.send(request(1, "ready"))
            assert child.end() == ([result(1, "ready"), "after"], "")

    def test_failure_of_the_connection_is_a_failure_of_the_process(self):
        """LC-07, PY-14: a traceback and exit code 1; what was owed is answered all the same."""
        program = """
        @agent.on_receive_notification("break")
        async def break_it(params, cx):
            async def broken():
                raise ValueError("the cause")
            cx.spawn(broken())
        """
        with agent(program) as child:
            child.send(request(1, "slow"), notification("break"))
            lines, err = child.end(status=1)
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]
            assert "ValueError: the cause" in err

    def test_system_exit_in_a_handler_is_the_exit_code(self):
        """PY-14: what ends a Python program ends it from here, too."""
        program = """
        @agent.method("exit")
        async def leave(params):
            sys.exit(7)
        """
        with agent(program) as child:
            child.send(request(1, "exit"))
            child.end(status=7)

    def test_uvloop_is_used_when_it_can_be_imported(self):
        """And everything works without it."""
        program = """
        @agent.method("loop")
        async def loop(params):
            return type(asyncio.get_running_loop()).__module__.partition(".")[0]
        """
        pytest.importorskip("uvloop")
        for loop in ("asyncio", "uvloop"):
            with agent(program, loop=loop) as child:
                child.send(request(1, "loop"))
                assert child.end()[0] == [result(1, loop)]

    def test_it_serves_from_another_thread_than_the_main_one(self):
        """EO-18: without signals, which Python gives only to the main thread; close callbacks run there."""
        program = """
        @agent.on_close
        async def bye(cx):
            cx.send_notification("closed", [threading.current_thread() is not threading.main_thread()])
        """
        run = "t = threading.Thread(target=acprt.run, args=(agent,)); t.start(); t.join()"
        with agent(program, run=run) as child:
            child.send(request(1, "ready"))
            lines, err = child.end()
            assert sorted(lines, key=str) == sorted([result(1, "ready"), notification("closed", [True])], key=str)
            assert err == ""


class TestSignals:
    """SIGTERM and SIGINT: drain for at most a second, cancel, flush, exit 0."""

    @each_signal
    @both_loops
    def test_idle_agent_ends_at_once(self, loop, number):
        """No traceback, with stdin still open."""
        with agent(loop=loop) as child:
            child.until_ready()
            lines, err = child.end_by(number, within=15)
            assert (lines, err) == ([], "")

    @each_signal
    def test_handler_that_finishes_soon_is_waited_for(self, number):
        """Its answer is the answer."""
        program = """
        @agent.method("soon")
        async def soon(params, cx):
            cx.send_notification("begun")
            await asyncio.sleep(0.2)
            return "in time"
        """
        with agent(program, moment=MOMENT) as child:
            child.send(request(1, "soon"))
            assert child.receive() == notification("begun")
            assert child.end_by(number) == ([result(1, "in time")], "")

    @pytest.mark.parametrize(("loop", "number"), [("asyncio", signal.SIGTERM), ("uvloop", signal.SIGINT)])
    def test_handler_that_does_not_finish_is_cancelled_and_answered(self, loop, number):
        """DEC-25: after the second that it really has."""
        with agent(loop=loop, moment=MOMENT) as child:
            child.send(request(1, "slow"))
            child.until_ready()
            began = time.monotonic()
            lines, err = child.end_by(number)
            assert 0.9 <= time.monotonic() - began <= 10
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]
            assert err == ""

    def test_handler_that_swallows_the_first_cancel_is_cancelled_again(self):
        """One that ignores a cancel cannot hold up the exit."""
        program = """
        @agent.method("stubborn")
        async def stubborn(params, cx):
            for name in ("first", "second"):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    print("swallowed the", name, file=sys.stderr)
            return "after two"
        """
        with agent(program) as child:
            child.send(request(1, "stubborn"))
            child.until_ready()
            lines, err = child.end_by(signal.SIGTERM, within=10)
            assert lines == [result(1, "after two")]
            assert err.splitlines() == ["swallowed the first", "swallowed the second"]

    @both_loops
    def test_handler_that_swallows_every_cancel_is_left_behind(self, loop):
        """Answered, and the process exits 0."""
        program = """
        @agent.method("immortal")
        async def immortal(params):
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass
        """
        with agent(program, loop=loop) as child:
            child.send(request(1, "immortal"))
            child.until_ready()
            lines, err = child.end_by(signal.SIGTERM, within=15)
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]
            assert "Traceback" not in err

    def test_synchronous_handler_that_never_returns_does_not_hold_up_the_exit(self):
        """DEC-15."""
        program = """
        @agent.method("stuck")
        def stuck(params):
            threading.Event().wait()
        """
        with agent(program) as child:
            child.send(request(1, "stuck"))
            child.until_ready()
            lines, _ = child.end_by(signal.SIGTERM, within=10)
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]

    def test_ordered_handler_that_holds_the_loop_is_ended_too(self):
        """DEC-25: with what waits behind it."""
        program = """
        @agent.on_receive_request("hold")
        async def hold(params, responder, cx):
            cx.send_notification("holding")
            await asyncio.Event().wait()
        """
        with agent(program) as child:
            child.send(request(1, "hold"), request(2, "ready"))
            assert child.receive() == notification("holding")
            lines, _ = child.end_by(signal.SIGTERM, within=10)
            assert sorted(line["id"] for line in lines) == [1, 2]
            assert all(line["error"] == SHUTTING_DOWN for line in lines)

    def test_second_signal_changes_nothing(self):
        """An impatient Ctrl-C is no traceback."""
        with agent() as child:
            child.send(request(1, "slow"))
            child.until_ready()
            child.process.send_signal(signal.SIGINT)
            child.process.send_signal(signal.SIGINT)
            child.process.send_signal(signal.SIGTERM)
            lines, err = child.end_by(signal.SIGINT, within=10)
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}]
            assert err == ""

    def test_signal_after_eof_cuts_the_drain_short(self):
        """Also while close callbacks run that never end."""
        program = """
        @agent.on_close
        async def bye(cx):
            cx.send_notification("closing")
            await asyncio.Event().wait()
        """
        with agent(program, run="acprt.run(agent, limits=Limits(drain_seconds=3600))") as child:
            child.until_ready()
            assert child.process.stdin is not None
            child.process.stdin.close()
            child.process.stdin = None
            assert child.receive() == notification("closing")
            child.process.send_signal(signal.SIGTERM)
            child.end(within=10)


class TestVanishedReader:
    @both_loops
    def test_reader_that_has_gone_ends_it_quietly(self, loop):
        """DEC-26, LC-06: exit code 0, nothing on stderr."""
        program = """
        @agent.on_receive_notification("flood")
        async def flood(params, cx):
            for _ in range(10_000):
                cx.send_notification("n", ["x" * 100])
        """
        with agent(program, loop=loop) as child:
            child.until_ready()
            assert child.process.stdout is not None
            child.process.stdout.close()
            child.process.stdout = None
            child.send(notification("flood"))
            child.process.wait(SECONDS)
            assert child.process.stderr is not None
            assert child.process.stderr.read() == b""
            assert child.process.returncode == 0


class TestExitWithParent:
    """`exit_with_parent=True` (PY-71): the agent goes when the process that started it does."""

    MIDDLE = "import subprocess, sys; subprocess.Popen(sys.argv[2:], stdin=int(sys.argv[1])); sys.stdin.read()"

    @pytest.mark.parametrize("asked", [True, False])
    @both_loops
    def test_agent_ends_when_its_parent_is_killed(self, loop, asked):
        """PY-71: with its stdin held open by somebody else; without the option it lives on."""
        run = f"acprt.run(agent, exit_with_parent={asked})"
        code = PREAMBLE.format(hide_uvloop=loop == "asyncio", moment=MOMENT) + run
        stdin_read, stdin_write = os.pipe()
        stdout_read, stdout_write = os.pipe()
        command = [sys.executable, "-c", self.MIDDLE, str(stdin_read), *python_code(code)]
        middle = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=stdout_write,
            pass_fds=[stdin_read],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            os.close(stdin_read)
            os.close(stdout_write)
            os.write(stdin_write, msgspec.json.encode(request(1, "ready")) + b"\n")
            assert _read_line(stdout_read) == msgspec.json.encode(result(1, "ready")) + b"\n"
            middle.kill()
            middle.wait(SECONDS)
            if asked:
                assert _read_line(stdout_read) == b"", "the output must end with the agent"
            else:
                os.write(stdin_write, msgspec.json.encode(request(2, "ready")) + b"\n")
                assert _read_line(stdout_read) == msgspec.json.encode(result(2, "ready")) + b"\n"
        finally:
            middle.kill()
            middle.wait(SECONDS)
            assert middle.stdin is not None
            middle.stdin.close()
            os.close(stdin_write)
            _read_line(stdout_read)
            os.close(stdout_read)

    def test_agent_whose_parent_lives_serves_as_usual(self):
        """PY-71: nothing is ended by mistake, and the watch ends with the serving."""
        with agent(run="acprt.run(agent, exit_with_parent=True)") as child:
            child.until_ready()
            assert child.end() == ([], "")

    @pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="polled there")
    def test_watch_ends_when_the_parent_has(self, run, monkeypatch):
        """PY-71: what tells it stays readable, and the loop must not spin on it while the agent drains."""
        readable, write = os.pipe()
        os.close(write)
        monkeypatch.setattr(os, "pidfd_open", lambda _pid: readable)

        async def main():
            loop, stop = asyncio.get_running_loop(), asyncio.Event()
            forget = _watch_parent(loop, stop)
            await stop.wait()
            assert not loop.remove_reader(readable), "it is not watched any more"
            forget()

        run(main())

    def test_parent_is_polled_where_the_kernel_cannot_tell(self):
        """PY-71: other systems than Linux."""
        program = """
        sys.platform = "darwin"
        """
        with agent(program, run="acprt.run(agent, exit_with_parent=True)") as child:
            child.until_ready()
            assert child.end() == ([], "")


def _read_line(fd: int) -> bytes:
    """What comes up to the next LF or the end, bounded."""
    data = b""
    while not data.endswith(b"\n"):
        readable, _, _ = select.select([fd], [], [], SECONDS)
        assert readable, "nothing came"
        byte = os.read(fd, 1)
        if not byte:
            break
        data += byte
    return data


def test_unknown_method_is_answered():
    """UN-01, through a whole process."""
    with agent() as child:
        child.send(request(1, "nobody"))
        assert child.end()[0] == [error(1, -32601, "Method not found", "nobody")]
