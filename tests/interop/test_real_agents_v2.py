"""Whole agents that speak the draft version 2, driven through turns with a scripted model."""

from __future__ import annotations

import pytest

from tests.interop.peers.fake_model import TOUCHED, WORDS
from tests.interop.real_agents import AGENTS, check_end
from tests.interop.turn_v2 import session_v2_with, turn_v2

SECONDS = 100.0

pytestmark = [
    pytest.mark.real_peers,
    pytest.mark.timeout(2 * SECONDS),
    pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent.speaks_v2], ids=lambda agent: agent.name),
]


def test_turns(run, agent, set_up_here) -> None:
    """Text in order, a tool with its permission, a cancel in mid-turn, a turn behind it; then nothing of it is left."""
    here = set_up_here(agent)

    async def main() -> None:
        async with session_v2_with(here.process(), str(here.cwd)) as (session, asked):
            assert await turn_v2(session, "FAKE:TEXT") == (list(WORDS), "end_turn")
            await session.set_config_option("mode", agent.mode)
            texts, stop_reason = await turn_v2(session, "FAKE:TOOL")
            assert (texts[-1], stop_reason) == ("The tool has finished.", "end_turn")
            assert (here.cwd / TOUCHED).exists()
            assert len(asked) == 1
            assert [call.status for call in session.projection.tool_calls.values()] == ["completed"]
            assert (await turn_v2(session, "FAKE:SLOW", cancel=True))[1] == "cancelled"
            assert await turn_v2(session, "FAKE:TEXT") == (list(WORDS), "end_turn")
        await check_end(session.cx, agent)

    run(main(), timeout=SECONDS)
