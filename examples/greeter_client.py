"""The smallest client: it starts `greeter.py`, sends one request, and prints what comes back in the order it comes."""

import asyncio
import sys
from pathlib import Path

import acprt
from greeter import Hello, Progress

GREETER = Path(__file__).with_name("greeter.py")

client = acprt.Endpoint("caller")


@client.on_receive_notification  # runs in the dispatch loop, in wire order
async def progress(note: Progress, _cx: acprt.Connection) -> None:
    print(f"{note.percent} %")


async def main() -> None:
    async with client.connect(acprt.AgentProcess(sys.executable, GREETER)) as cx:
        reply = await cx.send_request(Hello(first_name="Ada")).block_task(timeout=30.0)
        print(reply.greeting)


if __name__ == "__main__":
    asyncio.run(main())
