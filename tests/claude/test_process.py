"""The command as a child: its arguments and environment, how it starts, and what it writes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import claude
from acprt.claude.process import CLAUDE_LIMITS
from acprt.transports.base import ChildStatus
from tests.claude.talking import ROOT, fake_process, read, texts
from tests.transports.children import pid_of


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
            assert process.child_status() == ChildStatus(pid_of(process), 0)

        run(main())


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
