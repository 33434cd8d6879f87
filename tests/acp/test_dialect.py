"""`session/cancel` ends turns by their session, whatever state their handlers are in, and never with an error."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.cancelling import CANCELLED, Waiting, cancel_of, prompt_line
from tests.acp.talking import prompt_params, ready_client_of
from tests.rawpeer import raw_client_of, turns


class TestRunningPrompt:
    def test_it_is_answered_with_the_stop_reason_cancelled(self, run) -> None:
        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.send(cancel_of())
                assert await client.receive() == {"jsonrpc": "2.0", "id": 1, "result": CANCELLED}
                assert await client.settled() == []

        run(main())

    @pytest.mark.parametrize("error", [ValueError("aborted"), acprt.RpcError(-32603, "aborted")])
    def test_error_of_the_abort_is_no_answer(self, run, error) -> None:
        """What aborted work raises is caught: the answer says cancelled."""

        class Raising(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                try:
                    await super().abort(request, cx)
                finally:
                    raise error

        async def main() -> None:
            waiting = Raising()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.send(cancel_of())
                assert (await client.receive())["result"] == CANCELLED

        run(main())

    @pytest.mark.parametrize("value", [None, object()])
    def test_what_is_no_answer_is_none(self, run, value: Any) -> None:
        """A handler that swallows its cancel and returns nothing, or what cannot be written."""

        async def main() -> None:
            agent, started = acp.Agent("x"), asyncio.Event()

            @agent.method("session/prompt")
            async def prompt(_params: Any) -> Any:
                started.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return value

            async with ready_client_of(agent) as client:
                client.request(1, "session/prompt", prompt_params())
                await started.wait()
                client.notify("session/cancel", {"sessionId": "s"})
                assert await client.receive() == {"jsonrpc": "2.0", "id": 1, "result": CANCELLED}

        run(main())

    def test_value_that_is_returned_all_the_same_is_the_answer(self, run) -> None:
        """DEC-9: the handler may know better, as when it was done already."""

        class Stubborn(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                try:
                    await super().abort(request, cx)
                except asyncio.CancelledError:
                    return

        async def main() -> None:
            waiting = Stubborn()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.send(cancel_of())
                assert (await client.receive())["result"] == {"stopReason": "end_turn"}

        run(main())

    def test_updates_leave_before_the_answer(self, run) -> None:
        """Those sent before the cancel, and those of the clean-up."""

        class Talking(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                say = acp.SessionUpdates(cx, request.session_id)
                say.message("before")
                try:
                    await super().abort(request, cx)
                finally:
                    say.message("after")

        async def main() -> None:
            waiting = Talking()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.send(cancel_of())
                texts = [(await client.receive())["params"]["update"]["content"]["text"] for _ in range(2)]
                assert texts == ["before", "after"]
                assert (await client.receive())["result"] == CANCELLED

        run(main())

    def test_thread_of_a_plain_function_is_not_waited_for(self, run) -> None:
        """DEC-15."""
        started, over = threading.Event(), threading.Event()
        agent = acp.Agent("threaded")

        @agent.method
        def prompt(request: v1.PromptRequest) -> v1.PromptResponse:
            started.set()
            over.wait(20)
            return v1.PromptResponse(stop_reason="end_turn")

        async def main() -> None:
            async with ready_client_of(agent) as client:
                client.send(prompt_line(1))
                await asyncio.to_thread(started.wait, 20)
                client.send(cancel_of())
                assert (await client.receive())["result"] == CANCELLED
                over.set()

        run(main())

    def test_other_sessions_and_other_requests_go_on(self, run) -> None:
        waiting = Waiting()

        @waiting.agent.method("_example.com/wait")
        async def wait(_params: Any) -> None:
            waiting.started.put_nowait("other")
            await asyncio.Event().wait()

        async def main() -> None:
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1, "s"), prompt_line(2, "t"))
                client.request(3, "_example.com/wait", {"sessionId": "s"})
                for _ in range(3):
                    await waiting.started.get()
                client.send(cancel_of("s"))
                assert (await client.receive())["id"] == 1
                assert await client.settled() == []
                client.send(cancel_of("t"))
                assert await client.receive() == {"jsonrpc": "2.0", "id": 2, "result": CANCELLED}
                client.cancel(3)
                assert (await client.receive())["error"]["code"] == -32800

        run(main())

    def test_every_prompt_of_the_session_is_cancelled(self, run) -> None:
        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1), prompt_line(2))
                await waiting.started.get()
                await waiting.started.get()
                client.send(cancel_of())
                answers = [await client.receive(), await client.receive()]
                assert {answer["id"]: answer["result"] for answer in answers} == {1: CANCELLED, 2: CANCELLED}

        run(main())

    def test_requests_of_its_handler_are_cancelled_too(self, run) -> None:
        """It stops waiting for permissions, and says so; a late answer is ignored."""

        class Asking(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                say = acp.SessionUpdates(cx, request.session_id)
                self.unawaited = cx.send_request("_example.com/ask")
                await say.ask(acp.updates.tool_call("Write", id="c"))

        async def main() -> None:
            waiting = Asking()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                asked = [await client.receive(), await client.receive()]
                assert [line["method"] for line in asked] == ["_example.com/ask", "session/request_permission"]
                client.send(cancel_of())
                lines = [await client.receive() for _ in range(3)]
                cancelled = {line["params"]["requestId"] for line in lines if line.get("method") == "$/cancel_request"}
                assert cancelled == {line["id"] for line in asked}
                assert lines[-1]["result"] == CANCELLED
                client.respond(asked[1]["id"], {"outcome": {"outcome": "cancelled"}})
                assert await client.settled() == []

        run(main())

    def test_it_is_cancelled_at_the_end_of_input_as_well(self, run) -> None:
        """DEC-25: whoever cancelled and closed still reads what was promised."""

        class Late(Waiting):
            async def abort(self, request: v1.PromptRequest, cx: acprt.Connection) -> None:
                try:
                    await super().abort(request, cx)
                finally:
                    await asyncio.Event().wait()

        async def main() -> None:
            waiting = Late()
            waiting.agent.limits = acprt.Limits(drain_seconds=0.05)
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1))
                await waiting.started.get()
                client.send(cancel_of())
                client.close_write()
                assert (await client.receive())["result"] == CANCELLED

        run(main())


class TestPromptThatHasNotBegun:
    def test_prompt_and_cancel_in_one_read(self, run) -> None:
        """Its handler never begins, and what comes after the cancel is none of its business."""

        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send(prompt_line(1), cancel_of(), prompt_line(2))
                assert await client.receive() == {"jsonrpc": "2.0", "id": 1, "result": CANCELLED}
                await waiting.started.get()
                assert waiting.started.empty()
                assert await client.settled() == []
                client.send(cancel_of())
                assert (await client.receive())["id"] == 2

        run(main())

    def test_prompt_behind_an_ordered_handler_is_answered_at_receipt(self, run) -> None:
        """DEC-10: while the loop is held."""
        waiting = Waiting()
        holds, goes_on = asyncio.Event(), asyncio.Event()

        @waiting.agent.on_receive_notification("_example.com/hold")
        async def hold(_params: Any) -> None:
            holds.set()
            await goes_on.wait()

        async def main() -> None:
            async with ready_client_of(waiting.agent) as client:
                client.notify("_example.com/hold")
                await holds.wait()
                client.send(prompt_line(1))
                client.send(cancel_of())
                assert (await client.receive())["result"] == CANCELLED
                goes_on.set()
                assert await client.settled() == []
                assert waiting.started.empty()

        run(main())

    def test_slot_of_a_batch_is_filled(self, run) -> None:
        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send([prompt_line(1), cancel_of(), {"jsonrpc": "2.0", "id": 2, "method": "_none"}])
                first, second = await client.receive()
                assert first == {"jsonrpc": "2.0", "id": 1, "result": CANCELLED}
                assert second["error"]["code"] == -32601

        run(main())

    def test_prompt_that_does_not_decode_is_refused_as_ever(self, run) -> None:
        """A cancel does not find what has no session."""

        async def main() -> None:
            waiting = Waiting()
            async with ready_client_of(waiting.agent) as client:
                client.send({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": [1]}, cancel_of())
                assert (await client.receive())["error"]["code"] == -32602

        run(main())


class TestOrderedPromptHandler:
    """`on_receive_request` handlers answer when they like: they get the marker, and the answer is still no error."""

    @pytest.mark.parametrize("end", ["error", "dropped", "run_until_cancelled"])
    def test_whatever_it_ends_with_is_cancelled(self, run, end) -> None:
        agent = acp.Agent("ordered")
        held: list[acprt.Responder[v1.PromptResponse]] = []
        work: list[asyncio.Task[None]] = []

        @agent.on_receive_request
        async def prompt(
            request: v1.PromptRequest, responder: acprt.Responder[v1.PromptResponse], cx: acprt.Connection
        ) -> None:
            if end == "run_until_cancelled":
                work.append(cx.spawn(answer_later(responder)))
            else:
                held.append(responder)

        async def answer_later(responder: acprt.Responder[v1.PromptResponse]) -> None:
            try:
                await responder.cancellation.run_until_cancelled(asyncio.Event().wait())
            except acprt.RpcError as error:
                responder.respond_with_error(error)

        async def main() -> None:
            async with ready_client_of(agent) as client:
                client.send(prompt_line(1))
                assert await client.settled() == []
                client.send(cancel_of())
                if held:
                    await turns()
                    assert held[0].cancellation.is_cancelled
                    if end == "error":
                        held[0].respond_with_internal_error("aborted")
                    held.clear()
                assert await client.receive() == {"jsonrpc": "2.0", "id": 1, "result": CANCELLED}

        run(main())


def test_dialect_stands_alone(run) -> None:
    """A plain endpoint may speak ACP without being a role: no handshake is asked for then."""
    endpoint, started = acprt.Endpoint("relay", dialect=acp.AcpDialect(1)), asyncio.Event()

    @endpoint.method("session/prompt")
    async def prompt(_params: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    async def main() -> None:
        async with raw_client_of(endpoint) as client:
            client.send(prompt_line(1))
            await started.wait()
            client.send(cancel_of())
            assert (await client.receive())["result"] == CANCELLED

    run(main())
