"""What a handler leaves to be done once its answer is on its way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.scripted import keeper_by_id, result

Requests = acprt.Responder[Any]


class TestAfterResponse:
    def test_hook_of_a_method_runs_behind_the_answer(self, run):
        """On the wire the answer is first, always."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask")
        async def ask(params: Any, cx: acprt.Connection) -> str:
            cx.after_response(lambda: cx.send_notification("after", {"id": params["id"]}))
            await asyncio.sleep(0)
            cx.send_notification("before")
            return "answer"

        async def main():
            async with raw_client_of(endpoint) as peer:
                for id in range(200):
                    peer.request(id, "ask", {"id": id})
                answered, told = [], 0
                for _ in range(600):
                    line = await peer.receive()
                    if line.get("result") == "answer":
                        answered.append(line["id"])
                    elif line["method"] == "after":
                        assert line["params"]["id"] == answered[told]
                        told += 1
                assert told == 200

        run(main())

    def test_hook_may_be_a_coroutine_function(self, run):
        """What it returns to await runs beside the loop."""
        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_request("ask")
        async def ask(_params: Any, responder: Requests, cx: acprt.Connection) -> None:
            async def after() -> None:
                await asyncio.sleep(0)
                cx.send_notification("after")

            cx.after_response(after)
            responder.respond("answer")
            cx.after_response(lambda: cx.send_notification("at once"))

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                lines = [await peer.receive() for _ in range(3)]
                assert lines[0] == result(1, "answer")
                assert [line["method"] for line in lines[1:]] == ["at once", "after"]

        run(main())

    def test_hook_in_a_batch_runs_behind_the_array(self, run):
        """The answer leaves with the array, not with its slot."""
        endpoint, kept = keeper_by_id()

        @endpoint.method("announce")
        async def announce(_params: Any, cx: acprt.Connection) -> str:
            cx.after_response(lambda: cx.send_notification("after"))
            return "done"

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.send([{"jsonrpc": "2.0", "id": id, "method": m} for id, m in ((1, "announce"), (2, "ask"))])
                assert await peer.settled() == []
                kept[2].respond("kept")
                assert await peer.settled() == [
                    [result(1, "done"), result(2, "kept")],
                    {"jsonrpc": "2.0", "method": "after"},
                ]

        run(main())

    def test_failing_hook_costs_only_itself(self, run, caplog):
        """One hook must not take another hook or the connection with it."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("ask")
        async def ask(_params: Any, cx: acprt.Connection) -> None:
            cx.after_response(lambda: 1 / 0)
            cx.after_response(lambda: cx.send_notification("second"))

        async def main():
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.settled() == [result(1, None), {"jsonrpc": "2.0", "method": "second"}]

        run(main())
        assert "after_response" in caplog.text

    def test_outside_a_request_it_is_an_error(self, run):
        """A hook that can never run is refused."""

        async def main():
            async with raw_server_for(acprt.Endpoint("x")) as (cx, _peer):
                with pytest.raises(RuntimeError, match="after_response"):
                    cx.after_response(lambda: None)

        run(main())

    def test_hook_may_return_a_future(self, run):
        """A future is awaited like a coroutine; at the end of the connection it does not hold up the close."""

        async def main():
            endpoint = acprt.Endpoint("x", limits=Limits(drain_seconds=0.05))
            loop = asyncio.get_running_loop()
            futures = [loop.create_future(), loop.create_future()]

            @endpoint.on_receive_request("ask")
            async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                future = futures.pop()
                cx.after_response(lambda: future)
                kept.append(responder)

            kept: list[acprt.Responder[Any]] = []
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                peer.request(2, "ask")
                await peer.settled()
                kept[0].respond(None)
                await peer.receive()
                peer.cancel(2)
                peer.close_write()
                await asyncio.wait_for(peer.at_eof.wait(), 10)

        run(main())
