"""Cancels of single requests beside `session/cancel`, its notification as seen by handlers, and version 2."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2
from tests.acp.cancelling import CANCELLED, Waiting, cancel_of, prompt_line
from tests.acp.talking import HELLO_V2, ready_client_of
from tests.rawpeer import raw_server_for, turns


class TestCancelRequest:
    """`$/cancel_request` is about one request of any method: it is an error, as everywhere."""

    def test_cancelled_by_id_is_an_error(self, run) -> None:
        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.cancel(1)
                assert (await client.receive())["error"]["code"] == -32800

        run(main())

    def test_cancelled_both_ways_is_the_stop_reason(self, run) -> None:
        """The turn must be answered so, whatever else was asked."""
        going = asyncio.Event()

        class Slow(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                try:
                    await super().abort(request, cx)
                finally:
                    await going.wait()

        async def main() -> None:
            waiting = Slow()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.cancel(1)
                client.send(cancel_of())
                assert await client.settled() == []
                going.set()
                assert (await client.receive())["result"] == CANCELLED

        run(main())


class TestNotification:
    def test_it_reaches_handlers_in_its_place(self, run) -> None:
        """An agent may keep books of its own."""
        agent, heard = acp.Agent("listening"), []

        @agent.on_receive_notification
        async def cancelled(note: v1.CancelNotification) -> None:
            heard.append(note.session_id)

        @agent.on_receive_notification("_example.com/mark")
        async def mark(_params: Any) -> None:
            heard.append("mark")

        async def main() -> None:
            async with ready_client_of(agent) as client:
                client.notify("_example.com/mark")
                client.send(cancel_of("a"))
                client.notify("_example.com/mark")
                await client.settled()
            assert heard == ["mark", "a", "mark"]

        run(main())

    @pytest.mark.parametrize("params", [{}, {"sessionId": 1}, ["s"], None])
    def test_malformed_one_cancels_nothing(self, run, caplog, params) -> None:
        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                with caplog.at_level(logging.WARNING, "acprt.wire"):
                    client.notify("session/cancel", params)
                    assert await client.settled() == []
                assert "dropped a malformed session/cancel" in caplog.text
                client.send(cancel_of())
                assert (await client.receive())["result"] == CANCELLED

        run(main())

    def test_it_is_nothing_special_to_a_client(self, run) -> None:
        """Agents do not cancel prompts."""
        client, asked = acp.Client("client"), asyncio.Event()

        @client.method("session/prompt")
        async def prompt(_params: Any) -> str:
            asked.set()
            await turns()
            return "answered"

        async def main() -> None:
            async with raw_server_for(client) as (_cx, agent):
                agent.send(prompt_line(1))
                await asked.wait()
                agent.send(cancel_of())
                assert (await agent.receive())["result"] == "answered"

        run(main())


class TestVersion2:
    """A prompt without an answer was not inserted: it is -32800. What was inserted is the session's business."""

    def test_prompt_that_was_not_inserted_is_an_error(self, run) -> None:
        agent, started = acp.Agent.v2("held"), asyncio.Event()

        @agent.method
        async def prompt(request: v2.PromptRequest) -> v2.PromptResponse:
            started.set()
            await asyncio.Event().wait()
            return v2.PromptResponse(message_id="m")

        @agent.method
        async def close(request: v2.CloseSessionRequest) -> v2.CloseSessionResponse:
            return v2.CloseSessionResponse()

        async def main() -> None:
            async with ready_client_of(agent, HELLO_V2) as client:
                client.send(prompt_line(1))
                await started.wait()
                client.send(cancel_of())
                answer = await client.receive()
                assert answer == {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "error": {"code": -32800, "message": "Request cancelled"},
                }

        run(main())

    def test_batches_are_refused(self, run) -> None:
        """One -32600, and nothing of it is looked at."""

        async def main() -> None:
            async with ready_client_of(acp.Agent.v2("single"), HELLO_V2) as client:
                client.send([{"jsonrpc": "2.0", "id": 1, "method": "_example.com/x"}])
                answer = await client.receive()
                assert (answer["id"], answer["error"]["code"]) == (None, -32600)

        run(main())
