"""Who ends a child: any task, in any order, given up or not; and when nobody does."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import textwrap
from typing import Any

import pytest

from acprt.limits import Limits
from acprt.transports import child_run
from acprt.transports.process import AgentProcess
from tests.transports.children import (
    NEEDS_SIGTERM,
    PATIENT,
    QUICK,
    STUBBORN,
    WITH_DESCENDANT,
    descriptors,
    gone,
    has_children,
    is_running,
    opened,
    pid_of,
    python,
    run_script,
    shell,
    when_reaped,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes that are not its children")


MIB = 1024 * 1024


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
            import signal, subprocess
            child = subprocess.Popen(["/bin/sleep", "60"], process_group=0)
            print(child.pid, flush=True)
            signal.pause()
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
