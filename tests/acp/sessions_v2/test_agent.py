"""The agent's side of a v2 session on the wire: the lifecycle of a prompt, and how it ends with its connection."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt.acp import v2
from acprt.acp.sessions_v2 import AgentSessions, Work
from tests.acp.sessions_v2.serving import Agent, cancel, client_of, insertion, next_update, prompt, until_cancelled
from tests.acp.sessions_v2.wire import idle, state, text, update
from tests.rawpeer import RawPeer, turns


def test_prompt_is_accepted_echoed_worked_on_and_ended(run) -> None:
    async def echo(work: Work) -> None:
        work.say(work.text.upper())
        work.say("!")

    async def main() -> None:
        async with client_of(Agent(echo)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            first, second = await next_update(peer), await next_update(peer)
            assert first["content"] == text("GO")
            assert second == update("agent_message_chunk", messageId=first["messageId"], content=text("!"))
            assert await next_update(peer) == idle("end_turn")

    run(main())


def test_stop_reason_is_what_the_handler_returns(run) -> None:
    async def refuse(work: Work) -> str:
        work.usage = v2.Usage(total_tokens=3, input_tokens=1, output_tokens=2)
        return "refusal"

    async def main() -> None:
        async with client_of(Agent(refuse)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
            assert await next_update(peer) == idle("refusal") | {"usage": usage}

    run(main())


def test_failure_ends_the_work_with_an_error_and_not_the_connection(run, caplog) -> None:
    async def fail(work: Work) -> None:
        if work.text == "rpc":
            raise acprt.RpcError(-32000, "Log in", {"why": 1})
        raise ValueError("secret")

    async def main() -> None:
        async with client_of(Agent(fail)) as peer:
            prompt(peer, 1, "rpc")
            await insertion(peer, 1, "rpc")
            error = {"code": -32000, "message": "Log in", "data": {"why": 1}}
            assert await next_update(peer) == idle("error") | {"error": error}
            with caplog.at_level(logging.ERROR, "acprt.acp"):
                prompt(peer, 2)
                await insertion(peer, 2)
                assert await next_update(peer) == idle("error") | {
                    "error": {"code": -32603, "message": "Internal error"}
                }
            assert "ValueError: secret" in caplog.text

    run(main())


def test_handler_that_returns_no_stop_reason_has_failed(run, caplog) -> None:
    async def answer_as_in_version_1(work: Work) -> Any:
        return v2.PromptResponse(message_id="m")

    async def main() -> None:
        async with client_of(Agent(answer_as_in_version_1)) as peer:
            with caplog.at_level(logging.ERROR, "acprt.acp"):
                prompt(peer, 1)
                await insertion(peer, 1)
                assert (await next_update(peer))["stopReason"] == "error"
            assert "returns a stop reason or None, not PromptResponse" in caplog.text

    run(main())


def test_handlers_of_the_wrong_shape_are_refused_when_they_are_registered() -> None:
    sessions = AgentSessions(acprt.Endpoint("a"))
    bad: Any
    for bad in (lambda work: None, lambda: None, "no function"):
        with pytest.raises(TypeError, match="on_prompt"):
            sessions.on_prompt(bad)
        with pytest.raises(TypeError, match="on_close"):
            sessions.on_close(bad)


def test_prompt_for_a_session_that_is_not_open_is_answered_not_found(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled)) as peer:
            peer.request(1, "session/prompt", {"sessionId": "nope", "prompt": [text("x")]})
            error = (await peer.receive())["error"]
            assert (error["code"], error["data"]) == (-32002, {"sessionId": "nope"})

    run(main())


def test_agent_without_a_prompt_handler_knows_no_such_method(run) -> None:
    async def main() -> None:
        async with client_of(Agent()) as peer:
            prompt(peer, 1)
            assert (await peer.receive())["error"]["code"] == -32601

    run(main())


def test_second_prompt_is_refused_while_work_goes_on(run) -> None:
    async def main() -> None:
        async with client_of(Agent(until_cancelled)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            prompt(peer, 2)
            error = (await peer.receive())["error"]
            assert (error["code"], error["data"]["reason"]) == (-32602, "session_busy")
            cancel(peer)

    run(main())


def test_held_prompts_are_inserted_one_by_one_when_the_work_has_ended(run) -> None:
    goes_on: asyncio.Queue[None] = asyncio.Queue()

    async def wait(work: Work) -> None:
        await goes_on.get()

    async def main() -> None:
        async with client_of(Agent(wait, hold=True)) as peer:
            for id in (1, 2, 3):
                prompt(peer, id, f"p{id}")
            await insertion(peer, 1, "p1")
            assert await peer.settled() == []
            for id in (2, 3):
                goes_on.put_nowait(None)
                assert await next_update(peer) == idle("end_turn")
                await insertion(peer, id, f"p{id}")
            goes_on.put_nowait(None)
            assert await next_update(peer) == idle("end_turn")

    run(main())


def test_work_on_a_prompt_is_finished_when_the_client_says_nothing_more(run) -> None:
    goes_on = asyncio.Event()

    async def work_on(work: Work) -> None:
        await goes_on.wait()
        work.say("done")

    async def main() -> None:
        async with client_of(Agent(work_on)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            peer.close_write()
            await turns()
            goes_on.set()
            assert (await next_update(peer))["content"] == text("done")
            assert await next_update(peer) == idle("end_turn")

    run(main())


def test_work_is_cancelled_with_its_connection(run) -> None:
    ended: list[str] = []

    async def work_on(work: Work) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def main() -> None:
        near, far = acprt.memory_pair()
        cx = await Agent(work_on).open(far)
        peer = RawPeer(near)
        await peer.settled()
        prompt(peer, 1)
        await insertion(peer, 1)
        await cx.aclose()
        assert ended == ["cancelled"]
        assert peer.unread() == []
        await peer.aclose()

    run(main())


@pytest.mark.parametrize("how", ["error", "reason", "usage"])
def test_end_that_cannot_be_written_is_told_without_what_cannot(run, caplog, how: str) -> None:
    """The client waits for nothing but the idle update; and the next prompt is worked on."""

    async def main() -> None:
        async def handler(work: Work) -> str | None:
            if work.text == "again":
                return None
            if how == "error":
                raise acprt.RpcError(-32000, "no", object())
            if how == "usage":
                work.usage = object()  # type: ignore[assignment]  # what a handler should not do
            return "\ud800" if how == "reason" else None

        async with client_of(Agent(handler)) as peer:
            prompt(peer, 1)
            await insertion(peer, 1)
            end = await next_update(peer)
            error = {"code": -32603, "message": "Internal error"}
            assert end == (idle() | {"stopReason": "error", "error": error})
            prompt(peer, 2, "again")
            await insertion(peer, 2, "again")
            assert await next_update(peer) == idle("end_turn")

    run(main())
    assert "session s: its state cannot be told as it is" in caplog.text


def test_prompt_that_cannot_be_said_back_is_worked_on(run, caplog) -> None:
    """Its echo is longer than it was, so it may be too long for a line."""

    async def main() -> None:
        async def handler(work: Work) -> str | None:
            return str(len(work.text))

        agent = Agent(handler)
        agent.limits = acprt.Limits(line_out_bytes=10_000)
        async with client_of(agent) as peer:
            prompt(peer, 1, "x" * 10_000)
            assert "messageId" in (await peer.receive())["result"]
            assert await next_update(peer) == state("running")
            assert await next_update(peer) == idle("10000")

    run(main())
    assert "the message of a prompt cannot be told" in caplog.text
