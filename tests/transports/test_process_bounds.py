"""The end of a child takes bounded time, whatever the child and whoever waits for it do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import threading

import pytest

from acprt.limits import Limits
from acprt.transports import child_run
from acprt.transports.base import ChildStatus
from tests.transports.children import ECHO, QUICK, STUBBORN, descriptors, gone, opened, pid_of, python, shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches processes that are not its children")


MIB = 1024 * 1024


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
            agent = python("import os, signal; os.close(1); signal.pause()")
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
            import os, signal, sys
            def finish(*_):
                print(len(sys.stdin.buffer.read()), flush=True)
                os._exit(0)
            signal.signal(signal.SIGTERM, finish)
            print("up", flush=True)
            signal.pause()
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
            agent = python("import os; os.close(0); print('closed', flush=True); import signal; signal.pause()")
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
