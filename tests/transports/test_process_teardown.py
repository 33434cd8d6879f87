"""How a child is ended: by itself, by SIGTERM, by SIGKILL; its group with it; in bounded time, whoever gives up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from acprt.limits import Limits
from acprt.transports import child_run
from acprt.transports.base import ChildStatus
from acprt.transports.child import Child
from acprt.transports.process import AgentProcess
from tests.transports.children import (
    ECHO,
    NEEDS_SIGTERM,
    PATIENT,
    QUICK,
    STUBBORN,
    WITH_DESCENDANT,
    RecordingSink,
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

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes that are not its children")

MIB = 1024 * 1024
NO_GRACE = Limits(exit_grace_seconds=0, term_grace_seconds=0)


def pid_of(agent: AgentProcess) -> int:
    status = agent.child_status()
    assert status is not None
    return status.pid


@pytest.fixture
def signals(monkeypatch):
    """Every signal that is sent, as (target, signal)."""
    sent: list[tuple[int, signal.Signals]] = []
    for name in ("kill", "killpg"):
        real = getattr(os, name)

        def record(target, number, real=real):
            sent.append((target, number))
            real(target, number)

        monkeypatch.setattr(os, name, record)
    return sent


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
            import signal, sys, time
            def finish(*_):
                print("answer", flush=True)
                sys.exit(7)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            time.sleep(60)
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
            import os, signal, sys, time
            def finish(*_):
                print("got it", flush=True)
                os._exit(0)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            time.sleep(60)
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
        ("ending", "status"), [("sys.stdin.read(); sys.exit(3)", 3), ("import time; time.sleep(60)", -signal.SIGTERM)]
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
            import subprocess, time
            child = subprocess.Popen(["/bin/cat"], process_group=0)
            print(child.pid, flush=True)
            time.sleep(60)
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
            import os, time
            other = os.fork()
            if not other:
                os.setpgid(0, 0)
                time.sleep(60)
                os._exit(0)
            while os.getpgid(other) != other:
                pass
            os.setpgid(0, other)
            print(other, flush=True)
            time.sleep(60)
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


class TestBounds:
    """Closing ends, on every path."""

    def test_a_child_that_never_reads_with_megabytes_pending(self, run):
        """What it does not take within the grace is dropped."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, QUICK)
            await sink.line()
            agent.write(b"x" * 3 * MIB)
            await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGKILL
            with pytest.raises(BrokenPipeError):
                await agent.drain()

        run(main(), timeout=10)

    def test_a_child_that_closed_its_stdout_and_never_reads(self, run):
        """AG-18: what is pending for it is bounded by the teardown, not by a time of its own."""

        async def main():
            agent = python("import os, time; os.close(1); time.sleep(60)")
            sink = opened(agent, QUICK)
            agent.write(b"x" * 3 * MIB)
            await sink.event("eof")
            waiting = asyncio.create_task(agent.drain())
            await agent.aclose()
            with pytest.raises(BrokenPipeError):
                await waiting
            assert agent.facts()["exit_status"] == -signal.SIGTERM

        run(main(), timeout=10)

    def test_what_it_did_not_take_within_the_grace_is_dropped(self, run):
        """A child that begins to read when it is told to go finds its stdin closed."""
        code = """
            import os, signal, sys, time
            def finish(*_):
                print(len(sys.stdin.buffer.read()), flush=True)
                os._exit(0)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            time.sleep(60)
        """

        async def main():
            agent = python(textwrap.dedent(code))
            sink = opened(agent, Limits(exit_grace_seconds=0.05, term_grace_seconds=60))
            await sink.line()
            agent.write(b"x" * 3 * MIB)
            await agent.aclose()
            assert 0 < int(await sink.line(2)) <= 256 * 1024  # what the pipe held
            assert agent.facts()["exit_status"] == 0

        run(main(), timeout=10)

    def test_a_timeout_around_it_helps(self, run):
        """A timeout is not swallowed: it cuts the graces short."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent)
            await sink.line()
            agent.write(b"x" * 3 * MIB)
            waiting = asyncio.create_task(agent.drain())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await agent.aclose()
            assert agent.facts()["exit_status"] == -signal.SIGKILL
            with pytest.raises(BrokenPipeError):
                await waiting

        run(main(), timeout=10)

    def test_a_child_that_must_write_before_it_can_exit(self, run):
        """Reading goes on while closing, what nobody wants any more is dropped."""
        code = "import os, sys; sys.stdin.read(); [os.write(1, b'x' * 65_535 + b'\\n') for _ in range(32)]"

        async def main():
            for paused in (False, True):
                agent = python(code)
                sink = opened(agent)
                if paused:
                    agent.pause_reading()
                await agent.aclose()
                assert agent.facts()["exit_status"] == 0
                assert len(sink.lines) == (0 if paused else 32)

        run(main())

    def test_pausing_while_it_closes_drops_the_rest(self, run):
        """A consumer that is full must not hold up the end; no line comes after a gap."""
        code = "import os, sys; sys.stdin.read(); [os.write(1, b'%02d\\n' % n * 10_000) for n in range(32)]"

        async def main():
            agent = python(code)
            sink = opened(agent)
            deliver = sink.lines_received

            def full(lines):
                agent.pause_reading()
                deliver(lines)

            sink.lines_received = full  # type: ignore[method-assign]  # this test's own consumer
            await agent.aclose()
            agent.resume_reading()
            assert agent.facts()["exit_status"] == 0
            assert sink.lines == [b"%02d" % n for n in range(32) for _ in range(10_000)][: len(sink.lines)]
            assert len(sink.lines) < 320_000
            assert sink.events == ["lines", "eof"]

        run(main())

    def test_a_write_that_fails_while_it_closes_is_nobodys_business(self, run, monkeypatch):
        """base.py: no lost connection after a local close."""
        monkeypatch.setattr(child_run, "_LAST_WORDS_SECONDS", 0.01)

        async def main():
            agent = python("import os; os.close(0); print('closed', flush=True); import time; time.sleep(60)")
            sink = opened(agent, QUICK)
            await sink.line()
            agent.write(b"x\n")
            await agent.aclose()
            assert sink.ends == ["eof"]

        run(main(), timeout=10)

    def test_one_that_not_even_sigkill_ends(self, run, monkeypatch, caplog):
        """Deep in the kernel, or of another user: closing ends without it, and no descriptor stays."""
        monkeypatch.setattr(child_run, "_KILL_SECONDS", 0.05)
        monkeypatch.setattr("acprt.transports.child._REAP_SECONDS", 0.01)

        async def main():
            before = descriptors()
            agent = python(STUBBORN)
            await opened(agent, QUICK).line()
            pid = pid_of(agent)
            with monkeypatch.context() as patch:
                patch.setattr(os, "killpg", lambda *_: None)
                patch.setattr(os, "kill", lambda *_: None)
                await agent.aclose()
            assert descriptors() == before
            assert agent.child_status() == ChildStatus(pid)
            os.kill(pid, signal.SIGKILL)
            await gone(pid)

        run(main(), timeout=10)
        assert "is not gone though it was sent SIGKILL" in caplog.text

    def test_nothing_is_delivered_afterwards(self, run):
        """base.py: the sink has heard the last of it."""

        async def main():
            agent = python(ECHO)
            sink = opened(agent)
            agent.write(b"x\n" * 1_000)
            await agent.aclose()
            events, lines = list(sink.events), len(sink.lines)
            agent.write(b"y\n")
            agent.close_write()
            agent.pause_reading()
            agent.resume_reading()
            for _ in range(5):
                await asyncio.sleep(0)
            assert (sink.events, len(sink.lines)) == (events, lines)
            assert lines == 1_000

        run(main())

    def test_a_stuck_stderr_callback(self, run):
        """AG-43: its thread is left alone."""
        go_on = threading.Event()

        async def main():
            agent = shell("echo one >&2; echo two >&2; cat", on_stderr=lambda _: go_on.wait(30))
            opened(agent)
            await agent.aclose()
            assert agent.facts() == {"exit_status": 0, "stderr_tail": "one\ntwo\n"}

        try:
            run(main(), timeout=10)
        finally:
            go_on.set()


class TestWhoCloses:
    """Any task, any number of times, in any order."""

    def test_before_it_was_opened(self, run):
        """There is nothing to end."""
        run(AgentProcess("agent").aclose())

    def test_twice(self, run):
        """The second call finds it done."""

        async def main():
            agent = shell("cat")
            opened(agent)
            await agent.aclose()
            await agent.aclose()
            assert agent.facts()["exit_status"] == 0

        run(main())

    def test_after_it_exited_by_itself(self, run, signals):
        """AG-14: there is nothing to end then, nothing is signalled, and no time passes."""

        async def main():
            agent = shell("exit 3")
            await opened(agent).event("eof")
            signals.clear()
            await agent.aclose()
            assert signals == []
            assert agent.facts()["exit_status"] == 3

        run(main())

    def test_several_tasks_share_one_teardown(self, run, signals):
        """Each of them waits for the same end."""

        async def main():
            agent = python(NEEDS_SIGTERM)
            sink = opened(agent, Limits(exit_grace_seconds=0.05, term_grace_seconds=60))
            await sink.line()
            await asyncio.gather(*(agent.aclose() for _ in range(5)))
            assert agent.facts()["exit_status"] == -signal.SIGTERM
            assert [number for _, number in signals].count(signal.SIGTERM) == 1

        run(main(), timeout=10)

    def test_a_cancelled_task_leaves_no_child(self, run):
        """PY-70: it skips to SIGKILL, and when the task is let go the child is dead and reaped."""

        async def main():
            before = descriptors()
            agent = python(STUBBORN)
            sink = opened(agent, PATIENT)
            await sink.line()
            closing = asyncio.create_task(agent.aclose())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert agent.facts()["exit_status"] == -signal.SIGKILL
            assert not has_children()
            assert descriptors() == before
            await agent.aclose()
            assert sink.ends == ["eof"]

        run(main(), timeout=10)

    def test_a_cancelled_task_waits_for_no_last_words(self, run, monkeypatch):
        """Not even while a process out of our reach holds the pipes."""
        monkeypatch.setattr(child_run, "_LAST_WORDS_SECONDS", 60)
        code = """
            import subprocess, time
            child = subprocess.Popen(["/bin/sleep", "60"], process_group=0)
            print(child.pid, flush=True)
            time.sleep(60)
        """

        async def main():
            before = descriptors()
            agent = python(textwrap.dedent(code))
            escaped = int(await opened(agent).line())
            try:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await agent.aclose()
                assert agent.facts()["exit_status"] == -signal.SIGKILL
                assert descriptors() == before
            finally:
                os.kill(escaped, signal.SIGKILL)

        run(main(), timeout=10)

    def test_cancelled_before_its_first_step(self, run):
        """The task never ran, so nothing was closed; closing again does."""

        async def main():
            agent = shell("cat")
            opened(agent)
            closing = asyncio.create_task(agent.aclose())
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert is_running(pid_of(agent))
            await agent.aclose()
            assert agent.facts()["exit_status"] == 0

        run(main())

    def test_cancelled_again_and_again(self, run):
        """The teardown goes on to its end without anybody waiting for it."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, PATIENT)
            await sink.line()
            closing = asyncio.create_task(agent.aclose())
            await asyncio.sleep(0)
            while not closing.done():
                closing.cancel()
                await asyncio.sleep(0)
            await sink.event("eof")
            assert agent.facts()["exit_status"] == -signal.SIGKILL
            await agent.aclose()

        run(main(), timeout=10)

    def test_one_of_several_is_cancelled(self, run):
        """The others are not."""

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, PATIENT)
            await sink.line()
            closing = [asyncio.create_task(agent.aclose()) for _ in range(3)]
            await asyncio.sleep(0)
            closing[1].cancel()
            results = await asyncio.gather(*closing, return_exceptions=True)
            assert [type(result) for result in results] == [type(None), asyncio.CancelledError, type(None)]
            assert agent.facts()["exit_status"] == -signal.SIGKILL

        run(main(), timeout=10)

    def test_every_task_is_cancelled_with_the_teardown_itself(self, run):
        """`asyncio.run` does so at its end, and some programs when they shut down: still no child, and no error."""

        async def main():
            before, not_ours = descriptors(), asyncio.all_tasks()
            for steps in range(4):
                agent = python(STUBBORN)
                await opened(agent, QUICK).line()
                closing = asyncio.create_task(agent.aclose())
                for _ in range(steps):
                    await asyncio.sleep(0)
                for task in asyncio.all_tasks() - not_ours:
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await closing
                await agent.aclose()
                assert not has_children()
                assert descriptors() == before

        run(main(), timeout=10)

    @pytest.mark.parametrize("steps", [0, 1, 2, 3])
    def test_the_program_ends_while_it_closes(self, run, steps):
        """PY-78: `asyncio.run` cancels what is left and closes the loop; no child survives it."""

        async def main():
            agent = python(STUBBORN)
            await opened(agent, PATIENT).line()
            closing = asyncio.create_task(agent.aclose())
            for _ in range(steps):
                await asyncio.sleep(0)
            return pid_of(agent), closing

        pid, closing = run(main(), timeout=10)
        assert closing.cancelled()
        assert not is_running(pid)
        assert not has_children()


class TestLastResort:
    """Nobody closes it: it ends with its loop, its object, its interpreter; quietly."""

    def test_the_loop_is_closed(self, run, caplog):
        """PY-70: though the object is still there."""
        run(asyncio.sleep(0))  # the first loop of a kind opens what stays open for the process
        before = descriptors()

        async def main():
            agent = python(STUBBORN)
            sink = opened(agent, PATIENT)
            await sink.line()
            agent.write(b"x" * MIB)
            waiting = asyncio.create_task(agent.drain())
            await asyncio.sleep(0)
            return agent, waiting

        agent, _ = run(main())
        assert not has_children()
        assert descriptors() == before
        assert agent.facts() == {"exit_status": -signal.SIGKILL, "stderr_tail": ""}
        assert "still ran at the end of its event loop and was killed" in caplog.text
        run(agent.aclose())

        async def again():
            await opened(agent, QUICK).line()
            await agent.aclose()

        run(again())

    @pytest.mark.parametrize("name", ["asyncio", "uvloop"])
    def test_the_loop_is_closed_under_a_task_that_waits(self, name):
        """PY-70: a task of a closed loop cannot be woken, which must be no error of the finalizer."""
        factory = pytest.importorskip(name).new_event_loop
        factory().close()  # the first loop of a kind opens what stays open for the process
        before = descriptors()
        loop = factory()

        async def main():
            agent = python(STUBBORN)
            await opened(agent, PATIENT).line()
            agent.write(b"x" * MIB)
            waiting = [loop.create_task(agent.drain()), loop.create_task(agent.aclose())]
            for _ in range(3):
                await asyncio.sleep(0)
            pending: set[Any] = asyncio.all_tasks() - {asyncio.current_task()}
            for task in pending:
                task._log_destroy_pending = False  # the loop would report them, rightly
            return agent, waiting

        agent, waiting = loop.run_until_complete(main())
        loop.close()
        assert not has_children()
        assert descriptors() == before
        assert agent.facts()["exit_status"] == -signal.SIGKILL
        assert not any(task.done() for task in waiting)

    def test_the_loop_is_closed_in_the_middle_of_an_end(self, run):
        """PY-70: in each of its stages."""

        async def main(stage):
            agent = shell("sleep 60 & echo $!; exit 3")
            sink = opened(agent)
            reaped = when_reaped(agent)
            descendant = int(await sink.line())
            agent.pause_reading()
            await (gone(pid_of(agent)) if stage == "exited" else reaped.wait())
            return agent, descendant

        run(asyncio.sleep(0))  # the first loop of a kind opens what stays open for the process
        for stage in ("exited", "reaped"):
            before = descriptors()
            agent, descendant = run(main(stage))
            run(gone(descendant))
            assert not has_children()
            del agent
            assert descriptors() == before

    def test_the_object_is_dropped(self, run, caplog):
        """PY-70: the child is killed at once, the rest is cleared away as after any exit."""

        async def main():
            before = descriptors()
            agent = python(WITH_DESCENDANT + "sys.stdin.read()")
            sink = opened(agent)
            descendant = int(await sink.line())
            agent.write(b"x" * MIB)
            del agent
            gc.collect()
            await sink.event("eof")
            await gone(descendant)
            assert not has_children()
            del sink
            assert descriptors() == before

        run(main(), timeout=10)
        assert "lost its AgentProcess and was killed" in caplog.text

    @pytest.mark.parametrize("factory", ["asyncio.new_event_loop", "uvloop.new_event_loop"])
    @pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "raise KeyboardInterrupt", "loop.close()"])
    def test_the_interpreter_ends(self, factory, ending):
        """PY-71: never leave a child behind."""
        if factory.startswith("uvloop"):
            pytest.importorskip("uvloop")
        script = f"""
            import asyncio, sys, uvloop
            from tests.transports.children import PATIENT, STUBBORN, WITH_DESCENDANT, opened, python
            sys.excepthook = lambda *_: None
            async def main():
                global agent
                agent = python(WITH_DESCENDANT + "sys.stdin.read()")
                sink = opened(agent, PATIENT)
                print(agent.child_status().pid, await sink.line(), flush=True)
                return sink
            import warnings
            loop = {factory}()
            sink = loop.run_until_complete(main())
            warnings.simplefilter("ignore", ResourceWarning)  # of the loop that this program does not close
            {ending}
        """
        status = {"raise KeyboardInterrupt": -signal.SIGINT}.get(ending, 0)
        for pid in run_script(script, status=status).split():
            asyncio.run(asyncio.wait_for(gone(int(pid)), 10))

    def test_ctrl_c_runs_the_whole_teardown(self):
        """PY-78: the child's group is not the terminal's, so it is we who end it; it may clean up."""
        script = """
            import asyncio, contextlib, os, signal
            from tests.transports.children import opened, python
            async def main():
                agent = python("import sys; print('up', flush=True); sys.stdin.read(); print('bye', file=sys.stderr)")
                try:
                    await opened(agent).line()
                    os.kill(os.getpid(), signal.SIGINT)
                    await asyncio.Event().wait()
                finally:
                    await agent.aclose()
                    print(agent.facts())
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(main())
        """
        assert run_script(script) == "{'exit_status': 0, 'stderr_tail': 'bye\\n'}\n"

    def test_a_fork_of_this_process_ends_nothing(self, run, monkeypatch):
        """A forked copy has the same finalizers, but the child is not its own."""

        async def main():
            agent = shell("cat")
            opened(agent)
            child = agent._opened().child
            with monkeypatch.context() as patch:
                patch.setattr(os, "getpid", lambda: 1)
                child.end_now()
                assert child.reaped
            assert is_running(child.pid)
            assert not child.reaped
            await agent.aclose()
            assert agent.facts()["exit_status"] == 0

        run(main())


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
            assert time.monotonic() - start < 5
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
