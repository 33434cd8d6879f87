"""Raw handshakes for tests of both sides: what a client or an agent writes first, as the wire shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import acprt
from tests.rawpeer import RawPeer, raw_client_of

HELLO_V1 = {"protocolVersion": 1, "clientInfo": {"name": "raw", "version": "1"}}
HELLO_V2 = {"protocolVersion": 2, "info": {"name": "raw", "version": "1"}}


@asynccontextmanager
async def ready_client_of(agent: acprt.Endpoint, hello: Any = HELLO_V1) -> AsyncIterator[RawPeer]:
    """A raw client of `agent`, behind the handshake."""
    async with raw_client_of(agent) as client:
        client.request("hello", "initialize", hello)
        answer = await client.receive()
        assert answer["id"] == "hello"
        assert "result" in answer, answer
        yield client


def prompt_params(session_id: str = "s", text: str = "hi") -> dict[str, Any]:
    """Params of `session/prompt`, in either version."""
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}


async def answer_of(agent: acprt.Endpoint, params: Any) -> Any:
    """What a client gets for its `initialize`."""
    async with raw_client_of(agent) as client:
        client.request(0, "initialize", params)
        answer = await client.receive()
        assert answer["id"] == 0
        return answer.get("result", answer.get("error"))
