"""What a cancel of the client's asks of a v2 agent."""

from __future__ import annotations

import asyncio

import pytest

from acprt.acp import v2
from acprt.acp.sessions_v2 import Work
from tests.acp.sessions_v2.serving import YES, Agent, cancel, client_of, insertion, next_update, prompt, until_cancelled
from tests.acp.sessions_v2.wire import idle, state, text, update


def test_cancel_stops_the_work_and_ends_with_idle_cancelled_behind_its_last_updates(run) -> None:
    async def tidy(work: Work) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            work.update(v2.ToolCallUpdate(tool_call_id="c", status="cancelled"))

    async def main() -> None:
        async with client_of(Agent(tidy)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            cancel(peer)
            assert await next_update(peer) == update("tool_call_update", toolCallId="c", status="cancelled")
            assert await next_update(peer) == idle("cancelled")
            assert await peer.settled() == []

    run(main())


@pytest.mark.parametrize("way_out", ["raises", "returns"])
def test_cancelled_work_never_reports_anything_else(run, way_out) -> None:
    async def stubborn(work: Work) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert work.is_cancelled
            if way_out == "raises":
                raise RuntimeError("aborted") from None
        return "end_turn"

    async def main() -> None:
        async with client_of(Agent(stubborn)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            cancel(peer)
            assert await next_update(peer) == idle("cancelled")

    run(main())


def test_cancel_right_behind_the_prompt_ends_work_that_had_not_begun(run) -> None:
    """Either the prompt was not inserted, which is -32800, or its work ends as cancelled."""
    began: list[str] = []

    async def work_on(work: Work) -> None:
        began.append(work.text)
        await asyncio.Event().wait()

    async def main() -> None:
        async with client_of(Agent(work_on)) as peer:
            peer.send(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "session/prompt",
                    "params": {"sessionId": "s", "prompt": [text("x")]},
                },
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}},
            )
            lines = await peer.settled()
            assert lines == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32800, "message": "Request cancelled"}}]
            assert began == []

    run(main())


def test_work_cancelled_before_its_first_step_still_ends(run) -> None:
    agent = Agent(until_cancelled)

    async def main() -> None:
        async with client_of(agent) as peer:
            session = agent.session
            assert session is not None
            session.start_work(until_cancelled)
            session.cancel()
            assert await next_update(peer) == state("running")
            assert await next_update(peer) == idle("cancelled")

    run(main())


def test_held_prompts_are_answered_cancelled_and_the_inserted_one_keeps_its_success(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled, hold=True)) as peer:
            for id in (1, 2, 3):
                prompt(peer, id)
            await insertion(peer, 1)
            await peer.settled()
            cancel(peer)
            for id in (2, 3):
                answer = await peer.receive()
                assert (answer["id"], answer["error"]["code"]) == (id, -32800)
            assert await next_update(peer) == idle("cancelled")

    run(main())


def test_prompt_sent_after_the_cancel_is_not_affected_by_it(run) -> None:
    """It waits for the work to stop, even where a second prompt is otherwise refused."""
    stops = asyncio.Event()

    async def slow_to_stop(work: Work) -> None:
        if work.text == "first":
            try:
                await asyncio.Event().wait()
            finally:
                await stops.wait()

    async def main() -> None:
        async with client_of(Agent(slow_to_stop)) as peer:
            prompt(peer, 1, "first")
            await insertion(peer, 1, "first")
            cancel(peer)
            await peer.settled()
            prompt(peer, 2, "second")
            assert await peer.settled() == []
            stops.set()
            assert await next_update(peer) == idle("cancelled")
            await insertion(peer, 2, "second")
            assert await next_update(peer) == idle("end_turn")

    run(main())


def test_cancel_of_an_idle_or_unknown_session_says_nothing(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled)) as peer:
            cancel(peer)
            peer.notify("session/cancel", {"sessionId": "nope"})
            assert await peer.settled() == []

    run(main())


def test_one_held_prompt_can_be_cancelled_by_its_id(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled, hold=True)) as peer:
            prompt(peer, 1)
            prompt(peer, 2)
            await insertion(peer, 1)
            await peer.settled()
            peer.cancel(2)
            answer = await peer.receive()
            assert (answer["id"], answer["error"]["code"]) == (2, -32800)
            peer.cancel(1)  # inserted: its answer stands, and its work goes on
            assert await peer.settled() == []
            cancel(peer)

    run(main())


def test_what_was_left_behind_by_cancelled_work_says_nothing_after_the_idle_update(run) -> None:
    left: list[Work] = []

    async def leave(work: Work) -> None:
        left.append(work)
        await asyncio.Event().wait()

    async def main() -> None:
        async with client_of(Agent(leave)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            cancel(peer)
            assert await next_update(peer) == idle("cancelled")
            left[0].say("late")
            assert await left[0].ask("?", [YES]) is None
            left[0].session.update(v2.ToolCallUpdate(tool_call_id="bg"))  # background work may
            assert [line["params"]["update"]["sessionUpdate"] for line in await peer.settled()] == ["tool_call_update"]

    run(main())
