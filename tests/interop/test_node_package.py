"""acprt with the npm package `@agentclientprotocol/sdk`, each as the agent and as the client of the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import acprt
from tests.interop.turn import check_client, session_with

pytestmark = [pytest.mark.node, pytest.mark.timeout(120)]

PEERS = Path(__file__).parent / "peers"


def node_agent(folder: Path) -> acprt.AgentProcess:
    return acprt.AgentProcess("node", PEERS / "node_agent.mjs", env={"ACPRT_NODE_PEERS": str(folder)})


class TestAgentOfThePackage:
    """acprt spawns it."""

    def test_updates_arrive_in_order_and_before_the_answer(self, run, node_package) -> None:
        """It writes U+0085 unescaped."""

        async def main() -> None:
            words = [f"word-{n}" for n in range(200)] + ["a\u0085b\u200bc", "🙂"]
            async with session_with(node_agent(node_package)) as (turns, _):
                assert await turns.prompt(" ".join(words)) == (words, "end_turn")

        run(main(), timeout=60)

    def test_cancelled_turn_ends_and_the_next_one_works(self, run, node_package) -> None:
        """By `session/cancel`."""

        async def main() -> None:
            async with session_with(node_agent(node_package)) as (turns, _):
                assert await turns.cancelled_prompt("WAIT never") == (["WAIT"], "cancelled")
                assert await turns.prompt("after") == (["after"], "end_turn")

        run(main(), timeout=60)

    def test_its_permission_request_is_answered_in_mid_turn(self, run, node_package) -> None:
        """Both sides number their requests from the start, at once."""

        async def main() -> None:
            async with session_with(node_agent(node_package)) as (turns, seen):
                assert await turns.prompt("ASK twice: ASK") == (["yes", "twice:", "yes"], "end_turn")
                assert len(seen.permissions) == 2

        run(main(), timeout=60)

    def test_it_honours_the_cancel_of_a_request(self, run, node_package) -> None:
        """`$/cancel_request` aborts the handler's signal, and the request is answered -32800."""

        async def main() -> None:
            async with session_with(node_agent(node_package)) as (turns, seen):
                sent = turns.send_prompt("WAIT")
                seen.on_text = sent.cancel
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task(timeout=30)
                assert caught.value.code == acprt.ErrorCode.REQUEST_CANCELLED
                assert await turns.prompt("after") == (["after"], "end_turn")

        run(main(), timeout=60)


class TestClientOfThePackage:
    """It spawns an acprt agent."""

    def test_it_drives_our_echo_agent_through_a_turn_and_a_cancel(self, node_package) -> None:
        """A whole turn; besides, it cancels a request by `$/cancel_request`, which ends our handler."""
        environment = {**os.environ, "ACPRT_NODE_PEERS": str(node_package)}
        seen = check_client(["node", str(PEERS / "node_client.mjs")], env=environment)
        assert seen == {"aborted": acprt.ErrorCode.REQUEST_CANCELLED}
