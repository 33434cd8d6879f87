"""Runs the agents of examples/ as a client would, over their stdio, and the programs that bring both sides."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def agent_process(name: str) -> acprt.AgentProcess:
    """An example as a child, warnings as errors."""
    return acprt.AgentProcess(sys.executable, "-W", "error", str(EXAMPLES / name))


def output_of(name: str) -> list[str]:
    """What a whole program prints; it must end well and quietly."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=45,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


def notified_client(answer: Any = acp.allow_first) -> tuple[acp.Client, list[Any]]:
    """A client that keeps the updates it hears, and answers permission requests with `answer`."""
    client = acp.Client("test", version="0")
    heard: list[Any] = []

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        heard.append(request)
        return answer(request)

    @client.on_receive_notification
    async def update(note: v1.SessionNotification) -> None:
        heard.append(note.update)

    return client, heard


async def new_session(cx: acprt.Connection) -> str:
    """The id of a new session."""
    request = v1.NewSessionRequest(cwd="/", mcp_servers=[])
    return (await cx.send_request(request).block_task(timeout=20)).session_id


async def prompt(cx: acprt.Connection, session_id: str, text: str) -> str:
    """One turn: its stop reason."""
    request = v1.PromptRequest(session_id=session_id, prompt=[v1.TextContent(text=text)])
    return (await cx.send_request(request).block_task(timeout=20)).stop_reason


class TestStreamingAgent:
    """streaming_agent.py"""

    def test_turn_is_told_step_by_step(self, run) -> None:
        """Plan, reading from its begin to its end, thought, the question, writing, words: in this order."""
        client, heard = notified_client()

        async def main() -> None:
            async with client.connect(agent_process("streaming_agent.py")) as cx:
                await acp.initialize(cx)
                assert await prompt(cx, await new_session(cx), "call Ada") == "end_turn"

        run(main())
        kinds = [
            "available_commands_update",
            "plan",
            "tool_call",
            "tool_call_update",
            "tool_call_update",
            "tool_call_update",
            "agent_thought_chunk",
            "tool_call",
            "asked",
            "tool_call_update",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert [getattr(item, "session_update", "asked") for item in heard] == kinds
        read, write = heard[2], heard[7]
        assert [heard[n].status for n in (3, 4, 5)] == ["in_progress", None, "completed"]
        assert {heard[n].tool_call_id for n in (3, 4, 5)} == {read.tool_call_id}
        assert write.content == [v1.Diff(path="/notes.txt", old_text="buy milk", new_text="buy milk\ncall Ada")]
        assert heard[8].tool_call.tool_call_id == write.tool_call_id
        assert heard[-1].content.text == "Noted. There are 2 notes now."

    def test_rejected_note_is_not_kept(self, run) -> None:
        """The tool call fails, and the turn goes on."""
        client, heard = notified_client(acp.reject)

        async def main() -> None:
            async with client.connect(agent_process("streaming_agent.py")) as cx:
                await acp.initialize(cx)
                session_id = await new_session(cx)
                assert await prompt(cx, session_id, "call Ada") == "end_turn"
                assert heard[-2].status == "failed"
                await prompt(cx, session_id, "/list")
                assert heard[-1].content.text == "buy milk"

        run(main())


class TestSlowAgent:
    """slow_agent.py"""

    def test_cancel_in_mid_turn_ends_the_tool_call_and_then_the_turn(self, run) -> None:
        """What the handler says on its way out leaves before the answer."""

        async def main() -> None:
            client = acp.Client("test")
            heard: list[Any] = []
            speaks = asyncio.Event()

            @client.on_receive_notification
            async def update(note: v1.SessionNotification) -> None:
                heard.append(note.update)
                if isinstance(note.update, v1.AgentMessageChunk):
                    speaks.set()

            async with client.connect(agent_process("slow_agent.py")) as cx:
                await acp.initialize(cx)
                session_id = await new_session(cx)
                turn = cx.spawn(prompt(cx, session_id, "word " * 5_000))
                await speaks.wait()
                cx.send_notification(v1.CancelNotification(session_id=session_id))
                assert await turn == "cancelled"
                assert (heard[-1].session_update, heard[-1].status) == ("tool_call_update", "failed")

        run(main())

    def test_unknown_session_is_refused(self, run) -> None:
        """An error, and nothing else, for a session that was never opened."""
        client, heard = notified_client()

        async def main() -> None:
            async with client.connect(agent_process("slow_agent.py")) as cx:
                await acp.initialize(cx)
                with pytest.raises(acprt.RpcError) as refused:
                    await prompt(cx, "nobody's", "hello")
                assert (refused.value.code, heard) == (acprt.ErrorCode.RESOURCE_NOT_FOUND, [])

        run(main())


class TestBothVersions:
    """both_versions.py"""

    def test_client_of_version_1_gets_its_answer_with_the_turn(self, run) -> None:
        client, heard = notified_client()

        async def main() -> None:
            async with client.connect(agent_process("both_versions.py")) as cx:
                assert (await acp.initialize(cx)).version == 1
                assert await prompt(cx, await new_session(cx), "hello") == "end_turn"

        run(main())
        assert [update.content.text for update in heard] == ["HELLO"]

    def test_client_of_version_2_is_told_when_the_session_is_idle(self, run) -> None:
        async def main() -> None:
            client, idle = acp.Client.v2("test"), asyncio.Event()
            heard: list[Any] = []

            @client.on_receive_notification
            async def update(note: v2.UpdateSessionNotification) -> None:
                heard.append(note.update)
                if isinstance(note.update, v2.StateUpdate) and note.update.state == "idle":
                    idle.set()

            async with client.connect(agent_process("both_versions.py")) as cx:
                assert (await acp.initialize(cx)).version == 2
                session = await cx.send_request(v2.NewSessionRequest(cwd="/")).block_task(timeout=20)
                request = v2.PromptRequest(session_id=session.session_id, prompt=[v2.TextContent(text="hello")])
                await cx.send_request(request).block_task(timeout=20)
                await idle.wait()
            said: list[Any] = [update.content for update in heard if isinstance(update, v2.AgentMessageChunk)]
            assert "".join(block.text for block in said) == "HELLO"
            assert heard[-1].stop_reason == "end_turn"

        run(main())


class TestMessagesOfOnesOwn:
    def test_extension_methods(self) -> None:
        """extension_methods.py: offered, used, and refused where unknown."""
        assert output_of("extension_methods.py") == [
            "the user types: to be or",
            "6 words",
            "[-32601] Method not found: _example.com/rhyme",
        ]

    def test_custom_messages(self) -> None:
        """custom_messages.py: typed both ways; what does not fit is refused."""
        assert output_of("custom_messages.py") == [
            "the critic reads: all is …",
            "3 stars for 3 words",
            "-32602: Expected `str`, got `int` - at `$.text`",
        ]
