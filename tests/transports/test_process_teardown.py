"""How a child is ended: by itself, by SIGTERM, by SIGKILL; its group with it, and nobody else."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import textwrap
import threading
import time

import pytest

from acprt.limits import Limits
from acprt.transports.child import Child
from acprt.transports.process import AgentProcess
from tests.transports.children import (
    NEEDS_SIGTERM,
    PATIENT,
    QUICK,
    STUBBORN,
    WITH_DESCENDANT,
    RecordingSink,
    descriptors,
    gone,
    is_running,
    opened,
    pid_of,
    python,
    shell,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes that are not its children")


MIB = 1024 * 1024


NO_GRACE = Limits(exit_grace_seconds=0, term_grace_seconds=0)


class TestLadder:
    """stdin closed → SIGTERM to the group → SIGKILL to the group, each after its grace."""

    def test_a_child_that_ends_at_eof_gets_no_signal(self, run, tmp_path):
        """PY-72: its own cleanup runs (AG-17 diverges), in its own time."""
        code = f"""
            import signal, sys
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(99))
            sys.stdin.read()
            open({str(tmp_path / "cleaned")!r}, "w").close()
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent)
            await agent.aclose()
            assert agent.facts() == {"exit_status": 0, "stderr_tail": ""}
            assert (tmp_path / "cleaned").exists()
            assert sink.events == ["eof"]

        run(main())

    def test_no_signal_but_the_sweep_of_its_group_is_sent_to_it(self, run, signals):
        """The one SIGKILL comes after its exit, while its number is still its own."""

        async def main():
            agent = shell("cat")
            opened(agent)
            await agent.aclose()
            assert agent.facts()["exit_status"] == 0
            assert {number for _, number in signals} == {signal.SIGKILL}
            assert {target for target, _ in signals} == {pid_of(agent)}
            count = len(signals)
            await agent.aclose()
            del agent
            gc.collect()
            assert len(signals) == count

        run(main())

    def test_what_was_accepted_is_written_before_stdin_is_closed(self, run):
        """PY-62: and the answer to it is still delivered."""

        async def main():
            agent = python("import sys; print(len(sys.stdin.buffer.read()))")
            sink = opened(agent)
            agent.write(b"x" * 2 * MIB)
            await agent.aclose()
            assert sink.lines == [str(2 * MIB).encode()]
            assert sink.ends == ["eof"]

        run(main())

    def test_a_child_that_ignores_eof_gets_sigterm(self, run):
        """PY-72: the second step of three; the status is the signal."""

        async def main():
            agent = python(NEEDS_SIGTERM)
            sink = opened(agent, Limits(exit_grace_seconds=0.05, term_grace_seconds=60))
            await sink.line()
            await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGTERM
            assert sink.ends == ["eof"]

        run(main(), timeout=10)

    def test_a_child_that_reacts_to_sigterm_may_finish(self, run):
        """Frames keep coming for a while."""
        code = """
            import signal, sys
            def finish(*_):
                print("answer", flush=True)
                sys.exit(7)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            signal.pause()
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent, Limits(exit_grace_seconds=0.05, term_grace_seconds=60))
            await sink.line()
            await agent.aclose()
            assert sink.lines == [b"up", b"answer"]
            assert agent.facts()["exit_status"] == 7

        run(main(), timeout=10)

    def test_a_child_that_ignores_sigterm_gets_sigkill(self, run):
        """PY-72: the third step, which nothing can ignore."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, QUICK)
            await sink.line()
            await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGKILL

        run(main(), timeout=10)

    def test_a_stopped_child_is_ended(self, run):
        """SIGTERM waits for it to go on, SIGKILL does not."""

        async def main():
            agent = shell("kill -STOP $$")
            opened(agent, QUICK)
            await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGKILL

        run(main(), timeout=10)

    def test_no_grace_at_all_is_a_legal_limit(self, run):
        """Limits: 0 means at once."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, NO_GRACE)
            await sink.line()
            await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGKILL

        run(main(), timeout=10)

    def test_sigterm_reaches_the_program_behind_a_wrapper(self, run):
        """A signal to the direct child alone would orphan it."""
        inner = """
            import os, signal, sys
            def finish(*_):
                print("got it", flush=True)
                os._exit(0)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            signal.pause()
        """

        async def main():
            agent = AgentProcess(
                "/bin/sh", "-c", 'trap "" TERM; "$0" -I -S -c "$1" & wait', sys.executable, textwrap.dedent(inner)
            )
            sink = opened(agent, Limits(exit_grace_seconds=0.05, term_grace_seconds=60))
            await sink.line()
            await agent.aclose()
            assert sink.lines == [b"up", b"got it"]

        run(main(), timeout=10)

    @pytest.mark.parametrize(
        ("ending", "status"), [("sys.stdin.read(); sys.exit(3)", 3), ("import signal; signal.pause()", -signal.SIGTERM)]
    )
    def test_descendants_end_with_the_child(self, run, ending, status):
        """AG-13, AG-15: also one that ignores everything, whether the child went by itself or not."""

        async def main():
            agent = python(WITH_DESCENDANT + ending)
            sink = opened(agent, Limits(exit_grace_seconds=0.05 if status < 0 else 60, term_grace_seconds=60))
            descendant = int(await sink.line())
            assert is_running(descendant)
            await agent.aclose()
            await gone(descendant)
            assert agent.facts()["exit_status"] == status

        run(main(), timeout=10)

    def test_a_descendant_out_of_reach_sees_eof_and_holds_up_nobody(self, run):
        """One real agent's child has a group of its own, and goes because its stdin is closed."""
        code = """
            import signal, subprocess
            child = subprocess.Popen(["/bin/cat"], process_group=0)
            print(child.pid, flush=True)
            signal.pause()
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent, QUICK)
            escaped = int(await sink.line())
            await agent.aclose()
            await gone(escaped)

        run(main(), timeout=10)

    def test_a_child_that_left_its_group_is_ended_too(self, run):
        """AG-13: the group, then the child itself."""
        code = """
            import os, signal
            other = os.fork()
            if not other:
                os.setpgid(0, 0)
                signal.pause()
                os._exit(0)
            while os.getpgid(other) != other:
                pass
            os.setpgid(0, other)
            print(other, flush=True)
            signal.pause()
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent, Limits(exit_grace_seconds=0, term_grace_seconds=60))
            other = int(await sink.line())
            try:
                await agent.aclose()
                assert agent.facts()["exit_status"] == -signal.SIGTERM
            finally:
                os.kill(other, signal.SIGKILL)

        run(main(), timeout=10)

    def test_the_steps_are_in_the_log(self, run, caplog):
        """`acprt.process` tells at DEBUG what is waited for."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, QUICK)
            await sink.line()
            await agent.aclose()
            return pid_of(agent)

        with caplog.at_level(logging.DEBUG, logger="acprt.process"):
            pid = run(main(), timeout=10)
        assert [record.getMessage() for record in caplog.records if record.name == "acprt.process"] == [
            f"pid {pid} started",
            f"pid {pid}: stdin closed, it has 0.1 s to exit",
            f"pid {pid}: SIGTERM to its group, it has 0.1 s to exit",
            f"pid {pid}: SIGKILL to its group",
            f"pid {pid} exited with status -9",
        ]


class TestNumbers:
    """A process number that may belong to somebody else is never signalled."""

    def make(self, script: str) -> Child:
        child = Child(["/bin/sh", "-c", script], env=dict(os.environ), cwd=None, die_with_parent=False)
        for fd in (child.stdin, child.stdout, child.stderr):
            os.close(fd)
        return child

    def test_not_after_it_was_reaped(self, signals):
        """The number is free then."""
        child = self.make("exit 0")
        child.end_now()
        signals.clear()
        child.signal_group(signal.SIGTERM)
        child.reap()
        child.end_now()
        assert signals == []
        os.close(child.exit_fd)

    def test_not_after_something_else_reaped_it(self, signals, caplog):
        """A program around us may wait for every child that there is."""
        child = self.make("exit 0")
        os.waitpid(child.pid, 0)
        child.signal_group(signal.SIGKILL)
        child.end_now()
        assert signals == []
        assert child.exit_status is None
        assert caplog.text.count("its exit status is unknown") == 1
        os.close(child.exit_fd)

    def test_a_zombie_keeps_its_number_until_its_group_was_killed(self, signals):
        """AG-15: the order is kill, then reap."""
        child = self.make("exit 5")
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        child.reap()
        assert signals == [(child.pid, signal.SIGKILL)] * 2
        assert child.exit_status == 5
        os.close(child.exit_fd)

    def test_one_that_not_even_sigkill_ends_is_left_to_a_thread(self, monkeypatch, caplog):
        """Deep in the kernel: no finalizer may hang on it, and no zombie may stay."""
        child = self.make("exec sleep 60")
        with monkeypatch.context() as patch:
            patch.setattr(os, "killpg", lambda *_: None)
            patch.setattr(os, "kill", lambda *_: None)
            patch.setattr("acprt.transports.child._REAP_SECONDS", 0.01)
            start = time.monotonic()
            child.end_now()
            child.end_now()
            assert time.monotonic() - start < 30
        assert not child.reaped
        assert caplog.text.count("is not gone though it was sent SIGKILL") == 1
        os.kill(child.pid, signal.SIGKILL)
        for thread in threading.enumerate():
            if thread.name == f"acprt reaps {child.pid}":
                thread.join(10)
        assert child.reaped
        assert child.exit_status == -signal.SIGKILL
        os.close(child.exit_fd)


def test_a_sink_that_fails_costs_no_descriptor():
    """The loop reports what a consumer raises; the end of the child is cleared up all the same."""
    reported = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        before = descriptors()
        agent = shell("exit 0")
        sink = RecordingSink()
        told = asyncio.Event()

        def fail():
            told.set()
            raise ValueError("no")

        sink.eof_received = fail  # type: ignore[method-assign]  # this test's own consumer
        agent.open(sink, PATIENT)
        await told.wait()
        assert descriptors() == before
        await agent.aclose()

    asyncio.run(main())
    assert [str(error) for error in reported] == ["no"]
