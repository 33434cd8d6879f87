"""A child as a transport: how it starts, and what passes in both directions."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import textwrap

import pytest

from acprt.limits import Limits
from acprt.transports.base import ChildStatus, Transport
from acprt.transports.process import AgentProcess
from acprt.wire.lines import OversizedLine
from tests.transports.children import ECHO, has_children, is_running, opened, python, run_script, shell, when_reaped

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
