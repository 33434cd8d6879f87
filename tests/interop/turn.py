"""Whole turns with programs of other projects: drives their agents, untyped, and lets their clients drive ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt

ROOT = Path(__file__).resolve().parents[2]
ECHO_AGENT = ["/usr/bin/env", f"PYTHONPATH={ROOT}", sys.executable, str(ROOT / "examples" / "echo_agent.py")]
"""Clients do not hand down their environment."""

SECONDS = 30.0  # for one answer: real agents start slowly


class Seen:
    """What the agent sent, in the order of the wire, and whoever waits for the first of it."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.permissions: list[Any] = []
        self.on_text: Any = None  # called once, at the next text

    def text(self, text: str) -> None:
        self.texts.append(text)
        on_text, self.on_text = self.on_text, None
        if on_text is not None:
            on_text()


class Turns:
    """One session of an agent."""

    def __init__(self, cx: acprt.Connection, session_id: str, seen: Seen) -> None:
        self.cx = cx
        self.session_id = session_id
        self._seen = seen

    async def prompt(self, text: str) -> tuple[list[str], str]:
        """The texts of a whole turn, and why it stopped."""
        return await self._turn(text)

    async def cancelled_prompt(self, text: str) -> tuple[list[str], str]:
        """The same, with a `session/cancel` at the first text."""
        self._seen.on_text = lambda: self.cx.send_notification("session/cancel", {"sessionId": self.session_id})
        return await self._turn(text)

    def send_prompt(self, text: str) -> acprt.SentRequest[Any]:
        """Only the request."""
        params = {"sessionId": self.session_id, "prompt": [{"type": "text", "text": text}]}
        return self.cx.send_request("session/prompt", params)

    async def _turn(self, text: str) -> tuple[list[str], str]:
        self._seen.texts = []
        answer = await self.send_prompt(text).block_task(timeout=SECONDS)
        return self._seen.texts, answer["stopReason"]


@asynccontextmanager
async def session_with(agent: acprt.Transport | acprt.Endpoint, cwd: str = "/") -> AsyncIterator[tuple[Turns, Seen]]:
    """`initialize` and `session/new`; permission is given by the first option whose kind allows."""
    seen = Seen()
    client = acprt.Endpoint("interop")

    @client.on_receive_notification("session/update")
    async def update(params: Any) -> None:
        if params["update"]["sessionUpdate"] == "agent_message_chunk":
            seen.text(params["update"]["content"]["text"])

    @client.method("session/request_permission")
    async def permission(params: Any) -> Any:
        seen.permissions.append(params)
        chosen = next(option for option in params["options"] if option["kind"].startswith("allow"))
        return {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}

    async with client.connect(agent) as cx:
        hello = {"protocolVersion": 1, "clientCapabilities": {}}
        initialized = await cx.send_request("initialize", hello).block_task(timeout=SECONDS)
        assert initialized["protocolVersion"] == 1
        session = await cx.send_request("session/new", {"cwd": cwd, "mcpServers": []}).block_task(timeout=SECONDS)
        yield Turns(cx, session["sessionId"], seen), seen


def check_client(command: list[str], **options: Any) -> dict[str, Any]:
    """Let a client of another project spawn the echo agent; it prints what it saw. What only this client has seen."""
    done = subprocess.run([*command, *ECHO_AGENT], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen.pop("version") == 1
    assert seen.pop("texts") == ["one ", "two ", "three"]
    assert seen.pop("stop_reason") == "end_turn"
    assert seen.pop("cancelled_texts") < 100
    assert seen.pop("cancelled_stop_reason") == "cancelled"
    assert seen.pop("exit_status") == 0
    return seen
