"""The outcome of one request on its way to the responder of another: as it came.

The end of the connection downstream is put into words fit for the next hop where every error is answered (SR-11).

*Upstream* is the peer whose request is answered here, *downstream* the one that the request was sent on to.
"""

from __future__ import annotations

from typing import Any

import msgspec

from acprt.errors import RpcError
from acprt.runtime.calls import OutgoingCall
from acprt.runtime.responder import Responder
from acprt.runtime.results import Result
from acprt.wire.frames import ResponseFrame
from acprt.wire.payloads import result_to_forward

__all__ = ["Forwarding"]


class Forwarding(msgspec.Struct, eq=False):
    """The ordered callback of `forward_response_to`. It never waits, so the dispatch loop calls `deliver` where that is
    enough, and makes no coroutine (bench-core w12); awaited, it is a callback like any other.
    """

    call: OutgoingCall
    responder: Responder[Any]

    def deliver(self) -> None:
        """Answer with the settled outcome: a result on the same loop's thread goes on by the shortest way."""
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
        """The same, told the outcome as any callback is."""
        self._answer(result)

    def fail(self, error: RpcError) -> None:
        """The request ended on this side: nothing was heard of it from downstream."""
        self.responder.respond_with_error(error)

    def _answer(self, result: Result[Any]) -> None:
        self.responder.respond_with_result(result)
