"""A connection that ends while a response of it is under way in the dispatch loop: whoever waits is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_server_for, turns

WAYS = ("forward_response_to", "map", "on_receiving_ok_result", "on_receiving_result")


def hand_on(sent: acprt.SentRequest[Any], responder: acprt.Responder[Any], way: str) -> None:
    """Answer `responder` with what comes for `sent`, in one of the ways to do so."""

    async def on_ok(value: Any, responder: acprt.Responder[Any]) -> None:
        responder.respond(value)

    async def on_result(result: acprt.Result[Any]) -> None:
        responder.respond_with_result(result)

    if way == "forward_response_to":
        sent.forward_response_to(responder)
    elif way == "map":
        sent.map(lambda value: value).forward_response_to(responder)
    elif way == "on_receiving_ok_result":
        sent.on_receiving_ok_result(responder, on_ok)
    else:
        sent.on_receiving_result(on_result)


@asynccontextmanager
async def held_up(way: str, *, routes: bool = False) -> AsyncIterator[tuple[acprt.Connection, asyncio.Task[Any]]]:
    """The connection to an agent, in whose handler of responses the answer to a client's request is stuck, and what
    waits for that answer at the client. `routes`: the handler delivered 2 before it got stuck.
    """
    hop, upstream = acprt.Endpoint("hop"), acprt.Endpoint("upstream")
    reached = asyncio.Event()

    @hop.on_receive_dispatch
    async def look(dispatch: acprt.Dispatch[Any]) -> None:
        if routes:
            assert dispatch.router is not None
            dispatch.router.route(2)
        reached.set()
        await asyncio.Event().wait()

    async with raw_server_for(hop) as (down, agent):

        @upstream.on_receive_request("work")
        async def work(params: Any, responder: acprt.Responder[Any]) -> None:
            hand_on(down.send_request("work"), responder, way)

        async with acprt.Endpoint("client").connect(upstream) as client:
            waiting = asyncio.create_task(client.send_request("work").block_task(timeout=5))
            await turns()
            agent.send('{"jsonrpc":"2.0","id":1,"result":1}')
            await reached.wait()
            yield down, waiting


class TestUnderAHandler:
    """An `on_receive_dispatch` handler has the response when its connection closes."""

    @pytest.mark.parametrize("way", WAYS)
    def test_the_next_hop_is_answered(self, run, way):
        """EO-02: nothing that came and was not delivered leaves somebody waiting."""

        async def main():
            async with held_up(way) as (down, waiting):
                await down.aclose()
                with pytest.raises(acprt.RpcError, match="closed"):
                    await waiting

        run(main())

    @pytest.mark.parametrize("way", WAYS)
    def test_what_the_handler_had_routed_is_the_answer(self, run, way):
        """OB-11: the first outcome stands, also when the handler goes no further."""

        async def main():
            async with held_up(way, routes=True) as (down, waiting):
                await down.aclose()
                assert await waiting == 2

        run(main())

    def test_a_waiter_learns_that_the_connection_was_closed(self, run):
        """EO-02: not that a handler dropped the response."""

        async def main():
            hop, reached = acprt.Endpoint("hop"), asyncio.Event()

            @hop.on_receive_dispatch
            async def look(dispatch: acprt.Dispatch[Any]) -> None:
                reached.set()
                await asyncio.Event().wait()

            async with raw_server_for(hop) as (down, agent):
                waiting = asyncio.create_task(down.send_request("work").block_task())
                await turns()
                agent.send('{"jsonrpc":"2.0","id":1,"result":1}')
                await reached.wait()
                await down.aclose()
                with pytest.raises(acprt.RpcError) as caught:
                    await waiting
                assert caught.value.data["reason"] == "connection_closed"

        run(main())
