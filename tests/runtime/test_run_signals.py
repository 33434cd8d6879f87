"""`acprt.run` and what ends it from outside: signals, and the end of its parent."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time

import msgspec
import pytest

from acprt.runtime.run import _watch_parent
from tests.programs import python_code
from tests.runtime.running import MOMENT, PREAMBLE, ROOT, SECONDS, agent, both_loops
from tests.runtime.scripted import SHUTTING_DOWN, notification, request, result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")


each_signal = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


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
