"""A client on the PyPI package `acp-client`, which has a JSON-RPC of its own: `acp_client_client.py AGENT ARGS…`.

It sends one prompt and reads it to its end, one in which the agent asks for permission, and one that it cancels at the
first update, and prints what it saw as one JSON object. This client ends the agent by SIGTERM, its stdin still open.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from acp_client import Agent


async def permit(request: dict[str, Any]) -> str | None:
    return next(option["optionId"] for option in request["options"] if option["kind"] == "allow_once")


async def main(command: list[str]) -> None:
    agent = Agent(command, Path("/"), permission=permit)
    texts: list[str] = []

    def keep(update: dict[str, Any]) -> None:
        texts.append(update["content"]["text"])

    async def ask(text: str, on_text: Any = None) -> list[str]:
        texts.clear()
        await agent.ask(text, on_text=on_text, on_update=keep)
        return list(texts)

    seen: dict[str, Any] = {"texts": await ask("one two three"), "asked_texts": await ask("ASK")}
    seen["cancelled_texts"] = await ask("WAIT", on_text=lambda _: agent.cancel())
    process = agent.process
    assert process is not None
    await agent.stop()
    seen["exit_status"] = process.returncode
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1:]), 30))
