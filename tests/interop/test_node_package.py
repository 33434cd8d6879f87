"""acprt with the npm package `@agentclientprotocol/sdk`, each as the agent and as the client of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.interop.turn import PEERS, STOP_REASONS, check_client, exit_status, session_with

pytestmark = [pytest.mark.node, pytest.mark.timeout(120)]


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
        """By `session/cancel`; then the end of its input ends it."""

        async def main() -> None:
            async with session_with(node_agent(node_package)) as (turns, _):
                assert await turns.cancelled_prompt("WAIT never") == (["WAIT"], "cancelled")
                assert await turns.prompt("after") == (["after"], "end_turn")
            assert exit_status(turns.cx) == 0

        run(main(), timeout=60)

    def test_its_permission_request_is_answered_in_mid_turn(self, run, node_package) -> None:
        """Both sides number their requests from the start, at once."""

        async def main() -> None:
            async with session_with(node_agent(node_package)) as (turns, seen):
                assert await turns.prompt("ASK twice: ASK") == (["yes", "twice:", "yes"], "end_turn")
                assert [request.tool_call.title for request in seen.permissions] == ["A tool", "A tool"]

        run(main(), timeout=60)

    def test_it_honours_the_cancel_of_a_request(self, run, node_package) -> None:
        """`$/cancel_request` aborts the handler's signal, and the request is answered -32800."""
        client = acp.Client("interop")
        sent: acprt.SentRequest[v1.PromptResponse]

        @client.on_receive_notification
        async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
            sent.cancel()

        async def main() -> None:
            nonlocal sent
            async with client.connect(node_agent(node_package)) as cx:
                await acp.initialize(cx)
                session = await cx.send_request(v1.NewSessionRequest(cwd="/", mcp_servers=[])).block_task(timeout=30)
                prompt = v1.PromptRequest(session_id=session.session_id, prompt=[v1.TextContent(text="WAIT")])
                sent = cx.send_request(prompt)
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task(timeout=30)
                assert caught.value.code == acprt.ErrorCode.REQUEST_CANCELLED

        run(main(), timeout=60)


class TestClientOfThePackage:
    """It spawns an acprt agent."""

    def test_it_drives_our_agent_through_turns(self, node_package) -> None:
        """A turn, a permission request, a cancel in mid-turn; besides, it cancels a request by `$/cancel_request`."""
        seen = check_client(["node", str(PEERS / "node_client.mjs")], ACPRT_NODE_PEERS=str(node_package))
        assert seen.pop("aborted") == acprt.ErrorCode.REQUEST_CANCELLED
        assert seen == {"version": 1, **STOP_REASONS}
