"""The MCP examples as their users run them: mcp_server.py by a client, mcp_bridge.py between an editor and a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import acp, mcp
from acprt.acp import v1
from tests.mcp.scripted import ERAS, LEGACY, client_endpoint

ROOT = Path(__file__).resolve().parents[2]
SERVER = [sys.executable, str(ROOT / "examples" / "mcp_server.py")]
BRIDGE = [sys.executable, str(ROOT / "examples" / "mcp_bridge.py")]
PYTHONPATH = {"PYTHONPATH": str(ROOT)}


class TestServer:
    @pytest.mark.parametrize("era", [*ERAS, None], ids=str)
    def test_tools_are_listed_called_and_cancelled(self, run, era):
        """In either era, or in the one that client and server agree on."""
        client = client_endpoint(era)

        async def main():
            async with client.connect(acprt.AgentProcess(*SERVER, env=PYTHONPATH)) as cx:
                assert (await mcp.negotiate(cx)).info == mcp.Implementation(name="counter", version="0.1.0")
                tools = await cx.send_request(mcp.ListToolsRequest()).block_task()
                assert [tool.name for tool in tools.tools] == ["count", "ask"]
                steps: list[float] = []
                request = mcp.CallToolRequest(name="count", arguments={"to": 3})
                result = await mcp.call(cx, request, on_progress=lambda note: steps.append(note.progress))
                assert (result.content, steps) == ([mcp.text_content("counted to 3")], [1, 2, 3])
                endless = mcp.CallToolRequest(name="count", arguments={"to": 10**9})
                begun = asyncio.Event()
                call = asyncio.create_task(mcp.call(cx, endless, on_progress=lambda note: begun.set()))
                await begun.wait()
                call.cancel()
                await mcp.call(cx, request)
                assert cx.status().counters.late_responses == 0

        run(main())

    def test_question_is_put_to_a_legacy_client(self, run):
        client = client_endpoint(LEGACY, capabilities={"elicitation": {}})

        @client.method("elicitation/create")
        async def elicit(params: Any) -> dict[str, Any]:
            return {"action": "accept", "content": {}}

        async def main():
            async with client.connect(acprt.AgentProcess(*SERVER, "--legacy", env=PYTHONPATH)) as cx:
                await mcp.negotiate(cx)
                result = await mcp.call(cx, mcp.CallToolRequest(name="ask"))
                assert result.content == [mcp.text_content("all is well")]

        run(main())


class Editor:
    """An ACP client of the bridge."""

    def __init__(self) -> None:
        self.client = acp.Client("editor", version="0")
        self.answers: list[Any] = []
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.client.method(v1.RequestPermissionRequest)(self.permission)

    async def permission(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        self.asked.set()
        if self.answers:
            return acp.select_option(request, self.answers.pop(0))
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError("nobody answers")

    @asynccontextmanager
    async def session(self, *options: str) -> AsyncIterator[acp.Session]:
        process = acprt.AgentProcess(*BRIDGE, *SERVER, *options, env=PYTHONPATH)
        async with self.client.connect(process) as cx:
            await acp.initialize(cx)
            async with acp.session(cx, cwd=str(ROOT)) as session:
                yield session


class TestBridge:
    def test_tools_are_offered_as_turns(self, run):
        """Listed, called with progress told as updates of the tool call, and failing as a failed one."""

        async def main():
            async with Editor().session() as session:
                assert "count: Counts, slowly." in await session.prompt("tools").text()
                told: list[str] = []
                async for update in session.prompt('count {"to": 2}'):
                    match update:
                        case v1.ToolCallUpdate(content=[v1.Content(content=v1.TextContent(text=text))]):
                            told.append(text)
                assert told == ["1 of 2", "2 of 2"]
                assert await session.prompt("nothing").text() == "nothing failed"

        run(main(), timeout=40)

    def test_cancelled_turn_cancels_the_call(self, run):
        """MCP answers nothing to it, ACP ends the turn as cancelled; both go on."""

        async def main():
            async with Editor().session() as session:
                async with session.prompt('count {"to": 1000000000}') as turn:
                    async for update in turn:
                        if isinstance(update, v1.ToolCallUpdate) and update.content:
                            break
                assert session.stop_reason == "cancelled"
                assert await session.prompt('count {"to": 1}').text() == "counted to 1"

        run(main(), timeout=40)

    def test_question_of_the_server_is_one_to_the_user(self, run):
        """And a cancelled question is withdrawn: the editor's handler ends, the turn does not."""

        async def main():
            editor = Editor()
            editor.answers = ["yes", "no"]
            async with editor.session("--legacy") as session:
                assert (await session.prompt("ask").text()).endswith("all is well")
                assert (await session.prompt("ask").text()).endswith("all is not well")
                assert (await session.prompt('ask {"seconds": 0.05}').text()).endswith("nobody said anything")
                await editor.cancelled.wait()
                assert session.stop_reason == "end_turn"
                assert await session.prompt('count {"to": 1}').text() == "counted to 1"

        run(main(), timeout=40)

    def test_cancelled_turn_withdraws_a_question_in_the_midst_of_it(self, run):
        """The whole way: turn, call, question, and back."""

        async def main():
            editor = Editor()
            async with editor.session("--legacy") as session:
                async with session.prompt("ask") as turn:
                    async for _update in turn:
                        if editor.asked.is_set():
                            break
                        if isinstance(_update, v1.AgentMessageChunk):
                            await editor.asked.wait()
                            break
                await editor.cancelled.wait()
                assert session.stop_reason == "cancelled"
                assert await session.prompt('count {"to": 1}').text() == "counted to 1"

        run(main(), timeout=40)


def test_bridge_to_a_server_that_does_not_start_says_so_and_lives_on(run):
    """What became of the server's connection is nothing that the editor could take for its own."""

    async def main():
        command = [*BRIDGE, sys.executable, "-c", "import sys; sys.exit('no such model')"]
        async with acp.Client("editor", version="0").connect(acprt.AgentProcess(*command, env=PYTHONPATH)) as cx:
            await acp.initialize(cx)
            for _ in range(2):
                with pytest.raises(acprt.RpcError, match=r"(?s)the MCP server cannot be used.*no such model") as caught:
                    await cx.send_request(v1.NewSessionRequest(cwd=str(ROOT), mcp_servers=[])).block_task()
                assert not acprt.is_incoming_transport_closed(caught.value)

    run(main())
