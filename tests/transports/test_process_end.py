"""How the end of a child is told. What ends it is in test_process_teardown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import textwrap
import threading

import pytest

from acprt.transports import child_run
from acprt.transports.process import AgentProcess
from tests.transports.children import (
    ECHO,
    QUICK,
    descriptors,
    gone,
    is_running,
    opened,
    python,
    run_script,
    shell,
    spawn_error,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc or uses what only Linux has")


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
                agent = python("import signal, os; print(os.getpid(), flush=True); signal.pause()",
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
