"""Permissions that the work of a v2 agent asks for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt.acp import v2
from acprt.acp.sessions_v2 import Work
from tests.acp.sessions_v2.serving import NO, YES, Agent, cancel, client_of, insertion, next_update, prompt
from tests.acp.sessions_v2.wire import expect, idle, state
from tests.rawpeer import RawPeer


async def asked(peer: RawPeer) -> dict[str, Any]:
    """The state that a question brings, and the question."""
    assert await next_update(peer) == state("requires_action")
    return await expect(peer, "session/request_permission")


@pytest.mark.parametrize(
    ("outcome", "choice"),
    [
        ({"outcome": "selected", "optionId": "y"}, "y"),
        ({"outcome": "selected", "optionId": "never offered"}, None),
        ({"outcome": "cancelled"}, None),
        ({"outcome": "_maybe"}, None),
    ],
)
def test_permission_is_what_was_chosen_among_what_was_offered(run, outcome, choice) -> None:
    chosen: list[str | None] = []

    async def ask(work: Work) -> None:
        subject = v2.CommandPermissionSubject(command="rm", cwd="/w")
        chosen.append(await work.ask("Run?", [YES, NO], description="d", subject=subject))

    async def main() -> None:
        async with client_of(Agent(ask)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            question = await asked(peer)
            assert question["params"] == {
                "sessionId": "s",
                "title": "Run?",
                "description": "d",
                "subject": {"type": "command", "command": "rm", "cwd": "/w"},
                "options": [
                    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"},
                ],
            }
            peer.respond(question["id"], {"outcome": outcome})
            assert await next_update(peer) == state("running")
            assert await next_update(peer) == idle("end_turn")
            assert chosen == [choice]

    run(main())


def test_client_that_cannot_ask_is_an_error_of_the_work(run) -> None:
    async def ask(work: Work) -> None:
        await work.ask("?", [YES])

    async def main() -> None:
        async with client_of(Agent(ask)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            peer.respond_error((await asked(peer))["id"], -32601, "Method not found")
            assert await next_update(peer) == state("running")
            assert (await next_update(peer))["error"]["code"] == -32601

    run(main())


def test_cancel_stops_waiting_for_permissions_and_cancels_the_requests(run) -> None:
    """Also for those that a task beside the handler asked for, which no cancellation of the handler reaches."""
    chosen: list[str | None] = []

    async def ask_twice(work: Work) -> None:
        async def beside() -> None:
            chosen.append(await work.ask("beside", [YES], blocks=False))

        task = asyncio.ensure_future(beside())
        try:
            chosen.append(await work.ask("first", [YES]))
        finally:
            await task

    async def main() -> None:
        async with client_of(Agent(ask_twice)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            first = await asked(peer)
            beside = await expect(peer, "session/request_permission")
            cancel(peer)
            cancels = [await expect(peer, "$/cancel_request"), await expect(peer, "$/cancel_request")]
            assert [line["params"]["requestId"] for line in cancels] == [first["id"], beside["id"]]
            assert await next_update(peer) == idle("cancelled")
            peer.respond(first["id"], {"outcome": {"outcome": "selected", "optionId": "y"}})  # too late
            assert await peer.settled() == []
            assert chosen == [None]

    run(main())


def test_two_blocking_questions_require_action_until_both_are_answered(run) -> None:
    async def ask_both(work: Work) -> None:
        await asyncio.gather(work.ask("a", [YES]), work.ask("b", [YES]))

    async def main() -> None:
        async with client_of(Agent(ask_both)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            first, second = await expect_any_order(peer)
            answer = {"outcome": {"outcome": "selected", "optionId": "y"}}
            peer.respond(first, answer)
            assert await peer.settled() == []
            peer.respond(second, answer)
            assert await next_update(peer) == state("running")
            assert await next_update(peer) == idle("end_turn")

    async def expect_any_order(peer: RawPeer) -> list[Any]:
        lines = [await peer.receive() for _ in range(3)]
        states = [line["params"]["update"] for line in lines if line["method"] == "session/update"]
        assert states == [state("requires_action")]
        return [line["id"] for line in lines if line["method"] == "session/request_permission"]

    run(main())


def test_question_that_cannot_be_sent_any_more_fails_the_work(run) -> None:
    failed: list[acprt.RpcError] = []

    async def ask_at_the_end(work: Work) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await work.ask("?", [YES])
            except acprt.RpcError as error:
                failed.append(error)

    async def main() -> None:
        near, far = acprt.memory_pair()
        cx = await Agent(ask_at_the_end).open(far)
        peer = RawPeer(near)
        await peer.settled()
        prompt(peer, 1)
        await insertion(peer, 1)
        await cx.aclose()
        assert [error.data["reason"] for error in failed] == ["connection_closed"]
        await peer.aclose()

    run(main())
