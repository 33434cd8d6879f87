"""The dispatch loop: one task that takes frames in order and awaits each ordered handler before the next (DL-01).

How a message is offered to its handlers is the business of `walks`. `method` handlers are no part of it: their tasks
are started here, in wire order, and run beside the loop (DEC-7). No error of a handler, of a line or of a decoder ends
this loop; a failing ordered callback ends the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from acprt.errors import RpcError
from acprt.runtime.handlers import Chains, Link, name_of
from acprt.runtime.inbox import EndOfInput, InboundBatch, Item
from acprt.runtime.responder import ANSWERED, InboundRequest
from acprt.runtime.walks import Walks
from acprt.wire.frames import MalformedFrame, NotificationFrame, ResponseFrame, encode_error

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection, Rooms

__all__ = ["DispatchLoop"]


class DispatchLoop:
    """Runs one connection's frames through its handlers. `run` is the body of the dispatch task."""

    def __init__(self, cx: Connection, rooms: Rooms, chains: Chains, on_end: Callable[[], Awaitable[None]]) -> None:
        self.running: Link | Callable[..., Any] | None = None  # the handler or callback that holds the loop
        self.turns = 0  # how often a handler or callback took the loop, for the watchdog
        self.chains = chains  # the handlers of what comes next
        self._walks = Walks(cx, rooms, self)
        self._dynamic = rooms.dynamic
        self._methods = rooms.methods
        self._inbox = rooms.inbox
        self._calls = rooms.calls
        self._put = rooms.outbox.put
        self._on_end = on_end
        rooms.inbox.run_ahead = self.run_ahead

    @property
    def running_name(self) -> str:
        """The handler that holds the loop now, for messages."""
        running = self.running
        if running is None:
            return "a close callback"  # the only other thing that runs in the dispatch task
        return name_of(running.handler if isinstance(running, Link) else running)

    def use(self, chains: Chains) -> None:
        """Dispatch what comes next to these handlers."""
        self.chains = chains

    async def run(self) -> None:
        """Dispatch until cancelled."""
        inbox, dynamic, walks = self._inbox, self._dynamic, self._walks
        while True:
            if dynamic.replays:
                await self._replay()
            items = inbox.next_items()
            if items is None:
                await inbox.wait()
                continue
            rest = iter(items)
            item: Item | None
            for item in rest:
                while type(item) is NotificationFrame:  # by exact type, as the reader does
                    item = await walks.notifications(item, rest)
                    if not inbox.receives:  # the connection ends, and a handler swallowed its cancellation
                        return
                    if dynamic.replays:
                        await self._replay()
                work: Awaitable[None] | None  # what is left to wait for; the commonest frames leave nothing
                if type(item) is InboundRequest:
                    work = self._begin_request(item)
                elif type(item) is ResponseFrame:
                    work = self._begin_response(item)
                elif item is not None:
                    work = self._dispatch(item)
                else:  # those notifications were the last
                    break
                if work is not None:
                    await work
                    del work
                    if not inbox.receives:  # as above
                        return
                if dynamic.replays:
                    await self._replay()  # parked messages come before the next frame (DY-10)
            del item, items, rest  # nothing is held while the loop waits (DEC-14)
            if not inbox.receives:
                return
            if inbox.has_more:
                await asyncio.sleep(0)  # a burst must not starve writers and tasks

    def run_ahead(self, items: list[Item]) -> list[Item]:
        """Begin the leading items that need no waiting, in order, while the loop itself waits for input; the rest.

        They are what the loop would do next, so nothing is overtaken: no frame is queued and no ordered handler runs.
        The tasks of `method` handlers are made here, in wire order, and take their first steps after it.
        """
        if self._dynamic.replays:
            return items
        calls = self._calls
        routes_responses = not (self.chains.sees_responses or self._dynamic.chains)
        for at, item in enumerate(items):
            if type(item) is InboundRequest:
                link = self.chains.methods.get(item.method)
                if link is None:
                    return items[at:]
                if item.state is not ANSWERED:
                    self._methods.start(link, item, item.params)
            elif type(item) is ResponseFrame and routes_responses:
                call = calls.take(item.id)
                if call is not None:
                    if call.callback is not None:
                        calls.put_back(call)
                        return items[at:]
                    call.settle(item)
            else:
                return items[at:]
        return []

    async def _dispatch(self, item: InboundBatch | MalformedFrame | EndOfInput) -> None:
        if isinstance(item, InboundBatch):
            for member in item.members:
                await self._member(member)
                if not self._inbox.receives:  # as in `run`
                    return
                if self._dynamic.replays:
                    await self._replay()
            item.reply.dispatched()
        elif isinstance(item, MalformedFrame):
            self._malformed(item, in_batch=False)
        else:
            await self._methods.first_steps_taken()
            await self._on_end()

    async def _member(self, member: InboundRequest | NotificationFrame | ResponseFrame | MalformedFrame) -> None:
        work: Awaitable[None] | None = None
        if isinstance(member, InboundRequest):
            work = self._begin_request(member)
        elif isinstance(member, ResponseFrame):
            work = self._begin_response(member)
        elif isinstance(member, NotificationFrame):
            await self._walks.notifications(member, iter(()))
        else:
            self._malformed(member, in_batch=True)
        if work is not None:
            await work

    def _begin_request(self, request: InboundRequest) -> Awaitable[None] | None:
        """Handle a request as far as can be done without waiting; the rest is what is returned."""
        if request.state is ANSWERED:  # cancelled while it was queued (DEC-10)
            return None
        link = self.chains.methods.get(request.method)
        if link is not None:
            self._methods.start(link, request, request.params)
            return None
        chain = self.chains.requests.get(request.method, self.chains.other_requests)
        if chain or self._dynamic.chains:
            return self._walks.request(request, chain)
        request.fail(RpcError.method_not_found(request.method))
        return None

    def _begin_response(self, frame: ResponseFrame) -> Awaitable[None] | None:
        """Route a response as far as can be done without waiting; the rest is what is returned."""
        call = self._calls.take(frame.id)
        if call is None:
            return None
        chains = self.chains
        if chains.sees_responses or self._dynamic.chains:
            return self._walks.response(call, frame, chains.responses.get(call.method, chains.other_responses))
        if call.settle(frame) and call.callback is not None:
            return self._walks.call_back(call)
        return None

    async def _replay(self) -> None:
        """Offer parked messages to handlers registered since: to the new handler only, in order (DY-06)."""
        while self._dynamic.replays:
            for offer, link in self._dynamic.next_replays():
                await self._walks.parked(offer, link)

    def _malformed(self, frame: MalformedFrame, *, in_batch: bool) -> None:
        """Count a line that is no message, fail the request it was meant for, and answer it if that is ours to do.

        In a batch the reader filled its slot, and only broken answers come here.
        """
        self._inbox.count_bad(frame)
        if frame.reply_id is not UNSET:
            call = self._calls.find(frame.reply_id)
            if call is not None:
                data = {"reason": "malformed_response", "method": call.method, **frame.error.data}
                self._calls.fail(call, RpcError.internal_error(data))
        if not in_batch and self._inbox.deserves_answer(frame):
            self._put(encode_error(frame.answer_id, frame.error))
