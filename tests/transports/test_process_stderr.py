"""What a child writes to stderr: its tail, its lines, and who reads them."""

from __future__ import annotations

import logging
import threading

from acprt.limits import Limits
from tests.transports.children import ECHO, opened, python, shell


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
