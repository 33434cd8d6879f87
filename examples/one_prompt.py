"""One prompt against any agent: `python examples/one_prompt.py "CMD" "text"`.

It prints what the agent says as it comes, and why it stopped. What the agent asks permission for is allowed.
"""

import asyncio
import sys

import acprt
from acprt import acp
from acprt.acp import v1


async def main() -> None:
    client = acp.Client("one-prompt", version="0.1.0")

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return acp.allow_first(request)

    async with client.connect(acprt.AgentProcess.parse(sys.argv[1])) as cx:
        await acp.initialize(cx)  # negotiates, keeps the result on cx.peer
        async with acp.session(cx, cwd=".") as session:
            async for update in session.prompt(sys.argv[2]):  # typed updates in wire order
                match update:
                    case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                        print(text, end="", flush=True)
            print(f"\n[{session.stop_reason}]")


asyncio.run(main())
