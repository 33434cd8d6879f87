"""Whole agents of other projects, driven through turns with a scripted model. `make interop-heavy` installs them."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
import sys
import time

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.interop.peers.fake_model import ODD_TEXT, SLOW_CHUNKS, TOUCHED, WORDS, big_text
from tests.interop.real_agents import AGENTS, RealAgent, check_end
from tests.interop.turn import ROOT, Seen, Turns, client_for, session_with

SECONDS = 100.0  # for one test: some need seconds to start
SOON = 3.0  # until a cancelled turn has ended, and until what was killed is gone

pytestmark = [
    pytest.mark.real_peers,
    pytest.mark.timeout(2 * SECONDS),
    pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name),
]


def said(agent: RealAgent, texts: list[str]) -> list[str]:
    """What the model said: without the agent's own remarks and empty chunks."""
    return [text for text in texts if text and not text.startswith(agent.remarks or "\0")]


def test_turns(run, agent, set_up_here) -> None:
    """Text in order; a permission for a tool; a file; 200 kB in a chunk; odd characters; a model that fails."""
    here = set_up_here(agent)

    async def main() -> None:
        async with session_with(here.process(), str(here.cwd), agent.mode) as (turns, seen):
            texts, stop_reason = await turns.prompt("FAKE:TEXT")
            assert (said(agent, texts), stop_reason) == (list(WORDS), "end_turn")

            texts, stop_reason = await turns.prompt("FAKE:TOOL")
            assert (said(agent, texts)[-1], stop_reason) == ("The tool has finished.", "end_turn")
            assert len(seen.permissions) == 1
            assert (here.cwd / TOUCHED).exists()

            if agent.writes_files is not None:
                path = here.cwd / "written.txt"
                if not agent.writes_new_files:
                    path.touch()
                await turns.prompt(f"FAKE:WRITE({path})")
                assert path.read_text(encoding="utf-8") == "written by the model\n"
                assert seen.files == ([str(path)] if agent.writes_files == "by the client" else [])

            texts, _ = await turns.prompt("FAKE:BIG(200000)")
            assert "".join(said(agent, texts)) == big_text(200_000)
            texts, _ = await turns.prompt("FAKE:UNICODE")
            assert "".join(said(agent, texts)) == ODD_TEXT

            with contextlib.suppress(acprt.RpcError):  # the protocol does not say how a failing model is told
                await turns.prompt("FAKE:ERROR")
            # Not in the same session: codex-acp 0.16.0 may leave a prompt for ever that comes right behind its error.
            async with acp.session(turns.cx, cwd=here.cwd) as another:
                texts, stop_reason = await Turns(turns.cx, another).prompt("FAKE:TEXT")
            assert (said(agent, texts), stop_reason) == (list(WORDS), "end_turn")

    run(main(), timeout=SECONDS)


def test_cancel_in_mid_turn(run, agent, set_up_here) -> None:
    """`session/cancel` ends the turn soon, and the session goes on."""
    here = set_up_here(agent)

    async def main() -> None:
        async with session_with(here.process(), str(here.cwd), agent.mode) as (turns, _):
            texts, stop_reason = await turns.cancelled_prompt("FAKE:SLOW")
            assert stop_reason == "cancelled"
            assert len(said(agent, texts)) < SLOW_CHUNKS
            assert time.monotonic() - turns.cancelled_at < SOON
            texts, stop_reason = await turns.prompt("FAKE:TEXT")
            assert (said(agent, texts), stop_reason) == (list(WORDS), "end_turn")

    run(main(), timeout=SECONDS)


def test_end_of_an_idle_session(run, agent, set_up_here) -> None:
    """Leaving ends the agent within the grace times, and nothing of its process group is left."""
    here = set_up_here(agent)

    async def main() -> None:
        async with session_with(here.process(), str(here.cwd), agent.mode) as (turns, _):
            pass
        await check_end(turns.cx, agent)

    run(main(), timeout=SECONDS)


def test_end_in_mid_turn(run, agent, set_up_here) -> None:
    """The same while the agent streams, and nothing was cancelled."""
    here = set_up_here(agent)
    heard = asyncio.Event()
    client = client_for(Seen())

    @client.on_receive_notification
    async def update(note: v1.SessionNotification) -> None:
        if isinstance(note.update, v1.AgentMessageChunk):
            heard.set()

    async def main() -> None:
        async with client.connect(here.process()) as cx:
            await acp.initialize(cx)
            request = v1.NewSessionRequest(cwd=str(here.cwd), mcp_servers=[])
            session = await cx.send_request(request).block_task(timeout=SECONDS)
            prompt = v1.PromptRequest(session_id=session.session_id, prompt=[v1.TextContent(text="FAKE:SLOW")])
            cx.send_request(prompt).detach()
            await heard.wait()
        await check_end(cx, agent)

    run(main(), timeout=SECONDS)


def test_example_drives_it(agent, set_up_here) -> None:
    """`examples/one_prompt.py "CMD" "text"` works with any command."""
    here = set_up_here(agent)
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "one_prompt.py", shlex.join(here.run), "FAKE:TEXT"],
        env={**here.env, "PYTHONPATH": str(ROOT)},
        cwd=here.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "".join(WORDS) in done.stdout
    assert done.stdout.endswith("\n[end_turn]\n")
