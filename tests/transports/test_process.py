"""A child as a transport: how it starts, what passes, how its end is told. Its teardown is in test_process_teardown."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import sys
import textwrap
import threading

import pytest

from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.transports import child_run
from acprt.transports.base import ChildStatus, Transport
from acprt.transports.process import AgentProcess
from acprt.wire.lines import OversizedLine
from tests.transports.children import (
    ECHO,
    QUICK,
    descriptors,
    gone,
    has_children,
    is_running,
    opened,
    python,
    run_script,
    shell,
    when_reaped,
)

MIB = 1024 * 1024
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc or uses what only Linux has")


class TestStart:
    """What the child is given."""

    def test_nothing_runs_before_it_is_opened(self, run, tmp_path):
        """AG-10: building the object starts nothing, opening it does, and at once."""
        started = tmp_path / "started"

        async def main():
            agent = shell(f"echo x > '{started}'; echo up; cat")
            assert agent.child_status() is None
            assert agent.facts() == {}
            assert not has_children()
            sink = opened(agent)
            status = agent.child_status()
            assert status is not None
            assert is_running(status.pid)
            assert await sink.line() == "up"
            assert started.exists()
            await agent.aclose()

        run(main())

    def test_using_it_before_it_is_opened_is_an_error_that_says_so(self, run):
        """The error says what to do instead."""

        async def main():
            agent = shell("cat")
            for call in (lambda: agent.write(b"x\n"), agent.pause_reading, agent.resume_reading, agent.close_write):
                with pytest.raises(RuntimeError, match=r"AgentProcess.*was not connected yet"):
                    call()
            with pytest.raises(RuntimeError, match="not connected"):
                await agent.drain()
            await agent.aclose()

        run(main())

    def test_the_environment_is_inherited_and_overlaid(self, run, monkeypatch):
        """AG-10: as it is when the child starts; None takes a variable away."""
        agent = shell(
            'echo "$KEPT|$CHANGED|${GONE-unset}|$ADDED"; cat', env={"CHANGED": "b", "GONE": None, "ADDED": "c"}
        )
        monkeypatch.setenv("KEPT", "a")
        monkeypatch.setenv("CHANGED", "x")
        monkeypatch.setenv("GONE", "x")

        async def main():
            assert await opened(agent).line() == "a|b|unset|c"
            await agent.aclose()

        run(main())

    def test_an_environment_that_is_not_inherited_is_all_there_is(self, run, monkeypatch):
        """`inherit_env=False`."""
        monkeypatch.setenv("KEPT", "a")

        async def main():
            agent = AgentProcess("/usr/bin/env", env={"ONE": "1", "NONE": None}, inherit_env=False)
            sink = opened(agent)
            await sink.event("eof")
            assert sink.lines == [b"ONE=1"]
            await agent.aclose()

        run(main())

    def test_the_working_directory_is_inherited_or_given(self, run, tmp_path):
        """AG-10."""

        async def main():
            for cwd, expected in ((None, os.getcwd()), (tmp_path, str(tmp_path))):
                agent = AgentProcess("/bin/pwd", cwd=cwd)
                assert await opened(agent).line() == os.path.realpath(expected)
                await agent.aclose()

        run(main())

    def test_it_leads_a_group_of_its_own(self, run):
        """AG-12."""

        async def main():
            agent = python("import os; print(os.getpid(), os.getpgrp(), flush=True); input()")
            pid, group = (await opened(agent).line()).split()
            assert pid == group
            await agent.aclose()

        run(main())

    @linux
    def test_it_gets_three_blocking_pipes_and_nothing_else(self, run):
        """AG-10: a non-blocking descriptor breaks most programs, and an open one of ours would keep others alive."""
        code = """
            import fcntl, os, stat
            fds = [int(name) for name in os.listdir('/proc/self/fd')]
            inherited = [fd for fd in fds if os.path.exists(f'/proc/self/fd/{fd}')]
            pipes = all(stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in range(3))
            flags = [fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK for fd in range(3)]
            print(sorted(inherited), pipes, flags, flush=True)
            input()
        """

        async def main():
            other = shell("cat")
            opened(other)
            agent = python(textwrap.dedent(code))
            assert await opened(agent).line() == "[0, 1, 2] True [0, 0, 0]"
            await agent.aclose()
            await other.aclose()

        run(main())

    @linux
    def test_its_pipes_are_enlarged(self, run):
        """1 MiB messages pass 1.7 times faster."""
        code = "import fcntl; print(*(fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) for fd in (0, 1)), flush=True); input()"

        async def main():
            agent = python(code)
            sizes = [int(size) for size in (await opened(agent).line()).split()]
            assert sizes == [256 * 1024] * 2
            await agent.aclose()

        run(main())

    @linux
    def test_a_refused_enlargement_is_no_error(self, run, monkeypatch):
        """EPERM: the share of pipe memory of an ordinary user is soon used up."""
        real = fcntl.fcntl

        def refuse(fd, command, argument=0):
            if command == fcntl.F_SETPIPE_SZ:
                raise PermissionError(1, "Operation not permitted")
            return real(fd, command, argument)

        monkeypatch.setattr(fcntl, "fcntl", refuse)

        async def main():
            agent = python(ECHO)
            sink = opened(agent)
            agent.write(b"x\n")
            assert await sink.line() == "x"
            await agent.aclose()

        run(main())

    def test_a_peer_that_was_spawned_is_told_from_others(self):
        """DEC-23."""
        transport: Transport = AgentProcess("agent")
        assert transport.peer_is_child

    def test_one_child_at_a_time(self, run):
        """A second connection must not take the pipes of the first; when that is closed there is a fresh child."""

        async def main():
            agent = shell("echo $$; cat")
            first = await opened(agent).line()
            with pytest.raises(RuntimeError, match="already in use"):
                opened(agent)
            await agent.aclose()
            sink = opened(agent)
            second = await sink.line()
            assert second != first
            status = agent.child_status()
            assert status is not None
            assert status == ChildStatus(pid=int(second))
            await agent.aclose()

        run(main())

    def test_a_child_that_exited_is_in_use_until_it_is_closed(self, run):
        """Otherwise the late `aclose()` of the first connection would end the child of the second."""

        async def main():
            agent = shell("exit 0")
            await opened(agent).event("eof")
            with pytest.raises(RuntimeError, match="already in use"):
                opened(agent)
            await agent.aclose()
            await opened(agent).event("eof")
            await agent.aclose()

        run(main())

    def test_repr_tells_the_state(self, run):
        """The command as before, with pid and exit status."""

        async def main():
            agent = shell("exit 3")
            await opened(agent).event("eof")
            status = agent.child_status()
            assert status is not None
            assert repr(agent) == f"<AgentProcess('/bin/sh', '-c', 'exit 3') pid={status.pid} exit_status=3>"
            await agent.aclose()

        run(main())


def spawn_error(agent: AgentProcess) -> RpcError:
    with pytest.raises(RpcError) as caught:
        opened(agent)
    return caught.value


class TestSpawnFailure:
    """It fails at once, says why in words of the command, and leaves nothing behind."""

    def test_a_missing_program(self, run):
        """AG-11."""

        async def main():
            error = spawn_error(AgentProcess("acprt-no-such-program", "--token=hide-me"))
            assert (error.code, error.message) == (-32603, "Could not start the agent")
            assert error.data == {
                "reason": "spawn_failed",
                "stage": "spawn",
                "command": "acprt-no-such-program --token=hide-me",
                "error": "there is no program 'acprt-no-such-program', nor on PATH: No such file or directory",
            }
            assert isinstance(error.__cause__, FileNotFoundError)
            assert "hide-me" not in str(error)
            assert "no program 'acprt-no-such-program'" in str(error)

        run(main())

    def test_the_agent_is_as_it_was(self, run):
        """AG-11: it can be tried again once the program is there."""

        async def main():
            agent = AgentProcess("acprt-no-such-program")
            spawn_error(agent)
            spawn_error(agent)
            assert agent.child_status() is None
            await agent.aclose()

        run(main())

    def test_other_reasons_are_told_apart(self, run, tmp_path):
        """The text is the reason, not the class of failure."""
        data = tmp_path / "data"
        data.write_text("not a program\n")
        script = tmp_path / "script"
        script.write_text("#!/no/such/interpreter\n")
        bare = tmp_path / "bare"
        bare.write_text("no first line\n")
        for file in (script, bare):
            file.chmod(0o755)
        cases = [
            (AgentProcess("/bin/true", cwd=tmp_path / "none"), "cannot enter the working directory"),
            (AgentProcess("/bin/true", cwd=data), "cannot enter the working directory"),
            (AgentProcess("./none", cwd=tmp_path), "there is no program './none': No such file"),
            (AgentProcess(data), "may not be executed: Permission denied"),
            (AgentProcess(tmp_path), "may not be executed: Permission denied"),
            (AgentProcess(script), "the interpreter that it names is not"),
            (AgentProcess("script", env={"PATH": str(tmp_path)}), "the interpreter that it names is not"),
            (AgentProcess("./script", cwd=tmp_path), "the interpreter that it names is not"),
            (AgentProcess(bare), "is not a program (a script needs a first line"),
            (AgentProcess("/bin/true", "x" * 3 * MIB), "Argument list too long"),
        ]

        async def main():
            for agent, text in cases:
                error = spawn_error(agent)
                assert text in error.data["error"], (agent, error)
                assert text in str(error)

        run(main())

    def test_no_descriptors_left_is_a_spawn_failure_too(self, run):
        """Also when it strikes half-way, nothing is left open."""
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

        async def main():
            before = descriptors()
            used = max(int(entry.split()[0]) for entry in before)
            for room in range(1, 12):
                resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))
                try:
                    agent = shell("cat")
                    with contextlib.suppress(RpcError):
                        opened(agent)
                        await agent.aclose()
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert descriptors() == before, f"with room for {room}"
            assert not has_children()

        run(main())

    def test_a_loop_that_cannot_watch_the_pipes_leaves_nothing(self, run, monkeypatch):
        """PY-70: everything after the start is guarded too."""

        def refuse(*_args, **_options):
            raise OSError(28, "No space left on device")

        async def main():
            before = descriptors()
            monkeypatch.setattr(child_run, "ChildOutput", refuse)
            agent = shell("cat")
            with pytest.raises(OSError, match="No space left"):
                opened(agent)
            # the descriptor that was being handed over is its new owner's, who is not there in this test
            left = [entry for entry in descriptors() if entry not in before]
            assert len(left) == 1
            os.close(int(left[0].split()[0]))
            assert not has_children()
            assert agent.child_status() is None

        run(main())

    def test_a_child_that_cannot_be_watched_is_ended(self, run, monkeypatch):
        """PY-70: started, but not ours to keep."""

        def refuse(pid):
            raise OSError(24, "Too many open files")

        async def main():
            before = descriptors()
            monkeypatch.setattr("acprt.transports.child._exit_descriptor", refuse)
            error = spawn_error(shell("trap '' TERM HUP; sleep 60"))
            assert "Too many open files" in error.data["error"]
            assert not has_children()
            assert descriptors() == before

        run(main())

    @linux
    def test_300_missing_programs_leave_nothing_open(self, run):
        """A failed start gives back each descriptor that it took."""

        async def main():
            spawn_error(AgentProcess("acprt-no-such-program"))
            before = descriptors()
            for _ in range(300):
                spawn_error(AgentProcess("acprt-no-such-program"))
            assert descriptors() == before
            assert not has_children()

        run(main())

    @linux
    def test_300_children_that_exit_in_the_handshake_leave_nothing_open(self, run):
        """And each says how it ended."""

        async def one():
            agent = shell("echo why >&2; exit 3")
            sink = opened(agent)
            agent.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')
            await sink.event("eof")
            assert sink.events == ["eof"]
            assert agent.facts() == {"exit_status": 3, "stderr_tail": "why\n"}
            await agent.aclose()

        async def main():
            await one()
            before = descriptors()
            for _ in range(30):
                await asyncio.gather(*(one() for _ in range(10)))
            assert descriptors() == before
            assert not has_children()

        run(main())


class TestInput:
    """Lines from the child."""

    def test_lines_are_delivered_as_they_come(self, run):
        """FR-01, FR-03: with the unterminated last one before the end."""

        async def main():
            agent = shell(r"printf 'one\r\n\ntw'; printf 'o\nthree'")
            sink = opened(agent)
            await sink.event("eof")
            assert sink.lines == [b"one", b"", b"two", b"three"]
            assert sink.events == ["lines", "eof"]
            await agent.aclose()

        run(main())

    def test_limits_of_the_agent_win_over_those_of_the_endpoint(self, run):
        """DEC-28."""

        async def main():
            for own, fits in ((None, True), (Limits(line_bytes=5), False)):
                agent = shell("echo 123456", limits=own)
                sink = opened(agent, Limits(line_bytes=100))
                await sink.event("eof")
                assert [isinstance(line, OversizedLine) for line in sink.lines] == [not fits]
                await agent.aclose()

        run(main())

    def test_paused_reading_pushes_back(self, run):
        """AG-19: not reading is not EOF; the child waits, nothing is lost."""

        async def main():
            agent = python("for n in range(100_000): print(n)\nimport sys; print('done', file=sys.stderr)")
            sink = opened(agent)
            agent.pause_reading()
            agent.pause_reading()
            await asyncio.to_thread(lambda: None)
            assert sink.lines == []
            agent.resume_reading()
            await sink.event("eof")
            assert sink.lines == [b"%d" % n for n in range(100_000)]
            await agent.aclose()

        run(main())

    def test_what_was_written_before_the_exit_is_delivered_before_the_end(self, run):
        """EO-01, DEC-27: a whole pipe full of it."""

        async def main():
            agent = python("import os; os.write(1, (b'x' * 999 + b'\\n') * 200); os._exit(1)")
            sink = opened(agent)
            await sink.event("eof")
            assert sink.lines == [b"x" * 999] * 200
            assert agent.facts()["exit_status"] == 1
            await agent.aclose()

        run(main())

    @linux
    def test_also_when_reading_was_paused_at_the_exit(self, run):
        """EO-01: the bound of DEC-27 is on other processes, not on a consumer that takes its time."""

        async def main():
            agent = python("import os; os.write(1, (b'x' * 999 + b'\\n') * 200 + b'end'); os._exit(1)")
            sink = opened(agent)
            agent.pause_reading()
            await when_reaped(agent).wait()
            assert sink.events == []
            agent.resume_reading()
            await sink.event("eof")
            assert sink.lines == [*([b"x" * 999] * 200), b"end"]
            await agent.aclose()

        run(main())

    @linux
    def test_the_end_is_not_told_while_reading_is_paused(self, run):
        """The unterminated last line comes with it, and no line may come now."""

        async def main():
            agent = shell("printf last; read line")
            sink = opened(agent)
            reaped = when_reaped(agent)
            agent.write(b"go\n")
            agent.pause_reading()
            await reaped.wait()
            assert sink.events == []
            agent.resume_reading()
            await sink.event("eof")
            assert sink.lines == [b"last"]
            await agent.aclose()

        run(main())

    @linux
    def test_a_pause_from_inside_a_delivery_holds_back_the_end(self, run):
        """The consumer pauses when it has enough: that is in the middle of a delivery."""

        async def main():
            agent = shell("echo one; printf last")
            sink = opened(agent)
            reaped = when_reaped(agent)
            deliver = sink.lines_received

            def pause_at_first(lines):
                agent.pause_reading()
                deliver(lines)

            sink.lines_received = pause_at_first  # type: ignore[method-assign]  # this test's own consumer
            await sink.event("lines")
            await reaped.wait()
            assert sink.events == ["lines"]
            agent.resume_reading()
            await sink.event("eof")
            assert sink.lines == [b"one", b"last"]
            await agent.aclose()

        run(main())


class TestEnd:
    """Exit of the child is end of input, with its status and the end of its stderr (DEC-27)."""

    @pytest.mark.parametrize(
        ("script", "status"), [("exit 0", 0), ("exit 17", 17), ("kill -9 $$", -9), ("kill -15 $$", -15)]
    )
    def test_the_exit_status_and_stderr_are_there_when_the_end_is_told(self, run, script, status):
        """AG-16, AG-30, PY-75: whatever the status; negative for a signal."""

        async def main():
            agent = shell(f"echo some words >&2; {script}")
            sink = opened(agent)
            facts = []
            told = sink.eof_received

            def look() -> None:
                facts.append(agent.facts())
                told()

            sink.eof_received = look  # type: ignore[method-assign]  # this test's own consumer
            await sink.event("eof")
            assert facts == [{"exit_status": status, "stderr_tail": "some words\n"}]
            assert sink.events == ["eof"]
            await agent.aclose()
            assert agent.facts() == facts[0]

        run(main())

    def test_it_is_the_same_every_time(self, run):
        """AG-36: no race between EOF, exit and a write that fails; the upstream runtime saw two different errors."""

        async def one():
            agent = shell("read line; echo bye >&2; exit 3")
            sink = opened(agent)
            for _ in range(3):
                agent.write(b"a request\n")
                await asyncio.sleep(0)
            await sink.event("eof")
            assert agent.facts() == {"exit_status": 3, "stderr_tail": "bye\n"}
            agent.write(b"too late\n")
            await agent.aclose()
            assert sink.ends == ["eof"]

        async def main():
            for _ in range(10):
                await asyncio.gather(*(one() for _ in range(4)))

        run(main())

    @linux
    @pytest.mark.parametrize("held", ["", ">/dev/null", "2>/dev/null", "</dev/null"])
    def test_descendants_that_hold_the_pipes_do_not_matter(self, run, held):
        """AG-15, AG-31, DEC-27: the launcher's exit is the end, and they are ended with it."""

        async def main():
            agent = shell(f"trap '' HUP TERM; sleep 60 {held} & echo $!; echo words >&2; exit 4")
            sink = opened(agent)
            await sink.event("eof")
            assert agent.facts() == {"exit_status": 4, "stderr_tail": "words\n"}
            await gone(int(await sink.line()))
            await agent.aclose()

        run(main(), timeout=10)

    @linux
    def test_not_even_when_they_left_the_group(self, run):
        """A child in a group of its own cannot be reached, but it cannot hold us up either."""
        code = """
            import os, subprocess, sys
            child = subprocess.Popen(["/bin/sleep", "60"], process_group=0)
            os.write(1, b"%d\\n" % child.pid + b"x" * 100_000)
            os._exit(0)
        """

        async def main():
            before = descriptors()
            agent = python(textwrap.dedent(code))
            sink = opened(agent)
            await sink.event("eof")
            escaped = int(await sink.line())
            try:
                assert sink.lines[1] == b"x" * 100_000
                assert agent.facts()["exit_status"] == 0
                await agent.aclose()
                assert descriptors() == before
                assert is_running(escaped)
            finally:
                os.kill(escaped, signal.SIGKILL)

        run(main(), timeout=10)

    def test_the_last_words_of_a_pipeline_are_heard(self, run, monkeypatch):
        """DEC-27: what stands behind the agent may need a moment to pass them on."""
        monkeypatch.setattr(child_run, "_LAST_WORDS_SECONDS", 10)  # a busy machine may need more than 0.2 s

        async def main():
            code = """
                import os, subprocess
                end, mine = os.pipe()
                subprocess.Popen(["/bin/sh", "-c", "cat > /dev/null; sleep 0.1; echo words"], stdin=end)
                os._exit(0)
            """
            agent = python(textwrap.dedent(code))
            sink = opened(agent)
            await sink.event("eof")
            assert sink.lines == [b"words"]
            await agent.aclose()

        run(main())

    def test_a_closed_stdout_is_the_end_though_the_child_lives_on(self, run):
        """AG-14, TF-04: it may still read; how it then ends is known after the close."""

        async def main():
            agent = python(
                "import os; os.close(1); os.write(2, os.read(0, 99)); os.close(2); os.read(0, 1); os._exit(1)"
            )
            sink = opened(agent)
            await sink.event("eof")
            assert agent.facts()["exit_status"] is None
            agent.write(b"still here\n")
            await agent.drain()
            await agent.aclose()
            assert agent.facts() == {"exit_status": 1, "stderr_tail": "still here\n"}
            assert sink.events == ["eof"]

        run(main())

    def test_a_closed_stdin_of_a_child_that_lives_on_is_a_lost_connection(self, run):
        """TF-02: what is written can never arrive."""

        async def main():
            code = """
                import os, signal
                signal.signal(signal.SIGUSR1, lambda *_: print("not heard any more", flush=True))
                os.close(0)
                print("closed", flush=True)
                while True:
                    signal.pause()
            """
            agent = python(textwrap.dedent(code))
            sink = opened(agent, QUICK)
            await sink.line()
            agent.write(b"x\n")
            await sink.event("lost")
            assert isinstance(sink.lost[0], BrokenPipeError)
            with pytest.raises(BrokenPipeError):
                await agent.drain()
            agent.write(b"more\n")
            status = agent.child_status()
            assert status is not None
            os.kill(status.pid, signal.SIGUSR1)
            await agent.aclose()
            assert sink.events == ["lines", "lost"]
            assert sink.lines == [b"closed"]

        run(main())

    def test_the_end_is_told_once_though_nothing_can_be_written_either(self, run, monkeypatch):
        """EO-16, TF-02: a child on its way out may close both before it exits; an end is not a failure."""
        monkeypatch.setattr(child_run, "_LAST_WORDS_SECONDS", 0.4)
        code = """
            import os, signal
            signal.signal(signal.SIGUSR1, lambda *_: os.close(1))
            os.close(0)
            os.write(1, b"closed\\n")
            while True:
                signal.pause()
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent, QUICK)
            await sink.line()
            agent.write(b"x\n")
            with pytest.raises(BrokenPipeError):
                await agent.drain()
            status = agent.child_status()
            assert status is not None
            os.kill(status.pid, signal.SIGUSR1)
            await sink.until(lambda: sink.ends)
            await agent.aclose()
            assert sink.events == ["lines", "eof"]

        run(main())

    def test_a_closed_stdin_of_a_child_that_exits_is_its_end(self, run, monkeypatch):
        """PY-75: a broken pipe in the moment of an exit must not hide the status."""
        monkeypatch.setattr(child_run, "_LAST_WORDS_SECONDS", 10)  # a busy machine may need more than 0.2 s

        async def main():
            agent = shell("trap 'echo why >&2; exit 5' USR1; exec 0<&-; echo closed; while :; do sleep 0.01; done")
            sink = opened(agent)
            await sink.line()
            agent.write(b"x\n")
            with pytest.raises(BrokenPipeError):
                await agent.drain()
            status = agent.child_status()
            assert status is not None
            os.kill(status.pid, signal.SIGUSR1)
            await sink.event("eof")
            assert sink.lost == []
            assert agent.facts() == {"exit_status": 5, "stderr_tail": "why\n"}
            await agent.aclose()
            assert sink.ends == ["eof"]

        run(main())

    def test_an_exit_that_something_else_waited_for_is_noticed(self, run, caplog):
        """A program around us that reaps everything takes the status, not the end; and no stranger is signalled."""

        async def main():
            agent = shell("read line; exit 3")
            sink = opened(agent)
            status = agent.child_status()
            assert status is not None
            agent.write(b"go\n")
            assert os.waitpid(status.pid, 0)[0] == status.pid
            await sink.event("eof")
            assert agent.facts()["exit_status"] is None
            await agent.aclose()

        with caplog.at_level(logging.WARNING, logger="acprt.process"):
            run(main())
        assert "its exit status is unknown" in caplog.text

    def test_ignored_sigchld_costs_the_status_only(self):
        """Some launchers start programs so: the system then reaps by itself."""
        script = """
            import asyncio, signal, sys
            from tests.transports.children import opened, shell
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            async def main():
                for script in ("exit 0", "cat"):
                    agent = shell(script)
                    sink = opened(agent)
                    if script == "exit 0":
                        await sink.event("eof")
                    await agent.aclose()
                    assert sink.events == ["eof"], sink.events
            asyncio.run(main())
            print("fine")
        """
        assert run_script(script) == "fine\n"

    @linux
    def test_a_stderr_that_cannot_be_read_costs_only_stderr(self, run, caplog, monkeypatch):
        """AG-34."""

        async def main():
            agent = shell("cat")
            sink = opened(agent)
            stderr = agent._opened()._stderr
            stderr._end(OSError(5, "Input/output error"))
            agent.write(b"x\n")
            assert await sink.line() == "x"
            await agent.aclose()
            assert agent.facts()["exit_status"] is not None

        with caplog.at_level(logging.WARNING, logger="acprt.process"):
            run(main())
        assert "cannot be read any more" in caplog.text

    def test_a_stdout_that_cannot_be_read_is_a_lost_connection(self, run):
        """AG-21, TF-01: not an EOF, and told at once, whatever the child does."""

        async def main():
            agent = shell("cat")
            sink = opened(agent)
            agent._opened()._stdout._end(OSError(5, "Input/output error"))
            assert [str(error) for error in sink.lost] == ["[Errno 5] Input/output error"]
            await agent.aclose()
            assert sink.ends == ["lost"]

        run(main())


class TestOutput:
    """Bytes to the child."""

    def test_a_child_that_does_not_read_holds_up_nobody(self, run):
        """Writing keeps what does not fit, and says so."""

        async def main():
            agent = python("import sys; print(*(len(line) for line in sys.stdin.buffer))")
            sink = opened(agent)
            agent.write(b"x" * 3 * MIB + b"\n")
            await sink.event("pause")
            assert "resume" not in sink.events
            agent.write(b"y" * 3 * MIB + b"\n")
            await agent.drain()
            await sink.event("resume")
            await agent.aclose()
            assert await sink.line() == f"{3 * MIB + 1} {3 * MIB + 1}"

        run(main())

    def test_closing_the_writing_side_is_the_end_of_its_input(self, run):
        """TF-04: what was accepted comes first, and its last words are still heard."""

        async def main():
            agent = python("import sys; print(len(sys.stdin.buffer.read()))")
            sink = opened(agent)
            agent.write(b"x" * 2 * MIB)
            agent.close_write()
            agent.close_write()
            agent.write(b"dropped")
            assert await sink.line() == str(2 * MIB)
            await sink.event("eof")
            assert agent.facts()["exit_status"] == 0
            await agent.aclose()

        run(main())

    def test_waiting_for_a_child_that_exits_fails(self, run):
        """A producer in `drain()` is let go with an error, not with a success."""

        async def main():
            agent = shell("read -r line; exit 0")
            sink = opened(agent)
            agent.write(b"x\n" + b"y" * 3 * MIB)
            with pytest.raises(BrokenPipeError):
                await agent.drain()
            await sink.event("eof")
            await agent.aclose()
            assert sink.ends == ["eof"]

        run(main())


class TestStderr:
    """Stderr is drained whatever happens (AG-32 to AG-35)."""

    def test_a_flood_does_not_stop_the_child(self, run):
        """AG-32: 1 MB without a line end; the tail says what is missing."""

        async def main():
            agent = python(
                "import os; os.write(2, b'x' * 1_000_000 + b'the end'); os.write(1, b'alive\\n'); os.read(0, 1)"
            )
            sink = opened(agent)
            assert await sink.line() == "alive"
            await agent.aclose()
            tail = agent.facts()["stderr_tail"]
            assert tail.startswith("[stderr truncated; showing last 6")
            assert tail.endswith("xxthe end")
            assert len(tail.encode()) <= 64 * 1024

        run(main())

    def test_nothing_is_printed(self, run, capfd):
        """AG-35."""

        async def main():
            agent = shell("echo secret >&2")
            await opened(agent).event("eof")
            await agent.aclose()

        run(main())
        assert capfd.readouterr() == ("", "")

    def test_lines_go_to_the_callback(self, run):
        """AG-40, AG-41: all of them, before the connection is closed."""
        lines: list[str] = []

        async def main():
            agent = shell("echo one >&2; printf 'two\\377' >&2; read line", on_stderr=lines.append)
            opened(agent)
            agent.write(b"go\n")
            await agent.aclose()
            assert lines == ["one", "two\ufffd"]

        run(main())
        lines.clear()

    def test_a_stuck_callback_holds_up_neither_the_child_nor_the_loop(self, run):
        """AG-43: lines past the queue are dropped and counted."""
        go_on = threading.Event()

        async def main():
            agent = python(
                "import sys\nfor n in range(50_000): print('a line of stderr', n, file=sys.stderr)\n" + ECHO,
                on_stderr=lambda _: go_on.wait(30),
                limits=Limits(stderr_queue_lines=100),
            )
            sink = opened(agent)
            agent.write(b"ping\n")
            assert await sink.line() == "ping"
            await agent.aclose()
            status = agent.child_status()
            assert status is not None
            assert status.exit_status == 0
            assert 49_000 < status.stderr_dropped < 50_000
            assert agent.facts()["stderr_tail"].endswith("a line of stderr 49999\n")

        try:
            run(main())
        finally:
            go_on.set()

    def test_a_raising_callback_is_logged_ten_times(self, run, caplog):
        """AG-43: in all, not for each line."""

        def broken(line: str) -> None:
            raise ValueError(line)

        async def main():
            agent = python("import sys\nfor n in range(1_000): print(n, file=sys.stderr)\n" + ECHO, on_stderr=broken)
            sink = opened(agent)
            agent.write(b"ping\n")
            assert await sink.line() == "ping"
            await agent.aclose()

        with caplog.at_level(logging.INFO, logger="acprt.process"):
            run(main())
        assert len(caplog.records) == 10


@linux
class TestWithoutPidfd:
    """An old kernel, a sandbox, another system: a thread waits for the exit."""

    @pytest.fixture(autouse=True)
    def _no_pidfd(self, request, monkeypatch):
        if request.param == "absent":
            monkeypatch.delattr(os, "pidfd_open")
        else:

            def refuse(pid, flags=0):
                raise PermissionError(1, "Operation not permitted")

            monkeypatch.setattr(os, "pidfd_open", refuse)

    pytestmark = pytest.mark.parametrize("_no_pidfd", ["absent", "refused"], indirect=True)

    def test_the_exit_is_noticed(self, run):
        """DEC-27."""

        async def main():
            before = descriptors()
            agent = shell("sleep 60 & exit 3")
            sink = opened(agent)
            await sink.event("eof")
            assert agent.facts()["exit_status"] == 3
            await agent.aclose()
            assert descriptors() == before

        run(main(), timeout=10)

    def test_the_teardown_goes_all_the_way(self, run):
        """PY-72."""

        async def main():
            before = descriptors()
            agent = shell("trap '' TERM; echo up; while :; do sleep 1; done")
            sink = opened(agent, QUICK)
            await sink.line()
            await agent.aclose()
            assert agent.facts()["exit_status"] == -9
            assert descriptors() == before

        run(main(), timeout=10)


@linux
class TestDieWithParent:
    """`die_with_parent=True`: also when nothing of ours can run any more."""

    @pytest.mark.parametrize("asked", [True, False])
    def test_the_child_dies_with_a_killed_parent(self, asked):
        """PY-71; and without it this child lives on, which is why it can be asked for."""
        script = f"""
            import asyncio, os, signal, threading
            from tests.transports.children import opened, python
            async def main():
                agent = python("import time, os; print(os.getpid(), flush=True); time.sleep(60)",
                               die_with_parent={asked})
                sink = opened(agent)
                print(await sink.line(), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            asyncio.run(main())
        """
        pid = int(run_script(script, status=-signal.SIGKILL))
        try:
            if asked:
                asyncio.run(asyncio.wait_for(gone(pid), 10))
            else:
                assert is_running(pid)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def test_it_starts_and_fails_like_any_other(self, run):
        """PY-71: with threads around, and warnings as errors."""

        async def main():
            other = threading.Event()
            thread = threading.Thread(target=other.wait, args=(10,))
            thread.start()
            try:
                agent = python(ECHO, die_with_parent=True)
                sink = opened(agent)
                agent.write(b"x\n")
                assert await sink.line() == "x"
                await agent.aclose()
                error = spawn_error(AgentProcess("acprt-no-such-program", die_with_parent=True))
                assert error.data["reason"] == "spawn_failed"
            finally:
                other.set()
                thread.join()

        run(main())

    def test_where_it_is_impossible_it_is_refused(self, monkeypatch):
        """PY-71: no promise that is not kept."""
        monkeypatch.setattr(sys, "platform", "darwin")
        with pytest.raises(NotImplementedError, match="Linux"):
            AgentProcess("agent", die_with_parent=True)


@linux
@pytest.mark.parametrize("factory", ["asyncio.new_event_loop", "uvloop.new_event_loop"])
def test_closed_standard_descriptors_do_not_mix_with_the_pipes(tmp_path, factory):
    """A program without 0, 1 and 2 (a daemon) must not write what it prints into the agent."""
    if factory.startswith("uvloop"):
        pytest.importorskip("uvloop")
    result = tmp_path / "result"
    script = f"""
        import asyncio, os, uvloop
        from tests.transports.children import ECHO, opened, python
        async def main():  # the descriptors of the loop itself must not be there: that is what acprt.run sees to
            os.closerange(0, 3)
            agent = python(ECHO)
            sink = opened(agent)
            fds = [agent._run.child.stdin, agent._run.child.stdout, agent._run.child.stderr]
            agent.write(b"ping\\n")
            line = await sink.line()
            await agent.aclose()
            return min(fds) > 2, line, sink.events, agent.facts()
        with asyncio.Runner(loop_factory={factory}) as runner:
            result = runner.run(main())
        open({str(result)!r}, "w").write(repr(result))
    """
    run_script(script)
    assert result.read_text() == "(True, 'ping', ['lines', 'eof'], {'exit_status': 0, 'stderr_tail': ''})"
