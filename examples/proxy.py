"""A proxy on stdio: `proxy.py CMD` takes the place of the agent that CMD starts, and names each message on stderr.

python examples/raw_prompt.py "python examples/proxy.py 'python examples/echo_agent.py'" "hello"

A request is sent on under an id of its own; `forward_response_to` brings its result or error back and takes a cancel
onward. The order of the wire holds on each hop.
"""

import asyncio
import sys

import acprt


async def main(command: str) -> None:
    front, back = acprt.Endpoint("proxy, client side"), acprt.Endpoint("proxy, agent side")
    client: asyncio.Future[acprt.Connection] = asyncio.get_running_loop().create_future()

    @back.on_receive_dispatch
    async def from_agent(dispatch: acprt.Dispatch) -> acprt.Handled | None:
        return forward(dispatch, await client, "from the agent")

    async with back.connect(acprt.AgentProcess.parse(command)) as agent:

        @front.on_receive_dispatch
        async def from_client(dispatch: acprt.Dispatch) -> acprt.Handled | None:
            return forward(dispatch, agent, "from the client")

        @front.with_spawned
        async def connected(cx: acprt.Connection) -> None:
            client.set_result(cx)

        await front.serve(acprt.stdio())


def forward(dispatch: acprt.Dispatch, onward: acprt.Connection, origin: str) -> acprt.Handled | None:
    """Send what came from one side to the other. The answers to what was sent on go to who waits for them."""
    if dispatch.kind == "response":
        return acprt.Handled.no(dispatch)
    print(f"proxy: {dispatch.kind} {dispatch.method} {origin}", file=sys.stderr)
    if dispatch.responder is not None:
        onward.send_request(dispatch.method, dispatch.raw_params).forward_response_to(dispatch.responder)
    elif dispatch.method != "$/cancel_request":  # its request is known here by another id: forward_response_to cancels
        onward.send_notification(dispatch.method, dispatch.raw_params)
    return None


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
