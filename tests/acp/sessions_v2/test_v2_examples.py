"""Runs examples/v2_agent.py and v2_client.py as their user would, over stdio."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

CONVERSATION = """\
librarian speaks version 2
[running]
[requires_action]
[asked: Count the words of the prompt?]
[running]
agent: I count\x20
agent: 5 words.
[idle]
stopped: end_turn
tool: Count the words (completed) -> 5
stopped: cancelled
user: How many words are these?
agent: I count 5 words.
user: wait
"""


@pytest.mark.parametrize("named", [False, True])
def test_v2_client_reads_cancels_and_resumes(named) -> None:
    """With the agent beside it, and with a command that is given."""
    arguments = [shlex.join([sys.executable, "-W", "error", str(EXAMPLES / "v2_agent.py")])] if named else []
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "v2_client.py"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=45,
    )
    assert (done.stdout, done.stderr, done.returncode) == (CONVERSATION, "", 0)


def test_v2_agent_takes_no_for_an_answer(run) -> None:
    client = acp.Client.v2("test", version="0")

    @client.method
    async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        return acp.reject(request)

    async def main() -> None:
        process = acprt.AgentProcess(sys.executable, "-W", "error", str(EXAMPLES / "v2_agent.py"))
        async with client.connect(process) as cx:
            await acp.initialize(cx, fallback=False)
            async with sessions_v2.session(cx, cwd="/") as session:
                turn = session.prompt("count")
                assert await turn.text() == "Then not."
                assert turn.stop_reason == "refusal"
                (call,) = session.projection.tool_calls.values()
                assert call.status == "cancelled"
            listed = await sessions_v2.list_sessions(cx, cwd="/")
            assert [info.session_id for info in listed] == [session.id]
            assert await sessions_v2.list_sessions(cx, cwd="/elsewhere") == []
            with pytest.raises(acprt.RpcError) as raised:
                await sessions_v2.resume_session(cx, "never", cwd="/")
            error: Any = raised.value
            assert (error.code, error.data) == (-32002, {"sessionId": "never"})

    run(main(), timeout=45)
