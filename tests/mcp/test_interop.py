"""acprt against MCP clients and servers of other projects, over real pipes, in both roles and both eras.

What each of them does with a cancel is asserted as it is, oddities included; docs/mcp.md names the differences.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.arrivals import Arrivals
from tests.mcp.scripted import LEGACY, MODERN

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).with_name("peers")
INSTALLED = Path(os.environ.get("ACPRT_PEERS") or ROOT / ".peers").absolute()
INFO = mcp.Implementation(name="acprt-client", version="0")
EVERYTHING = "@modelcontextprotocol/server-everything"


@pytest.fixture
def python() -> str:
    """A Python that has the PyPI package `mcp`."""
    program = INSTALLED / "mcp-python" / "bin" / "python"
    if not program.exists():
        pytest.skip("the PyPI package mcp is not installed: make interop")
    return str(program)


@pytest.fixture
def modules() -> Path:
    """node_modules with the packages of the MCP project."""
    found = INSTALLED / "mcp-node" / "node_modules"
    if shutil.which("node") is None or not found.exists():
        pytest.skip("Node.js, or @modelcontextprotocol/client, is not installed: make interop")
    return found


async def finished(command: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Run a client that drives a server of ours: what it reports, and what the server said on stderr."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    out, err = await asyncio.wait_for(process.communicate(), 50)
    assert process.returncode == 0, err.decode()
    return json.loads(out.splitlines()[-1]), err.decode().splitlines()


OUR_SERVER = [sys.executable, str(PEERS / "acprt_server.py")]
TOOLS = ["quick", "slow", "touch", "end"]


@pytest.mark.interop
class TestPythonClient:
    """The PyPI package `mcp` as the client of an acprt server."""

    @pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
    def test_whole_run(self, run, python, mode, version):
        """Open, list, call with progress, cancel and time out in mid-call, listen, and end a subscription."""
        command = [python, str(PEERS / "python_client.py"), mode, str(ROOT), *OUR_SERVER]
        seen, said = run(finished(command), timeout=60)
        expected: dict[str, Any] = {
            "version": version,
            "server": "acprt-server",
            "tools": TOOLS,
            "slow": "done",
            "progress": [1, 2, 3],
            "cancelled": True,
            "timeout": "MCPError",
            "quick": "got x",
        }
        if mode == "auto":
            expected |= {"touch": "touched 1", "event": "ToolsListChanged", "ended": []}
        assert seen == expected
        assert said[:7] == [
            *("slow began", "slow began", "slow saw CancelledError", "cancel with reason 'caller cancelled'"),
            *("slow began", "slow saw CancelledError", "cancel with reason 'timed out after 0.3s'"),
        ]


@pytest.mark.node
class TestNodeClient:
    """The npm package `@modelcontextprotocol/client` as the client of an acprt server."""

    @pytest.mark.parametrize("mode", ["legacy", "modern"])
    def test_whole_run(self, run, modules, mode):
        """The same. Progress that comes in one chunk with the result is lost there."""
        command = ["node", str(PEERS / "node_client.mjs"), str(modules), mode, *OUR_SERVER]
        seen, said = run(finished(command), timeout=60)
        progress = seen.pop("progress")
        assert progress == [1, 2, 3][: len(progress)]
        expected: dict[str, Any] = {
            "server": "acprt-server",
            "tools": TOOLS,
            "slow": "done",
            "aborted": "user pressed esc",
            "timeout": "Request timed out",
            "quick": "got x",
        }
        if mode == "modern":
            expected |= {"touch": "touched 1", "gone": "touched 0", "ended": "graceful"}
        assert seen == expected
        assert said[:7] == [
            *("slow began", "slow began", "slow saw CancelledError", "cancel with reason 'user pressed esc'"),
            *("slow began", "slow saw CancelledError", "cancel with reason 'SdkError: Request timed out'"),
        ]


class Server:
    """A server of another project as the child of an acprt client, and what it said on stderr."""

    def __init__(self, command: list[str], era: mcp.ProtocolEra | None) -> None:
        options: dict[str, Any] = {"info": INFO, "capabilities": {"sampling": {}} if era is LEGACY else {}}
        dialect = mcp.negotiated("client", **options) if era is None else mcp.dialect(era, "client", **options)
        self.client = acprt.Endpoint("client", dialect=dialect)
        self.said: Arrivals[str] = Arrivals()
        self.notes: Arrivals[Any] = Arrivals()
        self.asked: list[Any] = []
        self.transport = acprt.AgentProcess(*command, on_stderr=self.said.append)
        self.client.on_receive_dispatch(self._heard)

    async def _heard(self, dispatch: acprt.Dispatch[Any], cx: acprt.Connection) -> acprt.Handled | None:
        if dispatch.method.startswith("notifications/"):
            self.notes.append((dispatch.method, dispatch.params))
        return acprt.Handled.no(dispatch)

    async def says(self, text: str) -> None:
        await self.said.first(lambda line: text in line)


async def called(cx: acprt.Connection, name: str, **arguments: Any) -> Any:
    result = await mcp.call(cx, mcp.CallToolRequest(name=name, arguments=arguments))
    return result.content[0]["text"]


async def whole_run(server: Server, era: mcp.ProtocolEra, cancelled: str) -> None:
    """Open, list, call with progress, cancel in mid-call; the server serves on, and ends with its input."""
    async with server.client.connect(server.transport) as cx:
        peer = await mcp.negotiate(cx)
        assert peer.era is era
        assert peer.info is not None
        tools = (await cx.send_request(mcp.ListToolsRequest()).block_task()).tools
        assert {"quick", "slow", "touch"} <= {tool.name for tool in tools}
        steps: list[float] = []
        slow = mcp.CallToolRequest(name="slow", arguments={"steps": 3, "seconds": 0.09})
        result = await mcp.call(cx, slow, on_progress=lambda note: steps.append(note.progress))
        assert result.content[0]["text"] == "done"
        assert steps == [1, 2, 3]

        server.said.clear()
        slow = mcp.CallToolRequest(name="slow", arguments={"steps": 15, "seconds": 1.5})
        sent = cx.send_request(slow)
        waiting = asyncio.create_task(sent.block_task())
        await server.says("slow began")
        sent.cancel(reason="user")
        with pytest.raises(acprt.RpcError) as caught:
            await waiting
        assert caught.value.code == -32800
        await server.says(cancelled)
        assert await called(cx, "quick", text="x") == "got x"
        counters = cx.status().counters
        assert (counters.late_responses, counters.unmatched_responses, counters.bad_lines) == (0, 0, 0)
    child = server.transport.child_status()
    assert child is not None
    assert child.exit_status == 0


async def subscriptions(server: Server, *, can_end: bool) -> None:
    """Opened, told, ended by us; opened again, ended by the server."""
    changed = "notifications/tools/list_changed"
    acknowledged = "notifications/subscriptions/acknowledged"
    wanted = mcp.SubscriptionFilter(tools_list_changed=True)

    def told(method: str) -> int:
        return sum(note[0] == method for note in server.notes)

    async def until_told(method: str, times: int) -> None:
        await server.notes.until(lambda: told(method) >= times)

    async with server.client.connect(server.transport) as cx:
        await mcp.negotiate(cx)
        listen = cx.send_request(mcp.ListenRequest(notifications=wanted))
        await until_told(acknowledged, 1)
        await called(cx, "touch")
        await until_told(changed, 1)
        listen.cancel()
        assert (await listen.block_task()).closed_by == "client"
        await called(cx, "touch")
        await called(cx, "quick", text="x")
        assert told(changed) == 1
        if can_end:
            listen = cx.send_request(mcp.ListenRequest(notifications=wanted))
            await until_told(acknowledged, 2)
            await called(cx, "end")
            closed = await listen.block_task()
            assert closed.closed_by == "server"
            assert closed.result is not None
            assert closed.result["resultType"] == "complete"


@pytest.mark.interop
class TestPythonServer:
    """The PyPI package `mcp` as the server of an acprt client."""

    @staticmethod
    def server(python: str, era: mcp.ProtocolEra | None) -> Server:
        return Server([python, str(PEERS / "python_server.py")], era)

    @pytest.mark.parametrize("era", [LEGACY, MODERN, None], ids=str)
    def test_whole_run(self, run, python, era):
        cancelled = "slow saw CancelledError"
        run(whole_run(self.server(python, era), era or MODERN, cancelled), timeout=60)

    def test_subscriptions(self, run, python):
        run(subscriptions(self.server(python, None), can_end=True), timeout=60)

    def test_nested_request_is_cancelled_with_its_call(self, run, python):
        """It cancels what its handler asked of us; our handler ends, and nothing is answered."""
        server = self.server(python, LEGACY)
        ended = asyncio.Event()
        asked = asyncio.Event()

        @server.client.method("sampling/createMessage")
        async def sample(params: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def main():
            async with server.client.connect(server.transport) as cx:
                await mcp.negotiate(cx)
                sent = cx.send_request(mcp.CallToolRequest(name="ask", arguments={}))
                async with asyncio.timeout(20):
                    await asked.wait()
                    sent.cancel()
                    sent.detach()
                    await ended.wait()
                await server.says("ask saw")
                assert await called(cx, "quick", text="x") == "got x"

        run(main(), timeout=60)

    def test_end_with_a_call_and_a_subscription_in_flight(self, run, python):
        """It answers both with an error, to a peer that may have gone; the process ends by itself."""
        server = self.server(python, MODERN)

        async def main():
            async with server.client.connect(server.transport) as cx:
                await mcp.negotiate(cx)
                wanted = mcp.SubscriptionFilter(tools_list_changed=True)
                cx.send_request(mcp.ListenRequest(notifications=wanted)).detach()
                slow = mcp.CallToolRequest(name="slow", arguments={"steps": 3, "seconds": 30})
                cx.send_request(slow).detach()
                await server.says("slow began")
            child = server.transport.child_status()
            assert child is not None
            assert child.exit_status == 0

        run(main(), timeout=60)


@pytest.mark.node
class TestNodeServer:
    """The npm package `@modelcontextprotocol/server` as the server of an acprt client."""

    @staticmethod
    def server(modules: Path, era: mcp.ProtocolEra | None) -> Server:
        return Server(["node", str(PEERS / "node_server.mjs"), str(modules)], era)

    @pytest.mark.parametrize("era", [LEGACY, MODERN, None], ids=str)
    def test_whole_run(self, run, modules, era):
        """Progress after the cancel, which it goes on to send, is heard by nobody."""
        server = self.server(modules, era)
        run(whole_run(server, era or MODERN, "slow saw abort"), timeout=60)

    def test_subscriptions(self, run, modules):
        run(subscriptions(self.server(modules, None), can_end=False), timeout=60)


@pytest.mark.node
class TestServerEverything:
    """The npm package `@modelcontextprotocol/server-everything`, which speaks the legacy era only."""

    @staticmethod
    def server(modules: Path, era: mcp.ProtocolEra | None) -> Server:
        return Server(["node", str(modules / EVERYTHING / "dist" / "index.js")], era)

    @pytest.mark.parametrize("era", [LEGACY, None], ids=str)
    def test_whole_run(self, run, modules, era):
        """The probe is refused, the handshake follows on the same process. It ignores a cancel of id 0 only."""
        server = self.server(modules, era)
        name = "trigger-long-running-operation"

        async def main():
            async with server.client.connect(server.transport) as cx:
                peer = await mcp.negotiate(cx)
                assert (peer.era, peer.version) == (LEGACY, "2025-11-25")
                tools = (await cx.send_request(mcp.ListToolsRequest()).block_task()).tools
                assert name in {tool.name for tool in tools}
                steps: list[float] = []
                short = mcp.CallToolRequest(name=name, arguments={"duration": 0.3, "steps": 3})
                result = await mcp.call(cx, short, on_progress=lambda note: steps.append(note.progress))
                assert "completed" in result.content[0]["text"]
                assert steps == [1, 2, 3]

                began = asyncio.Event()
                long = mcp.CallToolRequest(name=name, arguments={"duration": 2, "steps": 20})
                call = asyncio.create_task(mcp.call(cx, long, on_progress=lambda note: began.set()))
                await began.wait()
                call.cancel()
                await asyncio.wait([call])
                server.notes.clear()
                for _ in range(4):
                    assert await called(cx, "echo", message="hi") == "Echo: hi"
                assert not [note for note in server.notes if note[0] == "notifications/progress"]
                counters = cx.status().counters
                assert (counters.late_responses, counters.unmatched_responses) == (0, 0)

        run(main(), timeout=60)

    def test_cancelled_nested_request_is_left_open_there(self, run, modules):
        """A late answer of ours is swallowed, and the process ends with its input."""
        server = self.server(modules, LEGACY)
        asked = asyncio.Event()
        answer = asyncio.Event()

        @server.client.method("sampling/createMessage")
        async def sample(params: Any) -> Any:
            asked.set()
            await answer.wait()
            return {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}

        async def main():
            async with server.client.connect(server.transport) as cx:
                await mcp.negotiate(cx)
                arguments = {"prompt": "hi", "maxTokens": 5}
                async with asyncio.timeout(30):
                    # The tool appears once the client is known to sample.
                    while True:
                        tools = (await cx.send_request(mcp.ListToolsRequest()).block_task()).tools
                        if "trigger-sampling-request" in {tool.name for tool in tools}:
                            break
                    sent = cx.send_request(mcp.CallToolRequest(name="trigger-sampling-request", arguments=arguments))
                    await asked.wait()
                    sent.cancel()
                    sent.detach()
                    assert await called(cx, "echo", message="hi") == "Echo: hi"
                    answer.set()
                    assert await called(cx, "echo", message="hi") == "Echo: hi"
                assert cx.status().counters.late_responses == 0
            child = server.transport.child_status()
            assert child is not None
            assert child.exit_status == 0

        run(main(), timeout=60)
