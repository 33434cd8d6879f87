"""How the command ends, by whatever cause, and that nothing stays behind; the end of its input alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import claude
from tests.claude.talking import ROOT, fake_process, read, read_until, texts
from tests.transports.children import gone, is_running, pid_of


def quick(exit: float = 5.0, term: float = 5.0) -> acprt.Limits:
    """Limits with other graces."""
    return acprt.Limits(exit_grace_seconds=exit, term_grace_seconds=term)


class TestEnd:
    def test_end_of_stdin_is_a_clean_exit(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                await read(cli.prompt("hello"))
            assert cli.exit_status == 0

        run(main())

    def test_exit_status_after_an_error_result_is_no_second_failure(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                with pytest.raises(claude.AuthenticationFailed):
                    await read(cli.prompt("auth"))
            assert cli.exit_status == 1

        run(main())

    def test_crash_in_mid_turn_fails_turn_and_requests_with_status_and_stderr(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                turn, queued = cli.prompt("crash"), cli.prompt("say never")
                waiting = asyncio.create_task(read(queued))
                with pytest.raises(claude.ProcessEnded, match="fatal: it broke") as caught:
                    await read(turn)
                assert caught.value.exit_status == 3
                with pytest.raises(claude.ProcessEnded):
                    await waiting
                with pytest.raises(claude.ProcessEnded, match="interrupt"):
                    await cli.interrupt()
                with pytest.raises(claude.ProcessEnded):
                    await read(cli.prompt("say too late"))
                assert not [m async for m in cli.messages() if isinstance(m, claude.ResultMessage)]
            assert cli.exit_status == 3

        run(main())

    def test_open_ask_is_cancelled_when_the_command_is_gone(self, run) -> None:
        """A question to a person does not stay on the screen."""

        async def main() -> None:
            asked, cancelled = asyncio.Event(), asyncio.Event()

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                asked.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                return claude.Allow()

            process = fake_process()
            async with claude.connect(process, can_use_tool=ask) as cli:
                reading = asyncio.create_task(cli.prompt("tool").text())
                await asked.wait()
                os.kill(pid_of(process), signal.SIGKILL)
                await cancelled.wait()
                with pytest.raises(claude.ProcessEnded, match="status -9"):
                    await reading

        run(main())

    def test_last_write_after_the_end_of_stdin_is_waited_for(self, run, tmp_path: Path) -> None:
        """The session file is flushed then."""
        farewell = tmp_path / "session"

        async def main() -> None:
            async with claude.connect(fake_process(f"linger=0.5 farewell={farewell}")) as cli:
                await read(cli.prompt("hello"))

        run(main())
        assert farewell.read_text() == "goodbye"

    def test_command_that_ignores_everything_is_killed_in_bounded_time(self, run) -> None:
        async def main() -> None:
            started = time.monotonic()
            async with claude.connect(fake_process("ignore_term", limits=quick(0.2, 0.2))) as cli:
                pass
            assert cli.exit_status == -signal.SIGKILL
            assert time.monotonic() - started < 8

        run(main())

    def test_command_that_ignores_the_end_of_stdin_gets_sigterm(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process("linger=60", limits=quick(exit=0.2))) as cli:
                await read(cli.prompt("hello"))
            assert cli.exit_status == 143

        run(main())

    def test_background_shell_in_a_session_of_its_own_is_stopped_first(self, run) -> None:
        """It would survive a killed command."""

        async def main() -> int:
            async with claude.connect(fake_process("ignore_term", limits=quick(0.2, 0.2))) as cli:
                await read(cli.prompt("detached"))
                output = await cli.send(claude.GetTaskOutput(task_id="b0000task"))
                pid = int(output.output)
                assert is_running(pid)
            assert cli.exit_status == -signal.SIGKILL
            assert cli.tasks.tasks["b0000task"].status == "stopped"
            return pid

        assert not is_running(run(main()))

    @pytest.mark.parametrize("steps", range(0, 40, 3))
    def test_closer_that_is_cancelled_at_any_step_leaves_no_process(self, run, steps: int) -> None:
        async def main() -> int:
            process = fake_process("ignore_term", limits=quick(0.05, 0.05))
            ready = asyncio.Event()

            async def session() -> None:
                async with claude.connect(process):
                    ready.set()

            working = asyncio.create_task(session())
            await ready.wait()
            status = process.child_status()
            assert status is not None
            for _ in range(steps):
                await asyncio.sleep(0)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await process.aclose()
            return status.pid

        assert not Path(f"/proc/{run(main())}").exists()

    @pytest.mark.parametrize("bound", ["wait_for", "timeout"])
    def test_bound_around_the_end_still_reaps(self, run, bound: str) -> None:
        async def main() -> None:
            process = fake_process("ignore_term", limits=quick(0.3, 0.3))

            async def session() -> None:
                async with claude.connect(process) as cli:
                    await read(cli.prompt("hello"))

            with pytest.raises(TimeoutError):
                if bound == "wait_for":
                    await asyncio.wait_for(_slowly(session()), 0.8)
                else:
                    async with asyncio.timeout(0.8):
                        await _slowly(session())
            await process.aclose()
            status = process.child_status()
            assert status is not None
            assert status.exit_status is not None

        async def _slowly(work: Any) -> None:
            await work
            await asyncio.Event().wait()

        run(main())

    def test_closing_from_another_task_ends_the_turn_and_spins_nowhere(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                turn = cli.prompt("wait")
                await read_until(turn, lambda: cli.session)
                reading = asyncio.create_task(read(turn))
                used = time.process_time()
                await asyncio.create_task(cli.aclose())
                await cli.aclose()
                assert isinstance((await reading)[-1], claude.ResultMessage)
                assert time.process_time() - used < 1

        run(main())

    def test_what_was_buffered_is_read_after_the_close(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                turn = cli.prompt("say x")
                async with turn:
                    assert await cli.settled()
                    assert turn.outcome is not None
                    await cli.aclose()
                    assert texts(await read(turn)) == ["x"]

        run(main())

    @pytest.mark.parametrize("how", ["sys.exit(3)", "raise LookupError", "os.kill(os.getpid(), signal.SIGTERM)"])
    def test_host_that_ends_without_closing_leaves_no_child(self, tmp_path: Path, how: str) -> None:
        program = textwrap.dedent(
            f"""
            import asyncio, os, signal, sys
            from acprt import claude
            from tests.claude.talking import fake_process

            async def main():
                process = fake_process()
                async with claude.connect(process) as cli:
                    print(process.child_status().pid, flush=True)
                    {how}
                    await asyncio.Event().wait()

            asyncio.run(main())
            """
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=40)
        asyncio.run(asyncio.wait_for(gone(int(done.stdout.split()[0])), 20))

    def test_end_session_ends_it_with_stdin_open(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                await cli.send(claude.EndSession())
                await cli.connection.incoming_closed()
                assert cli.exit_status == 0

        run(main())


class TestEndOfInput:
    def test_result_held_back_until_background_agents_end_goes_to_its_own_prompt(self, run) -> None:
        """Two results back to back."""

        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                turn = cli.prompt("agent 0.3")
                await read_until(turn, cli.tasks.background)
                await cli.end_input()
                await read(turn)
                assert turn.result is not None
                assert turn.result.user_message_uuid == turn.uuid
                between: list[Any] = [m async for m in cli.messages() if isinstance(m, claude.ResultMessage)]
                assert [m.origin.kind for m in between] == ["task-notification"]
                assert between[0].result_index == turn.result.result_index + 1  # type: ignore[operator]  # it is told
            assert cli.exit_status == 0

        run(main())

    def test_open_ask_fails_at_the_command_and_the_turn_goes_on(self, run) -> None:
        async def main() -> None:
            asked = asyncio.Event()

            async def ask(request: claude.CanUseTool) -> claude.Allow:
                asked.set()
                await asyncio.Event().wait()
                return claude.Allow()

            async with claude.connect(fake_process(), can_use_tool=ask) as cli:
                turn = cli.prompt("tool")
                reading = asyncio.create_task(read(turn))
                await asked.wait()
                await cli.end_input()
                await reading
                assert turn.result is not None
                assert len(turn.result.permission_denials) == 1

        run(main())

    def test_nothing_can_be_sent_after_it(self, run) -> None:
        """And nobody waits for an answer to it."""

        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                await cli.end_input()
                with pytest.raises(RuntimeError, match="end_input"):
                    await read(cli.prompt("say no"))
                with pytest.raises(RuntimeError, match="end_input"):
                    await cli.interrupt()

        run(main())
