"""The outcome of one request on its way to the responder of another: as it came, or in words fit for the next hop."""

from __future__ import annotations

from typing import Any

import msgspec

from acprt.errors import INCOMING_TRANSPORT_CLOSED, RpcError
from acprt.runtime.calls import OutgoingCall
from acprt.runtime.responder import Responder
from acprt.runtime.results import Ok, Result
from acprt.wire.frames import ResponseFrame
from acprt.wire.payloads import result_to_forward

__all__ = ["Forwarding", "neutral", "upstream"]

_DOWNSTREAM = {
    INCOMING_TRANSPORT_CLOSED: "downstream_closed",
    "connection_closed": "downstream_closed",
    "connection_failed": "downstream_failed",
}
"""Reasons that this side gives to a request when its connection ends, and what they are called one hop further up."""


class Forwarding(msgspec.Struct, eq=False):
    """The ordered callback of `forward_response_to`. It never waits, so the dispatch loop delivers without a coroutine;
    awaited, it is a callback like any other.
    """

    call: OutgoingCall
    responder: Responder[Any]

    def deliver(self) -> None:
        """Answer with the settled outcome."""
        call, outcome, request = self.call, self.call.outcome, self.responder._request
        if (
            type(outcome) is not ResponseFrame
            or outcome.error is not None
            or request.table.thread_id != call.table.thread_id
        ):
            self._answer(call.as_result())
            return
        try:
            result = outcome.result
            value = result_to_forward(result) if call.decoder is None else call.result()
        except RpcError as error:
            request.fail(error)
        else:
            request.answer(value)

    async def __call__(self, result: Result[Any]) -> None:
        """The same as an ordinary callback, where none is run at once."""
        self._answer(result)

    def fail(self, error: RpcError) -> None:
        """The request ended on this side."""
        self.responder.respond_with_error(neutral(error, self.call.method))

    def _answer(self, result: Result[Any]) -> None:
        if isinstance(result, Ok):
            self.responder.respond(result.value)
        else:
            self.responder.respond_with_error(upstream(result.error, self.call))


def upstream(error: RpcError, call: OutgoingCall) -> RpcError:
    """The error of `call` as the next hop is told it: what the peer said goes on as it is, whatever it says."""
    return error if type(call.outcome) is ResponseFrame else neutral(error, call.method)


def neutral(error: RpcError, method: str) -> RpcError:
    """An error of this side, fit for another connection: how this hop ended is no statement about that one, and what is
    known of its end (a local error, a child's stderr) is not for its peer (SR-11).
    """
    reason = error.data.get("reason") if isinstance(error.data, dict) else None
    told = _DOWNSTREAM.get(reason) if isinstance(reason, str) else None
    if told is None:
        return error
    return RpcError.internal_error({"reason": told, "method": method})
