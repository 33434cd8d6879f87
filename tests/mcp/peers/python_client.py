"""A client on the PyPI package `mcp`: tries one server command in one era and prints what it saw as one JSON object."""

from __future__ import annotations

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import SubscriptionLost


async def main(mode: str, command: list[str]) -> None:
    seen: dict[str, object] = {}
    parameters = StdioServerParameters(command=command[0], args=command[1:], env={"PYTHONPATH": sys.argv[2]})
    async with Client(parameters, mode=mode) as client:
        seen["version"] = client.protocol_version
        seen["server"] = client.server_info.name if client.server_info else None
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        steps: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            steps.append(done)

        result = await client.call_tool("slow", {"steps": 3, "seconds": 0.03}, progress_callback=progress)
        seen["slow"] = result.content[0].text
        seen["progress"] = steps
        with anyio.move_on_after(0.5) as scope:
            await client.call_tool("slow", {"steps": 10, "seconds": 30})
        seen["cancelled"] = scope.cancelled_caught
        try:
            await client.call_tool("slow", {"steps": 10, "seconds": 30}, read_timeout_seconds=0.3)
        except Exception as error:
            seen["timeout"] = type(error).__name__
        seen["quick"] = (await client.call_tool("quick", {"text": "x"})).content[0].text
        if client.protocol_version >= "2026":
            async with client.listen(tools_list_changed=True) as subscription:
                seen["touch"] = (await client.call_tool("touch", {})).content[0].text
                async for event in subscription:
                    seen["event"] = type(event).__name__
                    break
            async with client.listen(tools_list_changed=True) as subscription:
                await client.call_tool("end", {})
                try:
                    seen["ended"] = [type(event).__name__ async for event in subscription]
                except SubscriptionLost:
                    seen["ended"] = "lost"
    print(json.dumps(seen))


anyio.run(main, sys.argv[1], sys.argv[3:])
