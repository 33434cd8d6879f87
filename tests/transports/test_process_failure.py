"""A child that cannot be started: which error says so, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from acprt.errors import RpcError
from acprt.transports import child_run
from acprt.transports.process import AgentProcess
from tests.transports.children import descriptors, has_children, opened, shell, spawn_error

MIB = 1024 * 1024


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc or uses what only Linux has")


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
            used = {int(entry.split()[0]) for entry in before}
            first_free = min(set(range(max(used) + 2)) - used)
            failures = 0
            for limit in range(first_free, min(max(used) + 12, hard)):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                try:
                    agent = shell("cat")
                    opened(agent)
                    await agent.aclose()
                except RpcError:
                    failures += 1
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert descriptors() == before, f"with {limit} of {sorted(used)}"
            assert failures > 2
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
