"""A proxy that forwards raw params and results: `acprt_proxy.py LOOP COMMAND…` stands before COMMAND's agent."""

from __future__ import annotations

import asyncio
import sys

import acprt
from loops import loop_factory


async def main(command: list[str]) -> None:
    front, back = acprt.Endpoint("benchmark-proxy, front"), acprt.Endpoint("benchmark-proxy, back")
    client: asyncio.Future[acprt.Connection] = asyncio.get_running_loop().create_future()

    @back.on_receive_dispatch
    async def from_agent(dispatch: acprt.Dispatch) -> acprt.Handled | None:
        return forward(dispatch, await client)

    async with back.connect(acprt.AgentProcess(*command)) as agent:

        @front.on_receive_dispatch
        async def from_client(dispatch: acprt.Dispatch) -> acprt.Handled | None:
            return forward(dispatch, agent)

        @front.with_spawned
        async def connected(cx: acprt.Connection) -> None:
            client.set_result(cx)

        await front.serve(acprt.stdio())


def forward(dispatch: acprt.Dispatch, onward: acprt.Connection) -> acprt.Handled | None:
    if dispatch.responder is not None:
        onward.send_request(dispatch.method, dispatch.raw_params).forward_response_to(dispatch.responder)
    elif dispatch.kind == "response":
        return acprt.Handled.no(dispatch)
    elif dispatch.method != "$/cancel_request":  # its request is known here by another id: forward_response_to cancels
        onward.send_notification(dispatch.method, dispatch.raw_params)
    return None


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(main(sys.argv[2:]))
