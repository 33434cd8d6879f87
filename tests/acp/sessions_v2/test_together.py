"""Both ends of version 2 as users write them: `acp.Client.v2` and `acp.Agent.v2`, joined in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2
from tests.rawpeer import raw_server_for

YES = v2.PermissionOption(option_id="y", name="Yes", kind="allow_once")


def new_agent(*, hold: bool = False) -> tuple[acp.Agent, sessions_v2.AgentSessions, dict[str, sessions_v2.Projection]]:
    """An agent that makes sessions, keeps their history and resumes them."""
    agent = acp.Agent.v2("agent", version="1")
    sessions = sessions_v2.AgentSessions(agent, hold=hold)
    histories: dict[str, sessions_v2.Projection] = {}

    @agent.method
    async def new_session(request: v2.NewSessionRequest, cx: acprt.Connection) -> v2.NewSessionResponse:
        session_id = f"s{len(histories) + 1}"
        histories[session_id] = sessions_v2.Projection()
        sessions.open(cx, session_id, cwd=request.cwd, history=histories[session_id])
        return v2.NewSessionResponse(session_id=session_id)

    @agent.method
    async def resume(request: v2.ResumeSessionRequest, cx: acprt.Connection) -> v2.ResumeSessionResponse:
        sessions.resume(cx, request, cwd=request.cwd, history=histories[request.session_id])
        return v2.ResumeSessionResponse()

    @agent.method
    async def listed(request: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
        return v2.ListSessionsResponse(sessions=[v2.SessionInfo(session_id=id, cwd="/w") for id in histories])

    return agent, sessions, histories


@asynccontextmanager
async def joined(client: acp.Client, agent: acp.Agent) -> AsyncIterator[acprt.Connection]:
    """An initialized connection between them."""
    async with client.connect(agent) as cx:
        peer = await acp.initialize(cx)
        assert peer.version == 2
        yield cx


def test_turn_with_a_permission_from_prompt_to_text(run) -> None:
    agent, sessions, _ = new_agent()
    client = acp.Client.v2("client", version="1")
    states: list[str] = []

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        choice = await work.ask("Shout?", [YES])
        work.say(work.text.upper() if choice == "y" else work.text)

    @client.method
    async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        return acp.allow_first(request)

    async def main() -> None:
        async with joined(client, agent) as cx, sessions_v2.session(cx, cwd="/w") as session:
            turn = session.prompt("hi")
            states.extend([update.state async for update in turn if isinstance(update, v2.StateUpdate)])
            assert turn.stop_reason == "end_turn"
            assert await turn.text() == "HI"
            assert turn.message_id is not None
            message = session.projection.message(turn.message_id, "user")
            assert message is not None
            assert message.text == "hi"
        assert states == ["running", "requires_action", "running", "idle"]

    run(main())


def test_cancel_while_permission_is_asked_ends_cancelled_on_both_sides(run) -> None:
    agent, sessions, _ = new_agent()
    client = acp.Client.v2("client", version="1")
    asked = asyncio.Event()
    choices: list[Any] = []

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        try:
            choices.append(await work.ask("?", [YES]))
        except asyncio.CancelledError:
            choices.append("cancelled")
            raise

    @client.method
    async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    async def main() -> None:
        async with joined(client, agent) as cx, sessions_v2.session(cx, cwd="/w") as session:
            turn = session.prompt("hi")
            await asked.wait()
            turn.cancel()
            assert await turn == "cancelled"
            assert session.projection.state == "idle"
        assert choices == ["cancelled"]

    run(main())


def test_several_sessions_and_held_prompts_do_not_mix(run) -> None:
    agent, sessions, _ = new_agent(hold=True)
    client = acp.Client.v2("client", version="1")

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        for word in work.text.split():
            work.say(word)
            await asyncio.sleep(0)

    async def main() -> None:
        async with joined(client, agent) as cx:
            opened = [await sessions_v2.session(cx, cwd="/w") for _ in range(3)]
            turns = [
                (number, session.id, session.prompt(f"{session.id} " * 5 + str(number)))
                for number in range(4)
                for session in opened
            ]
            for number, id, turn in turns:
                assert await turn.text() == id * 5 + str(number)
                assert turn.stop_reason == "end_turn"
            for session in opened:
                await session.close()

    run(main())


def test_resumed_session_knows_its_history(run) -> None:
    agent, sessions, _ = new_agent()
    client = acp.Client.v2("client", version="1")

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        work.update(v2.ToolCallUpdate(tool_call_id="c", title="Think", status="completed"))
        work.say("indeed")

    async def main() -> None:
        async with joined(client, agent) as cx:
            async with sessions_v2.session(cx, cwd="/w") as session:
                await session.prompt("so")
                before = session.projection
            assert [info.session_id for info in await sessions_v2.list_sessions(cx)] == [session.id]
            async with sessions_v2.resume_session(cx, session.id, cwd="/w", replay=True) as again:
                assert [message.text for message in again.projection.messages] == ["so", "indeed"]
                assert again.projection.tool_calls == before.tool_calls
                assert not again.projection.is_busy
                assert await again.prompt("and").text() == "indeed"
            async with sessions_v2.resume_session(cx, session.id, cwd="/w") as silent:
                assert silent.projection.messages == []

    run(main())


def test_leaving_a_session_in_mid_turn_ends_its_work_first(run) -> None:
    agent, sessions, _ = new_agent()
    client = acp.Client.v2("client", version="1")
    ended: list[str] = []

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(work.text)

    async def main() -> None:
        async with joined(client, agent) as cx:
            async with sessions_v2.session(cx, cwd="/w") as session:
                turn = session.prompt("long")
                await turn.started()
            assert ended == ["long"]
            assert await turn == "cancelled"

    run(main())


@pytest.mark.parametrize("registered", ["method", "on_receive_request"])
def test_question_that_the_agent_takes_back_is_answered_cancelled(run, registered) -> None:
    client = acp.Client.v2("client", version="1")
    asked = asyncio.Event()
    kept: list[Any] = []

    if registered == "method":

        @client.method
        async def wait(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError("never")
    else:

        @client.on_receive_request
        async def keep(
            request: v2.RequestPermissionRequest, responder: acprt.Responder[v2.RequestPermissionResponse]
        ) -> None:
            kept.append(responder)
            responder.cancellation.on_cancel(lambda: responder.respond_with_error(acprt.RpcError.request_cancelled()))
            asked.set()

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            starting = asyncio.ensure_future(acp.initialize(cx))
            request = await peer.receive()
            peer.respond(request["id"], {"protocolVersion": 2, "info": {"name": "a", "version": "1"}})
            await starting
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            peer.request(7, "session/request_permission", {"sessionId": "s", "title": "?", "options": options})
            await asked.wait()
            peer.cancel(7)
            assert await peer.receive() == {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "cancelled"}}}

    run(main())


def test_client_that_speaks_only_version_1_is_told_by_both_doors(run) -> None:
    """A v2 client that fell back to version 1 has no v2 sessions."""
    agent = acp.Agent("old", version="1")
    client = acp.Client.v2("client", version="1")

    async def main() -> None:
        async with client.connect(agent) as cx:
            assert (await acp.initialize(cx)).version == 1
            with pytest.raises(acprt.RpcError, match=r"use acp\.session\(\)"):
                await sessions_v2.session(cx, cwd="/w")

    run(main())


def test_prompt_content_that_is_no_text_reaches_the_agent(run) -> None:
    agent, sessions, _ = new_agent()
    client = acp.Client.v2("client", version="1")
    received: list[Any] = []

    @sessions.on_prompt
    async def answer(work: sessions_v2.Work) -> None:
        received.extend(work.prompt)

    async def main() -> None:
        async with joined(client, agent) as cx, sessions_v2.session(cx, cwd="/w") as session:
            await session.prompt(["look", v2.ResourceLink(name="a", uri="file:///a")])
            assert received == [v2.TextContent(text="look"), v2.ResourceLink(name="a", uri="file:///a")]

    run(main())
