"""`SentRequest`: four explicit ways to take the answer of a request, exactly one of which is chosen.

Dropping the handle unconsumed cancels the request; nothing here waits except `block_task`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

from acprt.errors import AlreadyConsumed, RpcError
from acprt.runtime.calls import Callback, Mapped
from acprt.runtime.forwarding import Forwarding
from acprt.runtime.responder import RequestCancellation, Responder
from acprt.runtime.results import Err, Ok, Result
from acprt.runtime.waiting import BLOCK_TASK, TimedWaiting, Waiting

__all__ = ["SentRequest"]

R = TypeVar("R")
S = TypeVar("S")


class SentRequest(Waiting[R], eq=False):
    """A request that was sent. Take its answer with `block_task`, `on_receiving_result` (or `on_receiving_ok_result`),
    `forward_response_to` or `detach`; a handle that is dropped, or left as a context manager, before that cancels it.
    """

    @property
    def id(self) -> int:
        """The request's id on the wire."""
        return self._call.id

    @property
    def method(self) -> str:
        """The request's method."""
        return self._call.method

    def block_task(self, timeout: float | None = None) -> Coroutine[Any, Any, R]:
        """Wait here for the answer: its value, or the peer's RpcError raised.

        `timeout` in seconds cancels the request on expiry and raises TimeoutError; cancelling the awaiting task
        cancels the request too. In the dispatch loop of the same connection this raises DispatchLoopBlocked.
        """
        if timeout is not None and timeout != timeout:
            raise ValueError("timeout is not a number")
        if self._consumed is not None:
            self._consume(BLOCK_TASK)
        if timeout is not None:
            self._consumed = "block_task(timeout=…)"
            return TimedWaiting(self._call, BLOCK_TASK, timeout)  # type: ignore[return-value]  # as below
        self._consumed = BLOCK_TASK
        return self  # type: ignore[return-value]  # by its methods it is a coroutine, but not to a type checker

    def on_receiving_result(self, callback: Callable[[Result[R]], Awaitable[None]]) -> None:
        """Have the dispatch loop await `callback(Ok(value) | Err(error))` before it looks at the next message.

        The order holds when the callback is registered before the response arrives, as it is right after sending.
        A callback that raises ends the connection (SR-06).
        """
        self._consume("on_receiving_result")
        self._on_result(callback)

    def on_receiving_ok_result(
        self, responder: Responder[Any], callback: Callable[[R, Responder[Any]], Awaitable[None]]
    ) -> None:
        """As `on_receiving_result`, for success only: an error answers `responder` and `callback` is not called."""
        self._consume("on_receiving_ok_result")
        self._call.errors_to = responder.respond_with_error

        async def on_ok(result: Result[R]) -> None:
            match result:
                case Ok(value):
                    await callback(value, responder)
                case Err(error):
                    responder.respond_with_error(error)

        self._on_result(on_ok)

    def forward_response_to(self, responder: Responder[Any]) -> None:
        """Answer `responder` with the outcome, and cancel this request when the peer cancels that one (SR-10).

        That the connection behind this hop closed is told upstream in neutral words: its own did not (PY-63).
        """
        if self._consumed is not None:
            self._consume("forward_response_to")
        self._consumed = "forward_response_to"
        call = self._call
        forwarding = Forwarding(call, responder)
        call.errors_to = forwarding.fail
        if call.outcome is None and call.watched is None and type(call.decoder) is not Mapped:
            call.callback = forwarding
            responder._request.on_cancel(call.cancel, call)  # not watched: the answer forgets its listeners
        else:
            call.watch(responder._request)
            self._on_result(forwarding)

    def detach(self) -> None:
        """Let it run and ignore the answer."""
        self._consume("detach")
        self._call.leave()

    def cancel(self, *, reason: str | None = None) -> None:
        """Ask the peer to stop, once per request, whoever asks; the answer still comes where the protocol has one.

        `reason` is for the peer's eyes, where the protocol has a place for it.
        """
        self._call.cancel(reason)

    def describe_silence(self) -> str:
        """Why there may be no answer yet, as far as can be seen from here: for the text of a timeout of your own. Names
        the request, how long it waits, lines that could not be read, what became of a child, what holds the loop.
        """
        return self._call.table.cx.describe_silence(self._call)

    def map(self, fn: Callable[[R], S]) -> SentRequest[S]:
        """A handle whose success value is `fn(value)`, called once; errors bypass it. Consumes this handle."""
        self._consume("map")
        call, decoder = self._call, self._call.decoder
        if type(decoder) is Mapped:
            inner = decoder.fn
            call.decoder = Mapped(decoder.decoder, lambda value: fn(inner(value)))
        else:
            call.decoder = Mapped(decoder, fn)
        return SentRequest(call)

    def forward_cancellation_from(self, cancellation: RequestCancellation) -> None:
        """Cancel this request when that one is cancelled, from the moment its answer is waited for (SR-20)."""
        self._call.watch(cancellation._request)

    def __enter__(self) -> SentRequest[R]:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._consumed is None:
            self._consumed = "leaving its with block"
            self._call.abandon()

    def __repr__(self) -> str:
        state = "pending" if self._call.outcome is None else "answered"
        return f"<SentRequest {self.method} id={self.id} {state}>"

    def _consume(self, way: str) -> None:
        if self._consumed is not None:
            raise AlreadyConsumed(
                f"the answer of {self.method} (id {self.id}) was already taken by {self._consumed}; {way} came second"
            )
        self._consumed = way

    def _on_result(self, callback: Callable[[Result[R]], Awaitable[None]]) -> None:
        call = self._call
        if type(call.decoder) is not Mapped:
            call.callback = cast("Callback", callback)
        else:
            transform = call.decoder.fn

            async def transformed(result: Result[Any]) -> None:
                await callback(_map_result(result, transform))

            call.callback = transformed
        if call.outcome is None:
            call.awaited()
        elif call.errors_to is None and call.table.cx.is_ending:
            call.callback = None
            raise call.table.cx.ends.closed_error(call.method)  # nothing runs a callback any more (SR-07)
        else:
            call.table.run_late(call)


def _map_result(result: Result[Any], transform: Callable[[Any], Any]) -> Result[Any]:
    if isinstance(result, Err):
        return result
    try:
        return Ok(transform(result.value))
    except RpcError as error:
        return Err(error)
