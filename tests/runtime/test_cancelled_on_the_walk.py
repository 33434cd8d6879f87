"""A cancel that comes while an earlier handler decides whether a request is its own."""

from __future__ import annotations

import asyncio
from typing import Any

import acprt
from tests.rawpeer import raw_client_of, turns


def test_the_method_handler_behind_it_never_begins(run):
    """DEC-9, DEC-10: it would never learn of the cancel."""

    async def main():
        endpoint, asked, decides, began = acprt.Endpoint("agent"), asyncio.Event(), asyncio.Event(), []

        @endpoint.on_receive_request("work")
        async def first(params: Any, responder: acprt.Responder[Any]) -> acprt.Handled:
            asked.set()
            await decides.wait()
            return acprt.Handled.no()

        @endpoint.method("work")
        async def work(params: Any) -> None:
            began.append(params)

        async with raw_client_of(endpoint) as peer:
            peer.send('{"jsonrpc":"2.0","id":1,"method":"work"}')
            await asked.wait()
            peer.send('{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}')
            await turns()
            decides.set()
            assert [answer["error"]["code"] for answer in await peer.settled()] == [-32800]
            assert not began

    run(main())
