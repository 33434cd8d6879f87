"""An endpoint as a transport: its other end is served in a task of this loop, through memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from acprt.limits import Limits
from acprt.runtime.tasks import cancelled_and_gone
from acprt.transports.base import ChildStatus, Sink, Transport
from acprt.transports.memory import memory_pair

__all__ = ["EndpointTransport"]

logger = logging.getLogger("acprt.dispatch")


class EndpointTransport:
    """One end of a memory pair whose other end an endpoint serves until this end closes."""

    def __init__(self, serve: Callable[[Transport], Awaitable[None]], name: str) -> None:
        self._serve = serve
        self._name = name
        self._near, self._far = memory_pair()
        self._serving: asyncio.Task[None] | None = None
        self._grace = 0.0

    @property
    def peer_is_child(self) -> bool:
        """False: nobody was spawned."""
        return False

    def open(self, sink: Sink, limits: Limits) -> None:
        """Start serving the other end."""
        self._grace = limits.drain_seconds + limits.exit_grace_seconds
        self._near.open(sink, limits)
        self._serving = asyncio.get_running_loop().create_task(self._run(), name=f"acprt serving {self._name}")

    async def _run(self) -> None:
        try:
            await self._serve(self._far)
        except Exception as error:
            logger.error("%s: the endpoint served in process failed: %r", self._name, error)
        finally:
            await self._far.aclose()

    def write(self, data: bytes) -> None:
        """Send `data` to the other end."""
        self._near.write(data)

    async def drain(self) -> None:
        """Wait until the other end has read everything."""
        await self._near.drain()

    def pause_reading(self) -> None:
        """Deliver no more lines until `resume_reading`."""
        self._near.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again."""
        self._near.resume_reading()

    def close_write(self) -> None:
        """Let the other end see EOF."""
        self._near.close_write()

    async def aclose(self) -> None:
        """End the other end: EOF, then its own bounded drain, then cancellation."""
        self._near.close_write()
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=self._grace)
            if not self._serving.done():
                self._serving.cancel()
                await cancelled_and_gone([self._serving])
        await self._near.aclose()

    def facts(self) -> dict[str, Any]:
        """Nothing: what went wrong over there was logged there."""
        return {}

    def child_status(self) -> ChildStatus | None:
        """None: there is no process."""
        return None
