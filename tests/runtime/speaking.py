"""A dialect of another protocol, a scripted connection that speaks it, and handlers that wait."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import acprt
from tests.runtime.scripted import ScriptedTransport


class Silent(acprt.Dialect):
    """A protocol that answers nothing to a cancelled request, and says nothing more about it."""

    name = "silent"
    answers_cancelled = False
    gates_frames = True
    withdraws_queued = True
    cascades_cancel = True


@asynccontextmanager
async def speaking(dialect: acprt.Dialect, endpoint: acprt.Endpoint | None = None):
    """A scripted connection in that dialect."""
    endpoint = endpoint or acprt.Endpoint("x")
    endpoint.dialect = dialect
    transport = ScriptedTransport()
    async with endpoint.connect(transport) as cx:
        yield cx, transport


def waiting_endpoint() -> tuple[acprt.Endpoint, list[str]]:
    """`slow` waits for ever, `stubborn` swallows its cancel and returns, `broken` raises from its clean-up."""
    endpoint = acprt.Endpoint("x")
    steps: list[str] = []

    @endpoint.method("slow")
    async def slow(_params: Any) -> None:
        steps.append("slow")
        await asyncio.Event().wait()

    @endpoint.method("stubborn")
    async def stubborn(_params: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("swallowed")
        return "value"

    @endpoint.method("broken")
    async def broken(_params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("clean-up")

    return endpoint, steps
