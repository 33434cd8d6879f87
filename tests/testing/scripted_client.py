"""A client for testy: it answers whatever testy asks, at once, and remembers what it was asked and told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import acprt
from acprt import acp
from acprt.acp import v1
from acprt.testing import testy
from tests.programs import python_code


class ScriptedClient:
    """Offers what its arguments say. `asked` are methods in order, `updates` what the sessions told."""

    def __init__(
        self,
        *,
        files: bool = True,
        terminals: bool = True,
        forms: bool = True,
        links: bool = True,
        capabilities: v1.ClientCapabilities | None = None,
    ) -> None:
        self.asked: list[str] = []
        self.updates: list[v1.SessionUpdate] = []
        self.elicited: list[v1.CreateElicitationRequest] = []
        self.completed: list[str] = []
        self.created: list[str] = []
        self.released: list[str] = []
        self.role = acp.Client("scripted", capabilities=capabilities)
        self.role.method(self._permission)
        self.role.on_receive_notification(self._update)
        if files:
            self.role.method(self._write)
            self.role.method(self._read)
        if terminals:
            self.role.method(self._create)
            self.role.method(self._output)
            self.role.method(self._exit)
            self.role.method(self._kill)
            self.role.method(self._release)
        if forms:
            self.role.method(self._elicit)
        if links:
            self.role.on_receive_notification(self._complete)

    def of_kind(self, kind: type) -> list:
        """The updates of one kind."""
        return [update for update in self.updates if isinstance(update, kind)]

    @property
    def kinds(self) -> list[str]:
        """What kinds of update came, in order."""
        return [update.tag if isinstance(update, v1.Unknown) else update.session_update for update in self.updates]

    @property
    def said(self) -> str:
        """The text of the last piece of a message: what a command came to."""
        content = self.of_kind(v1.AgentMessageChunk)[-1].content
        assert isinstance(content, v1.TextContent)
        return content.text

    @property
    def report(self) -> list[str]:
        return self.said.split("\n")

    async def _permission(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        self.asked.append(request.method)
        return acp.allow_first(request)

    async def _update(self, note: v1.SessionNotification) -> None:
        self.updates.append(note.update)

    async def _write(self, request: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
        self.asked.append(request.method)
        return v1.WriteTextFileResponse()

    async def _read(self, request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        self.asked.append(request.method)
        return v1.ReadTextFileResponse(content=f"{request.line}+{request.limit}")

    async def _create(self, request: v1.CreateTerminalRequest) -> v1.CreateTerminalResponse:
        self.asked.append(request.method)
        self.created.append(f"t{len(self.created)}")
        return v1.CreateTerminalResponse(terminal_id=self.created[-1])

    async def _output(self, request: v1.TerminalOutputRequest) -> v1.TerminalOutputResponse:
        self.asked.append(request.method)
        return v1.TerminalOutputResponse(output="testy", truncated=False)

    async def _exit(self, request: v1.WaitForTerminalExitRequest) -> v1.WaitForTerminalExitResponse:
        self.asked.append(request.method)
        return v1.WaitForTerminalExitResponse(exit_code=0)

    async def _kill(self, request: v1.KillTerminalRequest) -> v1.KillTerminalResponse:
        self.asked.append(request.method)
        return v1.KillTerminalResponse()

    async def _release(self, request: v1.ReleaseTerminalRequest) -> v1.ReleaseTerminalResponse:
        self.asked.append(request.method)
        self.released.append(request.terminal_id)
        return v1.ReleaseTerminalResponse()

    async def _elicit(self, request: v1.CreateElicitationRequest) -> v1.CreateElicitationResponse:
        self.asked.append(request.method)
        self.elicited.append(request)
        action = request.message.split()[1]  # it is told what to do
        filled = request.requested_schema is not None and action == "accept"
        return v1.CreateElicitationResponse(action=action, content={"name": "Ada", "age": 36} if filled else None)

    async def _complete(self, note: v1.CompleteElicitationNotification) -> None:
        self.completed.append(note.elicitation_id)


@asynccontextmanager
async def connected(client: ScriptedClient, agent: acprt.Endpoint | None = None) -> AsyncIterator[acprt.Connection]:
    """The client, joined with a testy of its own and past the handshake."""
    async with client.role.connect(agent or testy.agent_v1()) as cx:
        await acp.initialize(cx)
        yield cx


async def opened(cx: acprt.Connection, cwd: str = "/", servers: list[v1.McpServer] | None = None) -> str:
    """The id of a new session."""
    request = v1.NewSessionRequest(cwd=cwd, mcp_servers=servers or [])
    return (await cx.send_request(request).block_task()).session_id


async def prompted(cx: acprt.Connection, session_id: str, *texts: str) -> str:
    """Prompt with these text blocks; the stop reason."""
    blocks: list[v1.ContentBlock] = [v1.TextContent(text=text) for text in texts]
    return (await cx.send_request(v1.PromptRequest(session_id=session_id, prompt=blocks)).block_task()).stop_reason


def program() -> list[str]:
    """The command `python -m acprt.testing.testy`, strictly."""
    return python_code("import runpy\nrunpy.run_module('acprt.testing.testy', run_name='__main__', alter_sys=True)")
