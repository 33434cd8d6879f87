"""Methods that the protocol does not have: their names begin with `_`, and a side tells that it has them in `_meta`.

Agent and client run in this one process. The client asks only since the agent offered, and an agent that is asked for
what it does not know refuses; neither side is disturbed.
"""

import asyncio
from typing import Any

import acprt
from acprt import acp
from acprt.acp import v1

WORD_COUNT = "_example.com/word_count"
TYPING = "_example.com/typing"

agent = acp.Agent(
    "counter", version="0.1.0", capabilities=v1.AgentCapabilities(meta={"example.com": {"wordCount": True}})
)


@agent.method(WORD_COUNT)
async def word_count(params: Any) -> Any:
    return {"words": len(params["text"].split())}


@agent.on_receive_notification(TYPING)
async def typing(params: Any) -> None:
    print(f"the user types: {params['text']}")


async def main() -> None:
    client = acp.Client("curious", version="0.1.0")
    async with client.connect(agent) as cx:
        peer = await acp.initialize(cx)
        offered = (peer.capabilities.meta or {}).get("example.com", {})
        if offered.get("wordCount"):
            cx.send_notification(TYPING, {"text": "to be or"})
            answer = await cx.send_request(WORD_COUNT, {"text": "to be or not to be"}).block_task(timeout=10)
            print(f"{answer['words']} words")
        try:
            await cx.send_request("_example.com/rhyme", {"text": "be"}).block_task(timeout=10)
        except acprt.RpcError as error:
            print(error)


if __name__ == "__main__":
    asyncio.run(main())
