"""testy and the MCP servers of its sessions: it lists and calls their tools, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from acprt.acp import v1
from acprt.testing import testy
from tests.programs import python_file
from tests.testing.scripted_client import ScriptedClient, connected, opened, prompted

ROOT = Path(__file__).resolve().parents[2]


def stdio_server(**variables: str) -> v1.McpServerStdio:
    program, *arguments = python_file(Path(__file__).with_name("mcp_server.py"))
    variables = {"GREETING": "Hello", "PYTHONPATH": str(ROOT), **variables}
    env = [v1.EnvVariable(name=name, value=value) for name, value in variables.items()]
    return v1.McpServerStdio(name="tools", command=program, args=arguments, env=env)


def answers(run, server: v1.McpServer, *commands: testy.Command) -> list[str]:
    """What testy says to each command, in a session with that server."""

    async def main() -> list[str]:
        client, said = ScriptedClient(), []
        async with connected(client) as cx:
            session_id = await opened(cx, servers=[server])
            for command in commands:
                assert await prompted(cx, session_id, testy.prompt_of(command)) == "end_turn"
                said.append(client.said)
        return said

    return run(main())


class TestStdio:
    def test_tools_of_every_page_are_listed(self, run) -> None:
        """With their descriptions, where they have one."""
        (said,) = answers(run, stdio_server(), testy.ListTools("tools"))
        assert said == "Available tools:\n  - greet: Greets\n  - hang: No description"

    def test_tool_is_called_with_params(self, run) -> None:
        """In the environment that the client asked for; params that are no object count as none."""
        said = answers(
            run,
            stdio_server(GREETING="Salut"),
            testy.CallTool("tools", "greet", {"name": "Ada"}),
            testy.CallTool("tools", "greet", [1]),
        )
        assert "Salut, Ada!" in said[0]
        assert "Salut, nobody!" in said[1]
        assert all(text.startswith("OK: {") for text in said)

    @pytest.mark.parametrize(
        ("server", "command", "why"),
        [
            (stdio_server(), testy.ListTools("others"), "'others' not found"),
            (stdio_server(), testy.CallTool("tools", "fly"), "no tool fly"),
            (
                v1.McpServerStdio(name="tools", command="/no/such", args=[], env=[]),
                testy.ListTools("tools"),
                "/no/such",
            ),
            (v1.McpServerSse(name="tools", url="http://h", headers=[]), testy.ListTools("tools"), "SSE MCP servers"),
            (v1.McpServerHttp(name="tools", url="ftp://h", headers=[]), testy.ListTools("tools"), "no http URL"),
            (v1.McpServerStdio(name="tools", command="false", args=[], env=[]), testy.ListTools("tools"), "transport"),
        ],
    )
    def test_what_goes_wrong_is_said(self, run, server: v1.McpServer, command: testy.Command, why: str) -> None:
        """It is no error of the prompt."""
        (said,) = answers(run, server, command)
        assert said.startswith("ERROR: ")
        assert why in said

    @pytest.mark.parametrize("end", ["session/cancel", "session/close"])
    def test_call_under_way_ends_with_the_session(self, run, tmp_path: Path, end: str) -> None:
        """A tool that hangs is left, and its server ended."""
        told = tmp_path / "told"
        os.mkfifo(told)

        async def main() -> str:
            async with connected(ScriptedClient()) as cx:
                session_id = await opened(cx, servers=[stdio_server(TOLD=str(told))])
                prompt = testy.prompt_of(testy.CallTool("tools", "hang"))
                turn = asyncio.create_task(prompted(cx, session_id, prompt))
                assert await asyncio.to_thread(told.read_text) == "hanging\n"
                if end == "session/cancel":
                    cx.send_notification(v1.CancelNotification(session_id=session_id))
                else:
                    await cx.send_request(v1.CloseSessionRequest(session_id=session_id)).block_task()
                return await turn

        assert run(main()) == "cancelled"


Reply = Callable[[dict[str, Any]], bytes]


class HttpTools:
    """An MCP server over HTTP, written by hand. It answers as `reply` does and keeps the heads it was sent."""

    def __init__(self, reply: Reply) -> None:
        self.heads: list[str] = []
        self._reply = reply

    @asynccontextmanager
    async def served(self, *headers: v1.HttpHeader) -> AsyncIterator[v1.McpServerHttp]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = listener.sockets[0].getsockname()
        async with listener:
            yield v1.McpServerHttp(name="tools", url=f"http://{host}:{port}/mcp?x=1", headers=list(headers))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        size = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("Content-Length"))
        body = await reader.readexactly(size)
        writer.write(self._reply(json.loads(body)) if body else b"HTTP/1.1 405 Method Not Allowed\r\n\r\n")
        await writer.drain()
        writer.close()


def result_of(message: dict[str, Any]) -> bytes | None:
    """The response to a message; None for a notification."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "tools", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "greet", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "Hello"}]},
    }
    if "id" not in message:
        return None
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}).encode()


def as_json(message: dict[str, Any]) -> bytes:
    body = result_of(message)
    if body is None:
        return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Mcp-Session-Id: s-1\r\n\r\n" + body


def as_events(message: dict[str, Any]) -> bytes:
    """A stream in small chunks: a comment, a notification, and the response."""
    body = result_of(message)
    if body is None:
        return b"HTTP/1.1 202 Accepted\r\n\r\n"
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
    stream = b": hello\r\n\r\nevent: message\r\ndata: " + note + b"\r\n\r\nid: 7\r\ndata: " + body + b"\r\n\r\n"
    chunks = [stream[at : at + 7] for at in range(0, len(stream), 7)]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def as_bare_body(message: dict[str, Any]) -> bytes:
    """No length: the end of the connection is the end of the body."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + (result_of(message) or b"")


class TestHttp:
    @staticmethod
    def talk(run, tools: HttpTools, *headers: v1.HttpHeader) -> list[str]:
        async def main() -> list[str]:
            client, said = ScriptedClient(), []
            async with tools.served(*headers) as server, connected(client) as cx:
                session_id = await opened(cx, servers=[server])
                for command in (testy.ListTools("tools"), testy.CallTool("tools", "greet")):
                    await prompted(cx, session_id, testy.prompt_of(command))
                    said.append(client.said)
            return said

        return run(main())

    @pytest.mark.parametrize("reply", [as_json, as_events, as_bare_body])
    def test_tools_are_listed_and_called(self, run, reply: Reply) -> None:
        """Whether the server answers with JSON or with a stream of events."""
        listed, called = self.talk(run, HttpTools(reply))
        assert listed == "Available tools:\n  - greet: No description"
        assert called == 'OK: {"content":[{"type":"text","text":"Hello"}]}'

    def test_headers_go_with_every_message(self, run) -> None:
        """Those that the client configured, the session's id and the version that was agreed on."""
        tools = HttpTools(as_json)
        self.talk(run, tools, v1.HttpHeader(name="Authorization", value="Bearer tok:en"))
        assert all("\r\nAuthorization: Bearer tok:en\r\n" in head for head in tools.heads)
        opening, *rest = tools.heads[:4]
        assert opening.startswith("POST /mcp?x=1 HTTP/1.1\r\n")
        assert "Mcp-Session-Id" not in opening
        assert all("Mcp-Session-Id: s-1\r\nMCP-Protocol-Version: 2025-06-18" in head for head in rest)
        assert rest[-1].startswith("DELETE ")

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "status 401"),
            (b"SSH-2.0\r\n\r\n", "no HTTP answer"),
            (b"", "bytes read"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "at most"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "no response"),
            (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: x\r\n\r\n", "no response"),
        ],
    )
    def test_what_is_no_answer_is_said(self, run, answer: bytes, why: str) -> None:
        """It is no error of the prompt."""
        for said in self.talk(run, HttpTools(lambda message: answer)):
            assert said.startswith("ERROR: ")
            assert why in said

    def test_header_with_a_line_break_is_not_sent(self, run) -> None:
        """It would be two."""
        tools = HttpTools(as_json)
        listed, _ = self.talk(run, tools, v1.HttpHeader(name="X", value="a\r\nY: b"))
        assert listed.startswith("ERROR: ")
        assert tools.heads == []
