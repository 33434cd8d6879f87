"""An agent and its client, many sessions at once, left in every way: what each reader sees is whole and its own."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from acprt.acp.sessions.routing import SessionRoutes
from tests.acp.sessions.scripted import texts

WAYS = ("read", "break", "enter", "cancel", "expire", "text", "dawdle")


def talkative(choose: random.Random) -> acp.Agent:
    """An agent that numbers what it says, pauses, asks for permission and fails, at random."""
    agent = acp.Agent("talkative")
    numbers = itertools.count()
    at_work: set[str] = set()

    @agent.method
    async def new_session(_request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id=f"s{next(numbers)}")

    @agent.method
    async def close_session(_request: v1.CloseSessionRequest) -> v1.CloseSessionResponse:
        return v1.CloseSessionResponse()

    @agent.method
    async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
        assert request.session_id not in at_work, "one prompt at a time"
        at_work.add(request.session_id)
        try:
            say = acp.SessionUpdates(cx, request.session_id)
            block = request.prompt[0]
            assert isinstance(block, v1.TextContent)
            for number in range(choose.randrange(30)):
                say.message(f"{block.text}:{number}")
                await act(choose.random(), request.session_id, cx)
            return v1.PromptResponse(stop_reason="end_turn")
        finally:
            at_work.discard(request.session_id)

    async def act(what: float, session_id: str, cx: acprt.Connection) -> None:
        if what < 0.2:
            await asyncio.sleep(0)
        elif what < 0.23:
            option = v1.PermissionOption(option_id="y", name="Yes", kind="allow_once")
            tool_call = v1.ToolCallPatch(tool_call_id="t")
            question = v1.RequestPermissionRequest(session_id=session_id, tool_call=tool_call, options=[option])
            await cx.send_request(question).block_task()
        elif what < 0.235:
            raise acprt.RpcError(400, "no credit")

    return agent


async def converse(cx: acprt.Connection, name: str, choose: random.Random) -> None:
    """A session of several turns, each used in another way. What is read of a turn is its beginning, without a gap."""
    async with acp.session(cx) as session:
        for number in range(choose.randrange(1, 8)):
            tag, seen = f"{name}/{number}", []
            way = choose.choice(WAYS)
            try:
                if way == "text":
                    await session.prompt(tag).text()
                elif way == "expire":
                    async with asyncio.timeout(0):
                        seen += [update async for update in session.prompt(tag)]
                elif way == "enter":
                    async with session.prompt(tag) as turn:
                        async for update in turn:
                            seen.append(update)
                            if choose.random() < 0.1:
                                break
                    assert not session.is_running
                else:
                    async for update in session.prompt(tag):
                        seen.append(update)
                        if way == "break" and choose.random() < 0.2:
                            break
                        if way == "cancel" and choose.random() < 0.2:
                            session.cancel()
                        if way == "dawdle":
                            await asyncio.sleep(0)
            except (acprt.RpcError, TimeoutError):
                pass
            assert texts(seen) == [f"{tag}:{n}" for n in range(len(seen))]


@pytest.mark.parametrize("seed", range(5))
def test_readers_see_their_own_turns_without_gaps_and_leave_nothing_behind(run, seed):
    async def main():
        choose = random.Random(seed)
        client = acp.Client("many", limits=acprt.Limits(session_bytes=2_000))

        @client.method
        async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
            await asyncio.sleep(0)
            return acp.allow_first(request)

        async with client.connect(talkative(choose)) as cx:
            await acp.initialize(cx)
            await asyncio.gather(*(converse(cx, f"c{n}", choose) for n in range(15)))
            assert cx.status().pending == []
            routes = SessionRoutes.of(cx)
            assert not routes.cancelling
            for number in range(15):
                routes.refuse_open(f"s{number}")

    run(main())
