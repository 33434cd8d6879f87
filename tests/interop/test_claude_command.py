"""The real Claude Code command, of the PyPI package `claude-agent-sdk`: without credentials, and with a scripted model.

Its configuration, home and temporary files are the test's own, and so is all of its environment.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import acp, claude
from acprt.acp import v1
from tests.interop.conftest import INSTALLED, ROOT

pytestmark = [pytest.mark.real_peers, pytest.mark.timeout(180)]
SECONDS = 150
RELEASE = "2.1.332"


@pytest.fixture
def command() -> str:
    found = sorted(INSTALLED.glob("heavy/claude-command/lib/python3*/site-packages/claude_agent_sdk/_bundled/claude"))
    if not found:
        pytest.skip("the PyPI package claude-agent-sdk is not installed: make interop-heavy")
    return str(found[0])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The working directory; everything else of the command's stands beside it."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    return tmp_path / "work"


def process(command: str, place: Path, *words: str, env: dict[str, str] | None = None, **options: Any) -> Any:
    """The command, in an environment that has nothing of this one."""
    home = place.parent / "home"
    own = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "TMPDIR": str(place.parent / "tmp"),
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return claude.ClaudeProcess(command, *words, cwd=place, inherit_env=False, env=own | (env or {}), **options)


async def read(turn: Any) -> list[claude.Message]:
    return [message async for message in turn]


class TestWithoutCredentials:
    def test_version(self, command: str) -> None:
        done = subprocess.run(
            [command, "--version"], capture_output=True, text=True, timeout=60, env={"HOME": "/nonexistent"}
        )
        assert (done.stdout, done.returncode) == (f"{RELEASE} (Claude Code)\n", 0)

    def test_initialize_then_end_of_stdin(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            async with claude.connect(process(command, place)) as cli:
                assert cli.info.claude_code_version == RELEASE
                assert cli.info.models
                assert cli.info.commands
                assert cli.info.account["tokenSource"] == "none"
                assert cli.session is None  # nothing is told before the first prompt
            assert cli.exit_status == 0

        run(main(), timeout=SECONDS)

    def test_control_requests(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            async with claude.connect(process(command, place)) as cli:
                assert await cli.set_permission_mode("plan") == "plan"
                for request, code in (
                    (cli.set_permission_mode("nonsense"), "invalid_mode"),
                    (cli.set_permission_mode("bypassPermissions"), "bypass_not_launched"),
                    (cli.control("no_such_request"), "unsupported_request"),
                ):
                    with pytest.raises(acprt.RpcError) as caught:
                        await request
                    assert caught.value.data == {"error_code": code}
                assert await cli.interrupt() == claude.InterruptReceipt()
                await cli.stop_task("no-such-task")  # succeeds: it proves nothing
                withdrawn = await cli.send(claude.CancelAsyncMessage(message_uuid="no-such-prompt"))
                assert not withdrawn.cancelled
                with pytest.raises(acprt.RpcError):
                    await cli.send(claude.GetTaskOutput(task_id="no-such-task"))
                assert isinstance(await cli.send(claude.GetContextUsage()), dict)
                await cli.send(claude.EndSession())
                await cli.connection.incoming_closed()
                assert cli.exit_status == 0

        run(main(), timeout=SECONDS)

    def test_prompt_is_a_failed_login_and_exit_status_1(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            async with claude.connect(process(command, place)) as cli:
                turn, seen = cli.prompt("hello"), []
                with pytest.raises(claude.AuthenticationFailed, match="Not logged in"):
                    async for message in turn:
                        seen.append(message)  # noqa: PERF401  # what came before the error is the point
                assert turn.outcome == "not_authenticated"
                assert isinstance(seen[-1], claude.ResultMessage)
                assert [m.error for m in seen if isinstance(m, claude.AssistantMessage)] == ["authentication_failed"]
                assert cli.session is not None
                assert cli.session.api_key_source == "none"
                for message in seen:
                    assert claude.encode(message) == message.line
                    assert claude.decode(claude.encode(message)) == message
                assert not [message for message in seen if isinstance(message, claude.UnknownMessage)]
                assert await cli.settled(background_seconds=30)
                await cli.end_input()
                assert [type(m).__name__ async for m in cli.messages()]  # lifecycle and state come behind the result
            assert (cli.exit_status, cli.stray_lines) == (1, 0)

        run(main(), timeout=SECONDS)

    def test_unknown_session_to_resume_is_one_error(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            missing = "00000000-0000-4000-8000-000000000000"
            with pytest.raises(claude.ProcessEnded, match=f"No conversation found.*{missing}") as caught:
                async with claude.connect(process(command, place, resume=missing)):
                    pass
            assert caught.value.exit_status == 1

        run(main(), timeout=SECONDS)

    def test_usage_error_is_told_with_stderr(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            with pytest.raises(claude.ProcessEnded, match="no-such-flag") as caught:
                async with claude.connect(process(command, place, "--no-such-flag")):
                    pass
            assert caught.value.exit_status == 1

        run(main(), timeout=SECONDS)

    def test_mcp_server_of_the_host_is_greeted(self, run, command: str, place: Path) -> None:
        async def main() -> None:
            server, greeted, listed = acprt.Endpoint("files"), asyncio.Event(), asyncio.Event()

            @server.method("initialize")
            async def initialize(params: Any) -> Any:
                return {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "files", "version": "1"},
                }

            @server.on_receive_notification("notifications/initialized")
            async def initialized(params: Any) -> None:
                greeted.set()

            @server.method("tools/list")
            async def tools(params: Any) -> Any:
                listed.set()
                return {"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}

            async with claude.connect(process(command, place), mcp_servers={"files": server}):
                await asyncio.wait_for(greeted.wait(), 30)
                await asyncio.wait_for(listed.wait(), 30)

        run(main(), timeout=SECONDS)


class TestWithAScriptedModel:
    def with_model(self, command: str, place: Path, model: str, **options: Any) -> Any:
        return process(command, place, env={"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "dummy"}, **options)

    def test_streamed_turn(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            async with claude.connect(self.with_model(command, place, model)) as cli:
                turn = cli.prompt("FAKE:TEXT")
                messages = await read(turn)
                streamed = "".join(m.text for m in messages if isinstance(m, claude.StreamEvent))
                whole = "".join(m.text for m in messages if isinstance(m, claude.AssistantMessage))
                assert streamed == whole == "Hello from the fake model."
                assert (turn.outcome, turn.stop_reason) == ("completed", "end_turn")
                assert turn.result is not None
                assert turn.result.user_message_uuid == turn.uuid
                for message in messages:
                    assert claude.encode(message) == message.line
                assert not [m for m in messages if isinstance(m, claude.UnknownMessage)]
            assert cli.exit_status == 0

        run(main(), timeout=SECONDS)

    @pytest.mark.parametrize("allowed", [True, False])
    def test_permission(self, run, command: str, place: Path, model: str, allowed: bool) -> None:
        async def main() -> None:
            asked: list[claude.CanUseTool] = []

            async def ask(request: claude.CanUseTool) -> claude.Allow | claude.Deny:
                asked.append(request)
                return claude.Allow() if allowed else claude.Deny(message="not today")

            async with claude.connect(self.with_model(command, place, model), can_use_tool=ask) as cli:
                turn = cli.prompt("FAKE:TOOL")
                messages: list[Any] = await read(turn)
                assert [request.tool_name for request in asked] == ["Bash"]
                results = [
                    block
                    for m in messages
                    if isinstance(m, claude.UserMessage)
                    for block in m.content
                    if isinstance(block, claude.ToolResultBlock)
                ]
                assert [bool(block.is_error) for block in results] == [not allowed]
                assert turn.outcome == "completed"
                assert turn.result is not None
                assert len(turn.result.permission_denials) == (0 if allowed else 1)
            assert list(place.iterdir()) == ([place / "the_model_was_here.txt"] if allowed else [])

        run(main(), timeout=SECONDS)

    def test_cancel_in_mid_turn_and_the_next_prompt(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            async with claude.connect(self.with_model(command, place, model)) as cli:
                async with cli.prompt("FAKE:SLOW") as turn:
                    async for message in turn:
                        if isinstance(message, claude.StreamEvent) and message.text:
                            break
                assert (turn.outcome, turn.stop_reason) == ("cancelled", "cancelled")
                assert await cli.prompt("FAKE:TEXT").text() == "Hello from the fake model."

        run(main(), timeout=SECONDS)

    def test_queued_prompt_is_taken_back(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            async with claude.connect(self.with_model(command, place, model)) as cli:
                async with cli.prompt("FAKE:SLOW") as running:
                    await anext(running)
                    async with cli.prompt("FAKE:TEXT") as queued:
                        assert await queued.cancel()
                    assert (queued.outcome, queued.result) == ("cancelled", None)
                    assert running.outcome is None
                assert running.outcome == "cancelled"

        run(main(), timeout=SECONDS)

    def test_failing_model_is_a_failed_turn_and_the_session_lives(
        self, run, command: str, place: Path, model: str
    ) -> None:
        async def main() -> None:
            async with claude.connect(self.with_model(command, place, model)) as cli:
                with pytest.raises(claude.TurnFailed) as caught:
                    await read(cli.prompt("FAKE:ERROR"))
                assert caught.value.result.is_error
                assert await cli.prompt("FAKE:TEXT").text() == "Hello from the fake model."

        run(main(), timeout=SECONDS)

    def test_odd_and_large_text(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            from tests.interop.peers.fake_model import ODD_TEXT

            async with claude.connect(self.with_model(command, place, model)) as cli:
                assert await cli.prompt("FAKE:UNICODE").text() == ODD_TEXT
                assert len(await cli.prompt("FAKE:BIG(2000000)").text()) == 2_000_000

        run(main(), timeout=SECONDS)


class TestBackgroundShells:
    """The scripted model calls the shell; the host's permission sends it to the background."""

    def connected(self, command: str, place: Path, model: str, shell: str) -> Any:
        async def ask(request: claude.CanUseTool) -> claude.Allow:
            return claude.Allow(updated_input=request.input | {"command": shell, "run_in_background": True})

        real = process(command, place, env={"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "dummy"})
        return claude.connect(real, can_use_tool=ask)

    def test_shell_runs_ends_and_wakes_a_turn_of_its_own(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            async with self.connected(command, place, model, "sleep 1; echo done") as cli:
                turn = cli.prompt("FAKE:TOOL")
                seen = await read(turn)
                (task,) = cli.tasks.tasks.values()
                (started,) = [m for m in seen if isinstance(m, claude.TaskStartedMessage)]
                assert (started.task_id, started.run_id, started.is_backgrounded) == (task.task_id, task.run_id, True)
                assert (task.task_type, task.is_finished, cli.tasks.activity()) == ("local_bash", False, [task])
                between = []
                async for message in cli.messages():
                    between.append(message)
                    if isinstance(message, claude.ResultMessage):
                        break
                assert (task.status, task.is_finished, cli.tasks.activity()) == ("completed", True, [])
                assert task.notification is not None
                assert "completed (exit code 0)" in (cli.tasks.display(task.notification) or "")
                assert task.notification.output_path is not None
                assert Path(task.notification.output_path).read_text().startswith("done\n")
                result: Any = between[-1]
                assert (result.origin.kind, result.origin.run_id) == ("task-notification", task.run_id)
                assert await cli.settled(background_seconds=30)
                for message in (*seen, *between):
                    assert claude.encode(message) == message.line
                assert await cli.prompt("FAKE:TEXT").text() == "Hello from the fake model."
            assert cli.exit_status == 0

        run(main(), timeout=SECONDS)

    def test_stopped_shell_tells_its_end(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            async with self.connected(command, place, model, "sleep 60") as cli:
                await read(cli.prompt("FAKE:TOOL"))
                (task,) = cli.tasks.tasks.values()
                await cli.stop_task(task.task_id)
                assert (task.status, task.is_finished) == ("stopped", True)  # its frames come before the answer

        run(main(), timeout=SECONDS)

    def test_end_of_the_client_ends_the_shell(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            shell = f"echo $$ > {place}/pid; exec sleep 600"
            async with self.connected(command, place, model, shell) as cli:
                await read(cli.prompt("FAKE:TOOL"))
                async with asyncio.timeout(20):
                    while not (place / "pid").exists() or not (place / "pid").read_text():
                        await asyncio.sleep(0.01)
            async with asyncio.timeout(10):
                while Path(f"/proc/{(place / 'pid').read_text().strip()}").exists():
                    await asyncio.sleep(0.01)
            assert cli.exit_status == 0

        run(main(), timeout=SECONDS)


class TestAsAcp:
    """examples/claude_as_acp.py with the real command behind it."""

    def test_turn_permission_and_cancel(self, run, command: str, place: Path, model: str) -> None:
        async def main() -> None:
            client = acp.Client("test", version="0")
            asked: list[v1.RequestPermissionRequest] = []

            @client.method
            async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                asked.append(request)
                return acp.allow_first(request)

            real = process(command, place, env={"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "dummy"})
            example = acprt.AgentProcess(
                sys.executable,
                str(ROOT / "examples" / "claude_as_acp.py"),
                command,
                env=real.env | {"PYTHONPATH": str(ROOT)},
            )
            async with client.connect(example) as cx:
                await acp.initialize(cx)
                async with acp.session(cx, cwd=str(place)) as session:
                    assert await session.prompt("FAKE:TEXT").text() == "Hello from the fake model."
                    statuses = [
                        update.status
                        async for update in session.prompt("FAKE:TOOL")
                        if isinstance(update, v1.ToolCall | v1.ToolCallUpdate)
                    ]
                    assert statuses == ["in_progress", "completed"]
                    assert len(asked) == 1
                    async with session.prompt("FAKE:SLOW") as turn:
                        async for update in turn:
                            if isinstance(update, v1.AgentMessageChunk):
                                turn.cancel()
                    assert turn.stop_reason == "cancelled"
                    assert await session.prompt("FAKE:TEXT").text() == "Hello from the fake model."

        run(main(), timeout=SECONDS)
