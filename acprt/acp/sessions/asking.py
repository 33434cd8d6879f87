"""Requests whose answer changes what is known of a session: it is taken in the ordered slot, never later.

Were it taken when the waiting task wakes up, an update that followed the answer could be overwritten by it, or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from acprt.errors import DispatchLoopBlocked
from acprt.runtime.connection import Connection
from acprt.runtime.messages import Request, method_of
from acprt.runtime.results import Err, Ok, Result

__all__ = ["ask", "refuse_in_dispatch_loop"]

R = TypeVar("R")
T = TypeVar("T")


async def ask(
    cx: Connection,
    request: Request[R],
    apply: Callable[[R], T],
    *,
    unwanted: Callable[[R], object] | None = None,
    undo: Callable[[T], object] | None = None,
    timeout: float | None = None,
) -> T:
    """Send `request`; what `apply(answer)` returned, called before any later message is looked at.

    Raises the peer's RpcError, what `apply` raised, and TimeoutError after `timeout` seconds. When the caller leaves
    before the answer, the request is cancelled; a success that comes all the same is given to `unwanted`. Who is
    cancelled in the moment of the answer never hears of it: what was applied is given to `undo`.
    """
    refuse_in_dispatch_loop(cx, f"the wait for the answer to {method_of(request)}")
    outcome: asyncio.Future[T] = cx.loop.create_future()

    async def answered(result: Result[R]) -> None:
        match result:
            case Ok(value) if outcome.done():
                if unwanted is not None:
                    unwanted(value)
            case Ok(value):
                try:
                    outcome.set_result(apply(value))
                except Exception as error:
                    outcome.set_exception(error)
            case Err(error) if not outcome.done():
                outcome.set_exception(error)

    sent = cx.send_request(request)
    sent.on_receiving_result(answered)
    try:
        async with asyncio.timeout(timeout):
            return await outcome
    except asyncio.CancelledError:
        sent.cancel()
        if undo is not None and outcome.done() and not outcome.cancelled() and outcome.exception() is None:
            undo(outcome.result())
        raise
    except TimeoutError:
        if not outcome.cancelled():  # the answer came in the same moment
            return outcome.result()
        sent.cancel()
        raise TimeoutError(sent.describe_silence()) from None


def refuse_in_dispatch_loop(cx: Connection, what: str) -> None:
    """Raise DispatchLoopBlocked where `what` would wait for ever: in the dispatch task itself."""
    if cx.dispatch.running is not None and asyncio.current_task() is cx.dispatch_task:
        raise DispatchLoopBlocked(
            f"{what} inside the dispatch loop, in {cx.running_handler}: the loop that would receive it is the one that "
            "waits. Move the session's work into cx.spawn(…) or a `method` handler"
        )
