"""Work of a v2 agent that no prompt asked for, and sessions that are resumed."""

from __future__ import annotations

from typing import Any

import pytest

import acprt
from acprt.acp import v2
from acprt.acp.sessions_v2 import Projection, Work
from tests.acp.sessions_v2.serving import Agent, client_of, insertion, next_update, prompt, until_cancelled
from tests.acp.sessions_v2.wire import expect, idle, state, text, update
from tests.rawpeer import RawPeer


def test_background_work_is_part_of_every_state_update_once_it_is_reported(run) -> None:
    async def go_on(work: Work) -> None:
        work.session.background = [v2.BackgroundTerminal(terminal_id="t")]

    agent = Agent(go_on)

    async def main() -> None:
        async with client_of(agent) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            assert (await next_update(peer))["background"] == [{"type": "terminal", "terminalId": "t"}]
            session = agent.session
            assert session is not None
            session.background = []
            session.report_state()
            assert await next_update(peer) == state("idle", background=[])

    run(main())


def test_agent_may_begin_work_by_itself(run) -> None:
    agent = Agent(until_cancelled)

    async def follow_up(work: Work) -> None:
        assert (work.prompt, work.message_id) == ([], None)
        work.say("done")

    async def main() -> None:
        async with client_of(agent) as peer:
            session = agent.session
            assert session is not None
            session.start_work(follow_up)
            with pytest.raises(RuntimeError, match="one piece of work at a time"):
                session.start_work(follow_up)
            assert await next_update(peer) == state("running")
            assert (await next_update(peer))["content"] == text("done")
            assert await next_update(peer) == idle("end_turn")

    run(main())


def test_resume_replays_reports_the_state_and_is_refused_where_it_must(run) -> None:
    history = Projection()
    history.apply(v2.UserMessage(message_id="u", content=[v2.TextContent(text="hi")]))
    agent = Agent(until_cancelled)

    @agent.method
    async def resume(request: v2.ResumeSessionRequest, cx: acprt.Connection) -> v2.ResumeSessionResponse:
        agent.sessions.resume(cx, request, cwd="/w", history=history)
        return v2.ResumeSessionResponse()

    def ask(peer: RawPeer, id: int, session_id: str, **members: Any) -> None:
        peer.request(id, "session/resume", {"sessionId": session_id, "cwd": "/w"} | members)

    async def main() -> None:
        async with client_of(agent) as peer:
            ask(peer, 1, "a", cwd="/elsewhere")
            ask(peer, 2, "a", replayFrom={"type": "_middle"})
            ask(peer, 3, "s")
            reasons = [(await peer.receive())["error"] for _ in range(3)]
            assert [error["code"] for error in reasons] == [-32602] * 3
            assert [error["data"]["reason"] for error in reasons] == [
                "cwd_mismatch",
                "unsupported_replay_cursor",
                "session_already_open",
            ]
            ask(peer, 4, "a")
            assert (await expect(peer, "session/update"))["params"] == {"sessionId": "a", "update": state("idle")}
            assert await peer.receive() == {"jsonrpc": "2.0", "id": 4, "result": {}}
            ask(peer, 5, "b", replayFrom={"type": "start"})
            replayed = [(await expect(peer, "session/update"))["params"]["update"] for _ in range(2)]
            assert replayed == [update("user_message", messageId="u", content=[text("hi")]), state("idle")]
            assert (await peer.receive())["id"] == 5

    run(main())
