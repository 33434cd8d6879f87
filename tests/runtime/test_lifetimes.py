"""What is let go, and when: nothing here waits for a garbage collection, which may come minutes later."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

import acprt
from acprt.runtime.responder import InboundRequest
from tests.rawpeer import raw_client_of, raw_server_for, turns
from tests.runtime.scripted import error, keeper

DROPPED = "request handler dropped its responder for `ask`"


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No collector runs: what has gone was let go by whoever held it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _alive() -> int:
    return sum(type(each) is InboundRequest for each in gc.get_objects())


@pytest.mark.usefixtures("uncollected")
class TestDroppedResponder:
    """A responder is dropped with the code that held it, whatever error that code has caught (DEC-14)."""

    @pytest.mark.parametrize("timeout", [None, 5.0])
    def test_after_an_error_of_a_request(self, run, timeout):
        """RS-03: the error holds its traceback, and that the responder: nothing may hold the error in turn."""

        async def main():
            endpoint = acprt.Endpoint()
            async with raw_server_for(acprt.Endpoint()) as (backend_cx, backend):

                @endpoint.on_receive_request("ask")
                async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                    async def work(responder: acprt.Responder[Any]) -> None:
                        sent = backend_cx.send_request("work")
                        with pytest.raises(acprt.RpcError, match="no"):
                            await sent.block_task(timeout)

                    cx.spawn(work(responder))

                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "ask")
                    await backend.receive()
                    backend.send(error(1, 7, "no"))
                    assert await peer.receive() == error(1, -32603, "Internal error", DROPPED)

        run(main())

    def test_after_an_error_of_cancellable_work(self, run):
        """CA-03, RS-03: so it is with `run_until_cancelled`."""

        async def main():
            endpoint = acprt.Endpoint()

            async def fail() -> None:
                raise ValueError("no")

            @endpoint.on_receive_request("ask")
            async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                async def work(responder: acprt.Responder[Any]) -> None:
                    try:
                        await responder.cancellation.run_until_cancelled(fail())
                    except ValueError:
                        return

                cx.spawn(work(responder))

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask")
                assert await peer.receive() == error(1, -32603, "Internal error", DROPPED)

        run(main())


@pytest.mark.usefixtures("uncollected")
class TestAnsweredRequests:
    """An answered request of the peer is gone when its handler is."""

    def test_answered_by_a_method(self, run):
        """PY-13: a task of a `method`, its context and its request do not hold each other."""
        before = _alive()  # what a thread of another test may still hold

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("ask")
            async def ask(params: Any) -> Any:
                if params == [7]:
                    raise acprt.RpcError(7, "no")
                return params

            @endpoint.method("in a thread")
            def in_a_thread(params: Any) -> Any:
                raise acprt.RpcError(7, "no")

            async with raw_client_of(endpoint) as peer:
                for id in range(1_000):
                    peer.request(id, "in a thread" if id % 100 == 0 else "ask", [id])
                for _ in range(1_000):
                    await peer.receive()
                await turns()
                assert _alive() - before < 5

        run(main())

    def test_answered_by_a_responder_that_is_kept(self, run):
        """PY-13: a kept responder keeps no params."""

        async def main():
            endpoint = acprt.Endpoint()
            kept: list[Any] = []

            @endpoint.on_receive_request("ask")
            async def ask(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                kept.append(responder)
                responder.respond(None)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "ask", ["x" * 100_000])
                await peer.receive()
                assert len(bytes(kept[0]._request.params)) == 0

        run(main())


class TestForwardedCancellation:
    """Requests that listened to the cancellation of a long one."""

    @pytest.mark.parametrize("end", ["answered", "left"])
    def test_they_are_not_kept_by_it(self, run, end):
        """SR-20: a long request does not keep the short ones that ended while it was served."""

        async def main():
            endpoint, kept = keeper()

            async with raw_client_of(endpoint) as up, raw_server_for(acprt.Endpoint()) as (cx, down):
                up.request(1, "ask")
                await up.settled()
                (responder,) = kept
                for id in range(1, 101):
                    sent = cx.send_request("short")
                    sent.forward_cancellation_from(responder.cancellation)
                    waiting = asyncio.create_task(sent.block_task())
                    await down.receive()
                    if end == "answered":
                        down.respond(id, None)
                        await waiting
                    else:
                        waiting.cancel()
                        await asyncio.wait([waiting])
                        assert (await down.receive())["method"] == "$/cancel_request"
                assert not responder._request.cancel_listeners
                last = cx.send_request("short")
                last.forward_cancellation_from(responder.cancellation)
                last.on_receiving_result(_ignore)
                assert (await down.receive())["id"] == 101
                up.cancel(1)
                assert (await down.receive())["params"] == {"requestId": 101}
                responder.respond(None)
                down.respond(101, None)
                await up.receive()

        run(main())


async def _ignore(_result: Any) -> None: ...
