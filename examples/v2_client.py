"""A client of the version 2 draft: it reads a turn, cancels another, and picks the session up again.

What a session is now stands in `session.projection`, whatever the updates were that led there. The agent is
`v2_agent.py`, unless a command is given: `python v2_client.py "agent --its-flags"`.
"""

import asyncio
import shlex
import sys
from pathlib import Path

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2

AGENT = shlex.join([sys.executable, str(Path(__file__).with_name("v2_agent.py"))])

client = acp.Client.v2("v2-client", version="0.1.0")


@client.method
async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
    print(f"[asked: {request.title}]")
    return acp.allow_first(request)


async def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else AGENT
    async with client.connect(acprt.AgentProcess.parse(command)) as cx:
        peer = await acp.initialize(cx, fallback=False)
        print(f"{peer.info.name} speaks version {peer.version}")

        async with sessions_v2.session(cx, cwd=".") as session:
            turn = session.prompt("How many words are these?")
            async for update in turn:
                match update:
                    case v2.StateUpdate(state=state):
                        print(f"[{state}]")
                    case v2.AgentMessageChunk(content=v2.TextContent(text=text)):
                        print(f"agent: {text}")
            print(f"stopped: {turn.stop_reason}")
            for call in session.projection.tool_calls.values():
                print(f"tool: {call.title} ({call.status}) -> {call.raw_output}")

            waiting = session.prompt("wait")
            await waiting.started()
            waiting.cancel()
            print(f"stopped: {await waiting.finished()}")

        async with sessions_v2.resume_session(cx, session.id, cwd=".", replay=True) as again:
            for message in again.projection.messages:
                print(f"{message.kind}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
