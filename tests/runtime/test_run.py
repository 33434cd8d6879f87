"""`acprt.run`: a process that serves its stdin and stdout, and ends with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec
import pytest

from tests.runtime.running import SECONDS, agent, both_loops
from tests.runtime.scripted import SHUTTING_DOWN, error, notification, request, result

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")


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
            assert "1 request was still running 0.05 s after EOF" in err or err == ""

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

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
    @both_loops
    def test_full_disk_is_told_in_a_line(self, loop):
        """No traceback: nothing is wrong with the program. The exit code is that of the command in this case."""
        with open("/dev/full", "wb") as full, agent(loop=loop, stdout=full) as child:
            child.send(request(1, "ready"))
            _, err = child.process.communicate(timeout=SECONDS)
            assert child.process.returncode == 1
            assert err == b"acprt: the output cannot be written: No space left on device\n"

    def test_full_disk_of_a_handler_is_a_failure_like_any_other(self):
        """Only what was to be written to stdout is told in a line."""
        program = """
        import errno

        @agent.on_receive_notification("break")
        async def break_it(params, cx):
            cx.fail(OSError(errno.ENOSPC, "elsewhere"))
        """
        with agent(program) as child:
            child.send(notification("break"))
            _, err = child.end(status=1)
            assert err.startswith("Traceback")
            assert "elsewhere" in err

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


def test_unknown_method_is_answered():
    """UN-01, through a whole process."""
    with agent() as child:
        child.send(request(1, "nobody"))
        assert child.end()[0] == [error(1, -32601, "Method not found", "nobody")]
