"""Whole turns with programs of other projects: drives their agents, and lets their clients drive ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
from acprt import acp
from acprt.acp import v1

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).parent / "peers"
SECONDS = 60.0  # for one answer: real agents start slowly


def ours(program: Path) -> list[str]:
    """The command of a program on acprt. Clients do not hand down their environment."""
    return ["/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, str(program)]


WORDS_AGENT = ours(PEERS / "acprt_agent.py")
STOP_REASONS = {"stop_reason": "end_turn", "asked_stop_reason": "end_turn", "cancelled_stop_reason": "cancelled"}
"""How the three turns of `check_client` end, where the client tells."""
WORDS_AGENT_V2 = ours(PEERS / "acprt_agent_v2.py")


class Seen:
    """What the agent asked its client for."""

    def __init__(self) -> None:
        self.permissions: list[v1.RequestPermissionRequest] = []
        self.files: list[str] = []


def client_for(seen: Seen) -> acp.Client:
    """A client that gives every permission and lets the agent read and write files."""
    client = acp.Client("interop", version="1.0.0")

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        seen.permissions.append(request)
        return acp.allow_first(request)

    @client.method
    async def read(request: v1.ReadTextFileRequest) -> v1.ReadTextFileResponse:
        path = Path(request.path)
        if not path.exists():  # agents look before they write
            raise acprt.RpcError.resource_not_found(request.path)
        return v1.ReadTextFileResponse(content=path.read_text(encoding="utf-8"))

    @client.method
    async def write(request: v1.WriteTextFileRequest) -> v1.WriteTextFileResponse:
        seen.files.append(request.path)
        Path(request.path).write_text(request.content, encoding="utf-8")
        return v1.WriteTextFileResponse()

    return client


class Turns:
    """One session of an agent."""

    def __init__(self, cx: acprt.Connection, session: acp.Session) -> None:
        self.cx = cx
        self.session = session
        self.cancelled_at = 0.0
        """When the last turn was cancelled, by `time.monotonic()`."""

    async def prompt(self, text: str) -> tuple[list[str], str | None]:
        """The texts of a whole turn, and why it stopped."""
        turn = self.session.prompt(text)
        return [each async for each in texts_in(turn)], turn.stop_reason

    async def cancelled_prompt(self, text: str) -> tuple[list[str], str | None]:
        """The same, with a `session/cancel` at the first text."""
        turn = self.session.prompt(text)
        texts = []
        async for each in texts_in(turn):
            texts.append(each)
            if len(texts) == 1:
                turn.cancel()
                self.cancelled_at = time.monotonic()
        return texts, turn.stop_reason


def exit_status(cx: acprt.Connection) -> int | None:
    """How the child of a closed connection ended; negative: by that signal."""
    child = cx.status().child
    assert child is not None
    return child.exit_status


async def texts_in(turn: acp.Turn) -> AsyncIterator[str]:
    """What the agent says, chunk by chunk."""
    async for update in turn:
        match update:
            case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                yield text


@asynccontextmanager
async def session_with(
    agent: acprt.Transport | acprt.Endpoint, cwd: str = "/", mode: str | None = None
) -> AsyncIterator[tuple[Turns, Seen]]:
    """From `initialize` to a session, in the given mode; at the end the agent is ended."""
    seen = Seen()
    async with client_for(seen).connect(agent) as cx:
        await acp.initialize(cx)
        assert cx.peer.version == 1
        async with acp.session(cx, cwd=cwd) as session:
            if mode is not None:
                await session.set_mode(mode)
            yield Turns(cx, session), seen


def check_client(command: list[str], agent: list[str] = WORDS_AGENT, **environment: str) -> dict[str, Any]:
    """Let a client of another project spawn our agent for three turns; it prints what it saw as one JSON object.

    What every client sees is checked here; what only this one tells is returned.
    """
    done = subprocess.run(
        [*command, *agent], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen.pop("texts") == ["one", "two", "three"]
    assert seen.pop("asked_texts") == ["yes"]
    assert seen.pop("cancelled_texts") == ["WAIT"]
    assert seen.pop("exit_status") == 0
    return seen
