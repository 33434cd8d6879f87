"""An agent that says back what it is told, a word at a time: the Agent Client Protocol in messages of its own.

Drive it with `python examples/raw_prompt.py "python examples/echo_agent.py" "hello"`, or name it in an editor's
settings. The messages below have only the members that an echo needs; everything else a client sends is ignored.
"""

import asyncio
import itertools
import re
from typing import Any

import msgspec

import acprt

WORD_PAUSE_SECONDS = 0.02  # so that streaming can be seen, and a long answer be cancelled


class Text(msgspec.Struct):
    """A content block; one that is no text counts as an empty one."""

    type: str = "text"
    text: str = ""


class Initialized(msgspec.Struct, rename="camel"):
    protocol_version: int
    agent_info: dict[str, str]
    agent_capabilities: dict[str, Any]
    auth_methods: list[Any]


class Initialize(acprt.Request[Initialized], method="initialize"):
    pass


class Session(msgspec.Struct, rename="camel"):
    session_id: str


class NewSession(acprt.Request[Session], method="session/new"):
    pass


class Stopped(msgspec.Struct, rename="camel"):
    stop_reason: str


class Prompt(acprt.Request[Stopped], method="session/prompt"):
    session_id: str
    prompt: list[Text]


class Cancel(acprt.Notification, method="session/cancel"):
    session_id: str


class MessageChunk(msgspec.Struct, rename="camel", tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: Text


class SessionUpdate(acprt.Notification, method="session/update", omit_defaults=False):
    session_id: str
    update: MessageChunk


agent = acprt.Endpoint("echo")
running: dict[str, set[asyncio.Event]] = {}  # session id → for each prompt that is being answered: set to cancel it
numbers = itertools.count(1)


@agent.method
async def initialize(_request: Initialize) -> Initialized:
    # The version this agent speaks, whichever was asked for: a client that does not speak it hangs up.
    info = {"name": "acprt-echo", "title": "Echo", "version": acprt.__version__}
    return Initialized(protocol_version=1, agent_info=info, agent_capabilities={}, auth_methods=[])


@agent.method
async def new_session(_request: NewSession) -> Session:
    session_id = f"echo-{next(numbers)}"
    running[session_id] = set()
    return Session(session_id=session_id)


@agent.method
async def prompt(request: Prompt, cx: acprt.Connection) -> Stopped:
    if request.session_id not in running:
        raise acprt.RpcError.resource_not_found(request.session_id)
    prompts, cancelled = running[request.session_id], asyncio.Event()
    prompts.add(cancelled)
    try:
        for word in words_of(request.prompt):
            if await happens(cancelled, within=WORD_PAUSE_SECONDS):
                return Stopped(stop_reason="cancelled")
            cx.send_notification(SessionUpdate(session_id=request.session_id, update=MessageChunk(Text(text=word))))
            await cx.drain()  # a client that reads slowly is waited for
        return Stopped(stop_reason="end_turn")
    finally:
        prompts.discard(cancelled)


@agent.on_receive_notification  # in wire order: the prompt it is about has begun when this runs
async def cancel(note: Cancel, _cx: acprt.Connection) -> None:
    for cancelled in running.get(note.session_id, ()):
        cancelled.set()


def words_of(blocks: list[Text]) -> list[str]:
    """Words with the space around them, so that together they are the text again."""
    return [word for block in blocks for word in re.findall(r"\s*\S+\s*", block.text) or filter(None, [block.text])]


async def happens(event: asyncio.Event, *, within: float) -> bool:
    """Whether `event` is set now or in the next seconds."""
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False


if __name__ == "__main__":
    acprt.run(agent)
