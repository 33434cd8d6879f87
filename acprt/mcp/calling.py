"""A request with the two clocks that MCP wants: one that progress winds up again, and one that nothing stops."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable
from typing import TypeVar

from acprt.errors import RpcError
from acprt.mcp.handshake import dialect_of
from acprt.mcp.messages import ListenRequest, ProgressNotification
from acprt.runtime.connection import Connection
from acprt.runtime.messages import Request, method_of

__all__ = ["call"]

R = TypeVar("R")


async def call(
    cx: Connection,
    request: Request[R],
    *,
    on_progress: Callable[[ProgressNotification], object] | None = None,
    idle_seconds: float = 30.0,
    absolute_seconds: float = 120.0,
) -> R:
    """Send `request` and wait for its result, for `idle_seconds` since its last progress and `absolute_seconds` in all.

    `on_progress(note)` is called when a progress is read, in order and before the result; it must be quick. When a
    clock runs out the request is cancelled, whichever it was, with a reason, and TimeoutError raised; `math.inf` stops
    a clock. Cancelling the task cancels the request too. Raises the peer's RpcError. A subscription has no clock: wait
    with `block_task()`.
    """
    if isinstance(request, ListenRequest):
        raise TypeError("a subscription lives until it is closed: cx.send_request(…).block_task()")
    if inspect.iscoroutinefunction(on_progress):
        raise TypeError("on_progress is a plain function: it is called where messages are read, and never awaited")
    _require_seconds("idle_seconds", idle_seconds)
    _require_seconds("absolute_seconds", absolute_seconds)
    dialect, loop = dialect_of(cx), cx.loop
    ends = loop.time() + absolute_seconds
    clock = asyncio.timeout(None)
    timer: asyncio.TimerHandle | None = None
    why: str | None = None

    def wind_up() -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
        idle_ends = loop.time() + idle_seconds
        if idle_ends < ends:
            timer = loop.call_at(idle_ends, run_out, f"no progress within {idle_seconds:g} s")
        elif ends < math.inf:
            timer = loop.call_at(ends, run_out, f"no result within {absolute_seconds:g} s")

    def run_out(text: str) -> None:
        nonlocal why
        why = text
        sent.cancel(reason=text)
        clock.reschedule(loop.time())  # for a request that is never cancelled

    def heard(note: ProgressNotification) -> None:
        if why is None:
            wind_up()
        if on_progress is not None:
            on_progress(note)

    with dialect.progress.listening(heard) as token:
        dialect.next_token = token
        try:
            sent = cx.send_request(request)
        finally:
            dialect.next_token = None  # a request that failed at once took none
        dialect.progress.sent(sent.id, token)
        waiting = sent.block_task()
        wind_up()
        try:
            async with clock:
                return await waiting
        except (TimeoutError, RpcError):
            if why is None:
                raise
            raise TimeoutError(f"{method_of(request)} (id {sent.id}): {why}") from None
        finally:
            dialect.progress.answered(sent.id)
            if timer is not None:
                timer.cancel()


def _require_seconds(name: str, seconds: object) -> None:
    """Refuse what would fail, or never run out, once the request is sent."""
    if not isinstance(seconds, int | float):
        raise TypeError(f"{name} is a number of seconds (math.inf: no bound), not {seconds!r}")
    if math.isnan(seconds):
        raise ValueError(f"{name} is nan")
