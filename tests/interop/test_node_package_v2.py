"""acprt in the draft version 2, with the experimental entry of the npm package `@agentclientprotocol/sdk`."""

from __future__ import annotations

from pathlib import Path

import pytest

import acprt
from tests.interop.turn import PEERS, STOP_REASONS, WORDS_AGENT_V2, check_client, exit_status
from tests.interop.turn_v2 import session_v2_with, turn_v2

pytestmark = [pytest.mark.node, pytest.mark.timeout(120)]


def node_agent(folder: Path) -> acprt.AgentProcess:
    return acprt.AgentProcess("node", PEERS / "node_agent_v2.mjs", env={"ACPRT_NODE_PEERS": str(folder)})


def test_agent_of_the_package(run, node_package) -> None:
    """Turns with text, with a permission request and with a cancel, one after the other; then a clean exit."""

    async def main() -> None:
        async with session_v2_with(node_agent(node_package)) as (session, asked):
            assert await turn_v2(session, "one two three") == (["one", "two", "three"], "end_turn")
            assert await turn_v2(session, "ASK twice: ASK") == (["yes", "twice:", "yes"], "end_turn")
            assert [request.title for request in asked] == ["A tool", "A tool"]
            assert await turn_v2(session, "WAIT never", cancel=True) == (["WAIT"], "cancelled")
            assert await turn_v2(session, "after") == (["after"], "end_turn")
            assert [message.text for message in session.projection.messages if message.kind == "agent"][-1] == "after"
        assert exit_status(session.cx) == 0

    run(main(), timeout=60)


def test_client_of_the_package(node_package) -> None:
    """A prompt is answered at once with its message id, and idle updates tell the ends."""
    client = ["node", str(PEERS / "node_client_v2.mjs")]
    seen = check_client(client, WORDS_AGENT_V2, ACPRT_NODE_PEERS=str(node_package))
    assert seen == {"version": 2, **STOP_REASONS}
