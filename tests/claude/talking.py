"""Both ends of a conversation with the command: a client, and the fake or a raw peer for what it talks to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acprt
from acprt import claude
from acprt.testing.fake_claude import FakeClaude, Options
from tests.rawpeer import RawPeer

ROOT = str(Path(__file__).resolve().parents[2])


def fake_process(wishes: str = "", **options: Any) -> claude.ClaudeProcess:
    """The fake as a child; `wishes` are its misbehaviour."""
    env = {"FAKE_CLAUDE": wishes, "PYTHONPATH": ROOT} | options.pop("env", {})
    return claude.ClaudeProcess(sys.executable, "-m", "acprt.testing.fake_claude", env=env, **options)


@asynccontextmanager
async def fake_client(
    options: Options | None = None, **connecting: Any
) -> AsyncIterator[tuple[claude.ClaudeClient, FakeClaude]]:
    """A client of the fake, in memory. The fake asks for permission when there is somebody to ask."""
    near, far = acprt.memory_pair(left_is_parent=True)
    options = options or Options()
    options.asks_host = options.asks_host or "can_use_tool" in connecting
    fake = FakeClaude(far, options)
    serving = asyncio.create_task(fake.run())
    try:
        async with claude.connect(near, **connecting) as cli:
            yield cli, fake
        await asyncio.wait_for(serving, 10)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


class RawCommand(RawPeer):
    """The command's side by hand: every line that the client writes is seen, every line that it reads is given."""

    def say(self, type: str, subtype: str | None = None, **members: Any) -> None:
        """A conversational frame."""
        self.send({"type": type} | ({} if subtype is None else {"subtype": subtype}) | members)

    def ask(self, id: str, subtype: str, **members: Any) -> None:
        """A control request."""
        self.send({"type": "control_request", "request_id": id, "request": {"subtype": subtype} | members})

    def cancel_ask(self, id: str) -> None:
        """The command does not wait any more."""
        self.send({"type": "control_cancel_request", "request_id": id})

    def accept(self, id: Any, payload: Any = None) -> None:
        """A success."""
        response = {"subtype": "success", "request_id": id} | ({} if payload is None else {"response": payload})
        self.send({"type": "control_response", "response": response})

    def refuse(self, id: Any, text: str, code: str | None = None) -> None:
        """An error."""
        response = {"subtype": "error", "request_id": id, "error": text} | (
            {} if code is None else {"error_code": code}
        )
        self.send({"type": "control_response", "response": response})

    def result(self, uuid: str | None = None, **members: Any) -> None:
        """The end of a turn."""
        named = {} if uuid is None else {"user_message_uuid": uuid}
        self.send({"subtype": "success", "is_error": False, "result": "ok"} | named | members | {"type": "result"})

    async def prompt(self) -> str:
        """The next line is a prompt: its uuid."""
        frame = await self.receive()
        assert frame["type"] == "user", frame
        uuid: str = frame["uuid"]
        return uuid

    async def silent(self) -> bool:
        """Whether the client has written nothing, shown by a round trip that it answers in order."""
        self.ask("silent?", "no_such_request")
        answer = await self.receive()
        return bool(answer["response"].get("request_id") == "silent?")


@asynccontextmanager
async def raw_client(**connecting: Any) -> AsyncIterator[tuple[claude.ClaudeClient, RawCommand]]:
    """A client that was not greeted, and the raw end of its pipe."""
    near, far = acprt.memory_pair(left_is_parent=True)
    peer = RawCommand(far)
    async with claude.connect(near, **({"initialize": None} | connecting)) as cli:
        yield cli, peer
        peer.close_write()
    await peer.aclose()


def kinds(messages: list[claude.Message]) -> list[str]:
    """The classes of messages, those of the lifecycle left out."""
    return [type(m).__name__ for m in messages if not isinstance(m, claude.CommandLifecycleMessage)]


def begin(peer: RawCommand, uuid: str) -> None:
    """The command takes a prompt in and begins with it."""
    peer.say("command_lifecycle", command_uuid=uuid, state="queued")
    peer.say("command_lifecycle", command_uuid=uuid, state="started")


async def read(turn: Any) -> list[claude.Message]:
    """Every message of a turn."""
    return [message async for message in turn]


async def read_until(turn: Any, happened: Callable[[], object]) -> list[claude.Message]:
    """The messages of a turn up to the one that makes `happened()` true; the rest stays to be read."""
    messages: list[claude.Message] = []
    while not happened():
        messages.append(await anext(turn))
    return messages


def texts(messages: list[claude.Message]) -> list[str]:
    """What the assistant said, block by block."""
    return [message.text for message in messages if isinstance(message, claude.AssistantMessage)]
