"""The command as a child: its arguments and environment, how it starts, how it ends, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import logging
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
from acprt.claude.process import CLAUDE_LIMITS
from acprt.transports.base import ChildStatus
from tests.claude.talking import fake_process, read, texts

ROOT = Path(__file__).resolve().parents[2]


def quick(exit: float = 5.0, term: float = 5.0) -> acprt.Limits:
    """Limits with other graces."""
    return acprt.Limits(exit_grace_seconds=exit, term_grace_seconds=term)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a defunct one does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


class TestCommandLine:
    def test_stream_is_asked_for_with_what_the_options_say(self) -> None:
        process = claude.ClaudeProcess(
            "claude",
            replay_user_messages=True,
            permission_mode="default",
            allowed_tools=["Read", "Bash(git log:*)", "Bash(a, b)"],
            resume="-dash",
            fork_session=True,
            max_turns=3,
            setting_sources=[],
        )
        assert process.argv == (
            "claude", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
            "--include-partial-messages", "--replay-user-messages", "--fork-session", "--permission-mode=manual",
            "--allowedTools=Read,Bash(git log:*),Bash(a, b)", "--resume=-dash", "--max-turns=3", "--setting-sources=",
        )  # fmt: skip

    @pytest.mark.parametrize("rule", ["", "a,b", "Bash(x", "x)", "Skill(a(b))"])
    def test_what_is_not_one_rule_is_refused(self, rule: str) -> None:
        with pytest.raises(ValueError, match="rule"):
            claude.ClaudeProcess("claude", allowed_tools=[rule])

    @pytest.mark.parametrize("option", ["allowed_tools", "setting_sources"])
    def test_text_is_no_list_of_words(self, option: str) -> None:
        with pytest.raises(TypeError, match=rf"{option} is a list of words: \['Read'\]"):
            claude.ClaudeProcess("claude", **{option: "Read"})  # type: ignore[arg-type]  # as one might write it

    def test_host_is_asked_only_where_there_is_one_to_ask(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                return claude.Allow()

            for asks, option in ({}, False), ({"can_use_tool": ask}, True):
                process = fake_process()
                async with claude.connect(process, **asks):  # type: ignore[arg-type]  # an option by its name
                    assert ("--permission-prompt-tool" in process.argv) is option

        run(main())

    def test_graces_are_those_that_the_command_needs(self) -> None:
        assert claude.ClaudeProcess("claude").limits == CLAUDE_LIMITS
        assert (CLAUDE_LIMITS.exit_grace_seconds, CLAUDE_LIMITS.term_grace_seconds) == (5, 5)
        assert CLAUDE_LIMITS.line_bytes >= 16 << 20

    def test_environment_is_no_inner_session_s(self, run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        async def main() -> None:
            monkeypatch.setenv("CLAUDECODE", "1")
            async with claude.connect(fake_process(cwd=tmp_path, env={"MINE": "x"})) as cli:
                wanted = {"CLAUDECODE": None, "CLAUDE_CODE_ENTRYPOINT": "sdk-py", "PWD": str(tmp_path), "MINE": "x"}
                for name, value in wanted.items():
                    assert texts(await read(cli.prompt(f"environment {name}"))) == [repr(value)]

        run(main())


class TestStart:
    def test_missing_program_and_missing_directory_are_different_errors(self, run, tmp_path: Path) -> None:
        async def main() -> None:
            with pytest.raises(claude.ProgramNotFound, match="no-such-claude"):
                async with claude.connect(claude.ClaudeProcess("no-such-claude")):
                    pass
            with pytest.raises(claude.WorkingDirectoryNotFound, match="nowhere"):
                async with claude.connect(fake_process(cwd=tmp_path / "nowhere")):
                    pass
            program = tmp_path / "claude"
            program.write_text("#!/bin/sh\n")
            with pytest.raises(claude.StartError, match="may not be executed"):
                async with claude.connect(claude.ClaudeProcess(program)):
                    pass

        run(main())

    @pytest.mark.parametrize(
        ("how", "text"),
        [
            ({"resume": "bad"}, "No conversation found with session ID: bad"),
            ({"wishes": "die_in_initialize"}, "the configuration is broken"),
        ],
    )
    def test_end_before_initialize_is_answered_is_one_error_with_the_reason(self, run, how: Any, text: str) -> None:
        """At once, not after a timeout; the exit status is part of it."""

        async def main() -> None:
            with pytest.raises(claude.ProcessEnded, match=text) as caught:
                async with claude.connect(fake_process(**how)):
                    pass
            assert caught.value.exit_status == 1
            assert caught.value.last_result is not None
            assert caught.value.last_result.subtype == "error_during_execution"

        run(main(), timeout=20)

    def test_usage_error_is_told_with_stderr(self, run) -> None:
        async def main() -> None:
            process = fake_process()
            process.argv = tuple(word for word in process.argv if word != "--verbose")
            with pytest.raises(claude.ProcessEnded, match="requires --verbose") as caught:
                async with claude.connect(process):
                    pass
            assert caught.value.exit_status == 1

        run(main())

    def test_command_that_never_answers_is_ended(self, run) -> None:
        async def main() -> None:
            process = fake_process("mute_initialize")
            with pytest.raises(TimeoutError):
                async with claude.connect(process, timeout=0.2):
                    pass
            status = process.child_status()
            assert status is not None
            assert status.exit_status == 0

        run(main())


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
                os.kill(_pid(process), signal.SIGKILL)
                await asyncio.wait_for(cancelled.wait(), 2)
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
                assert is_alive(pid)
            assert cli.exit_status == -signal.SIGKILL
            assert cli.tasks.tasks["b0000task"].status == "stopped"
            return pid

        assert not is_alive(run(main()))

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
                reading = asyncio.create_task(read(cli.prompt("wait")))
                while not cli.session:
                    await asyncio.sleep(0.01)
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
                    while turn.outcome is None:
                        await asyncio.sleep(0.01)
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
                    await asyncio.sleep(30)

            asyncio.run(main())
            """
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=40)
        pid = int(done.stdout.split()[0])
        deadline = time.monotonic() + 10
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not is_alive(pid)

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
                reading = asyncio.create_task(read(turn))
                while not cli.tasks.background():
                    await asyncio.sleep(0.01)
                await cli.end_input()
                await reading
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


class TestOneShot:
    def test_query_reads_to_the_end_of_what_the_prompt_left_running(self, run) -> None:
        async def main() -> None:
            seen = [message async for message in claude.query(fake_process(), "agent 0.1")]
            results = [message for message in seen if isinstance(message, claude.ResultMessage)]
            assert [result.result for result in results] == ["started", "Noted: Found it"]

        run(main())

    def test_query_without_background_work_ends_at_its_result(self, run) -> None:
        async def main() -> None:
            process = fake_process(session_states=False)
            seen = [message async for message in claude.query(process, "say x")]
            assert texts(seen) == ["x"]
            status = process.child_status()
            assert status is not None
            assert status.exit_status == 0

        run(main())

    def test_query_that_is_left_early_ends_the_process(self, run) -> None:
        async def main() -> None:
            process = fake_process()
            messages = claude.query(process, "wait")
            async for _message in messages:
                break
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, as its docstring says
            status = process.child_status()
            assert status is not None
            assert status.exit_status is not None

        run(main())

    def test_wait_for_the_end_of_work_is_bounded_and_counted_anew_from_each_result(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                await read(cli.prompt("agent 30"))
                assert not await cli.settled(background_seconds=0.1)
                await cli.stop_task("a0000000000000dbb")
                assert await cli.settled(background_seconds=10)

        run(main())

    def test_shells_are_not_waited_for_where_the_command_does_not_tell_its_state(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process(session_states=False)) as cli:
                await read(cli.prompt("shell 30"))
                assert await cli.settled(background_seconds=10)

        run(main())


class TestStdout:
    def test_lines_that_are_no_frames_are_skipped_and_the_first_is_reported(
        self, run, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                assert texts(await read(cli.prompt("stray"))) == ["between"] * 8
                assert cli.stray_lines == 6
                assert texts(await read(cli.prompt("broken"))) == ["after"]
                assert cli.stray_lines == 7

        with caplog.at_level(logging.WARNING, logger="acprt"):
            run(main())
        assert len([record for record in caplog.records if "skipped a line" in record.message]) == 1
        assert "[SandboxDebug] x" in caplog.text

    def test_line_of_megabytes_arrives(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                assert list(map(len, texts(await read(cli.prompt(f"large {5 << 20}"))))) == [5 << 20, 5]

        run(main())

    def test_line_over_the_limit_costs_itself(self, run) -> None:
        async def main() -> None:
            limits = acprt.Limits(line_bytes=1 << 20)
            process = fake_process(limits=limits, include_partial_messages=False)
            async with claude.connect(process) as cli:
                assert texts(await read(cli.prompt(f"large {2 << 20}"))) == ["after"]
                with pytest.raises(claude.MessagesLost):
                    await read(cli.prompt(f"garbage-result {2 << 20}"))
                assert await cli.prompt("say on").text() == "on"

        run(main())

    def test_prompt_of_megabytes_goes_out_whole(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process(include_partial_messages=False)) as cli:
                text = "say " + "ä" * (1 << 20)
                assert await cli.prompt(text).text() == text[4:]

        run(main())

    def test_unread_stderr_does_not_hold_the_command(self, run) -> None:
        async def main() -> None:
            program = "import sys; sys.stderr.write('x' * 3_000_000); sys.stdin.read()"
            process = claude.ClaudeProcess(sys.executable, "-c", program)
            async with claude.connect(process, initialize=None):
                pass
            assert process.child_status() == ChildStatus(_pid(process), 0)

        run(main())


def _pid(process: claude.ClaudeProcess) -> int:
    status = process.child_status()
    assert status is not None
    return status.pid


def test_command_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acprt.testing.fake_claude", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=30,
    )
    assert (done.stdout, done.returncode) == ("2.1.332 (Claude Code)\n", 0)
