"""The dispatch loop: one task that takes frames in order and awaits each ordered handler before the next (DL-01).

`method` handlers are the exception: their tasks are started here, in wire order, and run beside the loop (DEC-7).
No error of a handler, of a line or of a decoder ends this loop; a failing ordered callback ends the connection.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from acprt.errors import RpcError
from acprt.runtime.calls import OutgoingCall
from acprt.runtime.forwarding import Forwarding
from acprt.runtime.handlers import Chains, Handled, Link, name_of
from acprt.runtime.inbox import EndOfInput, InboundBatch, Item
from acprt.runtime.responder import ANSWERED, QUEUED, RUNNING, InboundRequest, current_request
from acprt.runtime.routing import Dispatch, Offer, response_dispatch
from acprt.wire.frames import (
    NO_PARAMS,
    UNREADABLE,
    MalformedFrame,
    NotificationFrame,
    ResponseFrame,
    encode_error,
)
from acprt.wire.payloads import decode_params

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection, Rooms

__all__ = ["DispatchLoop"]

logger = logging.getLogger("acprt.dispatch")


OtherItem = InboundRequest | ResponseFrame | InboundBatch | MalformedFrame | EndOfInput


class DispatchLoop:
    """Runs one connection's frames through its handlers. `run` is the body of the dispatch task."""

    def __init__(self, cx: Connection, rooms: Rooms, chains: Chains, on_end: Callable[[], Awaitable[None]]) -> None:
        self.running: Link | Callable[..., Any] | None = None  # the handler or callback that holds the loop
        self.turns = 0  # how often a handler or callback took the loop, for the watchdog
        self._cx = cx
        self._chains = chains
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
        self._chains = chains

    async def run(self) -> None:
        """Dispatch until cancelled."""
        inbox, dynamic = self._inbox, self._dynamic
        while True:
            if dynamic.replays:
                await self._replay()
            items = inbox.next_items()
            if items is None:
                await inbox.wait()
                continue
            rest = iter(items)
            for item in rest:
                if type(item) is NotificationFrame:  # by exact type, as the reader does
                    following = await self._notifications(item, rest)
                    if following is None:
                        break
                    item = following
                work: Awaitable[None] | None  # what is left to wait for; the commonest frames leave nothing
                if type(item) is InboundRequest:
                    work = self._begin_request(item)
                elif type(item) is ResponseFrame:
                    work = self._begin_response(item)
                else:
                    work = self._dispatch(item)
                if work is not None:
                    await work
                    del work
                    if not inbox.receives:  # the connection ends, and a handler swallowed its cancellation
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
        routes_responses = not (self._chains.sees_responses or self._dynamic.chains)
        for at, item in enumerate(items):
            if type(item) is InboundRequest:
                link = self._chains.methods.get(item.method)
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
            await self._notifications(member, iter(()))
        else:
            self._malformed(member, in_batch=True)
        if work is not None:
            await work

    def _begin_request(self, request: InboundRequest) -> Awaitable[None] | None:
        """Handle a request as far as can be done without waiting; the rest is what is returned."""
        if request.state is ANSWERED:  # cancelled while it was queued (DEC-10)
            return None
        link = self._chains.methods.get(request.method)
        if link is not None:
            self._methods.start(link, request, request.params)
            return None
        chain = self._chains.requests.get(request.method, self._chains.other_requests)
        if chain or self._dynamic.chains:
            return self._walk_request(request, chain)
        request.fail(RpcError.method_not_found(request.method))
        return None

    def _begin_response(self, frame: ResponseFrame) -> Awaitable[None] | None:
        """Route a response as far as can be done without waiting; the rest is what is returned."""
        call = self._calls.take(frame.id)
        if call is None:
            return None
        chains = self._chains
        if chains.sees_responses or self._dynamic.chains:
            return self._walk_response(call, frame, chains.responses.get(call.method, chains.other_responses))
        if call.settle(frame) and call.callback is not None:
            return self._call_back(call)
        return None

    async def _walk_request(self, request: InboundRequest, chain: Sequence[Link]) -> None:
        method, params = request.method, request.params  # an answered request has none any more
        token = current_request.set(request)
        request.hold()
        parked = claimed = False
        declined: Any = None
        try:
            if chain:  # the first has its turn here, which saves two coroutines in every request (bench-core w12)
                link = chain[0]
                if self._methods.unstarted:
                    await self._methods.first_steps_taken()
                self.running = link
                self.turns += 1
                try:
                    declined = await link.call_with_request(request, method, params, self._cx)
                except RpcError:
                    raise
                except (Exception, asyncio.CancelledError) as error:
                    raise self._told(link, method, error) from None
                finally:
                    self.running = None
                claimed = declined is None
            if not claimed:
                offer = Offer(method, params, request)
                claimed, retry = await self._walk(offer, chain, declined)
                parked = not claimed and retry and self._dynamic.park(offer)
                if not claimed and not parked:
                    request.fail(RpcError.method_not_found(offer.method))
        except RpcError as error:
            request.fail(error)
        finally:
            current_request.reset(token)
            if request.task is None:  # else a `method` handler took it: its return value is the answer
                request.release(parked=parked)

    async def _notifications(self, first: NotificationFrame, rest: Iterator[Item]) -> OtherItem | None:
        """Hear `first` and the notifications right behind it, in one coroutine for all (bench-core w3).

        Returns the item behind them; None when there is none, or the connection ends.
        """
        chains, dynamic, methods, inbox = self._chains, self._dynamic, self._methods, self._inbox
        links = chains.first_notifications
        item: Item | None = first
        while type(item) is NotificationFrame:
            link = links.get(item.method)
            if link is None or dynamic.chains:
                chain = chains.notifications.get(item.method, chains.other_notifications)
                await self._walk_notification(Offer(item.method, item.params), chain)
            else:
                if methods.unstarted:
                    await methods.first_steps_taken()
                self.running = link
                self.turns += 1
                try:
                    try:
                        message = link.decode(item.params)
                    except UNREADABLE:
                        message = decode_params(link.decoder, item.params)  # a call less for the rest (w3)
                    outcome = await (link.handler(message, self._cx) if link.takes_cx else link.handler(message))
                    if outcome is not None:
                        chain = chains.notifications[item.method]
                        await self._walk_notification(Offer(item.method, item.params), chain, declined=outcome)
                except Exception as error:
                    self._notification_failed(link, item.method, error)
                except asyncio.CancelledError:
                    self._check_cancellation()
                    logger.error("handler %s of %s was cancelled from inside", link.route.name, item.method)
                finally:
                    self.running = None
            if not inbox.receives:
                return None
            if dynamic.replays:
                await self._replay()
            item = next(rest, None)
        return item

    def _notification_failed(self, link: Link, method: str, error: Exception) -> None:
        if isinstance(error, RpcError):
            logger.warning("notification %s failed in %s: %s", method, link.route.name, error)
        else:
            self._log_failure(link, method, error)

    async def _walk_notification(self, offer: Offer, chain: Sequence[Link], declined: Any = None) -> None:
        try:
            claimed, retry = await self._walk(offer, chain, declined)
        except RpcError:
            return  # logged where it happened
        if retry:
            self._dynamic.park(offer)
        elif not claimed:
            logger.debug("ignored notification %s: no handler took it", offer.method)

    async def _walk_response(self, call: OutgoingCall, frame: ResponseFrame, chain: Sequence[Link]) -> None:
        call.cancel_sent = call.held = True  # a response in the dispatcher disarms the automatic cancel (SR-15)
        calls, link = self._calls, chain[0] if chain else None
        calls.being_dispatched = call
        dispatch: Dispatch[Any] | None = None
        parked = claimed = False
        declined: Any = None
        try:
            if link is not None:  # as in `_walk_request`
                if self._methods.unstarted:
                    await self._methods.first_steps_taken()
                self.running = link
                self.turns += 1
                try:
                    dispatch = response_dispatch(call.method, call, frame, link.decoder)
                    declined = await (link.handler(dispatch, self._cx) if link.takes_cx else link.handler(dispatch))
                except RpcError:
                    raise
                except (Exception, asyncio.CancelledError) as error:
                    raise self._told(link, call.method, error) from None
                finally:
                    self.running = None
                claimed = declined is None
            if (
                type(declined) is Handled
                and len(chain) == 1
                and not self._dynamic.chains
                and declined.changes_nothing(call.method)
            ):
                call.settle(frame)  # the only handler had no use for it
            else:
                if dispatch is not None:
                    dispatch.hold_response()
                if not claimed:
                    offer = Offer(call.method, NO_PARAMS, None, call, frame)
                    claimed, retry = await self._walk(offer, chain, declined)
                    parked = not claimed and retry and self._dynamic.park(offer)
                    if not claimed and not parked:
                        assert offer.response is not None, "a response offer has a response"
                        call.settle(offer.response)
        except RpcError as error:
            call.settle(error)  # OB-11, OB-12: ignored when the handler had routed before it failed
        finally:
            dispatch = None
            if call.outcome is None:
                calls.release(call, parked=parked)
            else:
                call.held = parked
            calls.being_dispatched = None
        if call.outcome is not None and call.callback is not None:
            work = self._call_back(call)
            if work is not None:
                await work

    def _call_back(self, call: OutgoingCall) -> Awaitable[None] | None:
        """Run the ordered callback as far as can be done without waiting; the rest is what is returned."""
        forwarding = call.callback
        if type(forwarding) is not Forwarding or call.owner is not None or self._methods.unstarted:
            return self._run_callback(call)
        call.callback = call.errors_to = None
        try:
            forwarding.deliver()
        except Exception as error:  # as in `_run_callback`
            self._cx.fail(error)
            raise asyncio.CancelledError from None
        return None

    async def _run_callback(self, call: OutgoingCall) -> None:
        """The ordered callback, awaited before the next message is looked at (OB-03). Its failure is final."""
        if self._methods.unstarted:
            await self._methods.first_steps_taken()
        callback, call.callback = call.callback, None
        assert callback is not None, "only a call with a callback comes here"
        token = current_request.set(call.owner)
        call.owner = call.errors_to = None  # a responder that the callback drops must not live on in a kept handle
        self.running = callback
        self.turns += 1
        try:
            await callback(call.as_result())
        except Exception as error:
            self._cx.fail(error)  # recorded before the loop can take another message (OB-06, PY-16)
            raise asyncio.CancelledError from None
        except asyncio.CancelledError:
            self._check_cancellation()
            self._cx.fail(RpcError.internal_error(f"the callback of {call.method} was cancelled from inside"))
            raise
        finally:
            self.running = None
            current_request.reset(token)

    async def _walk(self, offer: Offer, chain: Sequence[Link], declined: Any = None) -> tuple[bool, bool]:
        """Offer to each handler in turn. Returns (claimed, whether one asked for a retry). Raises RpcError (HC-04).

        `declined` is what the first handler said, when it had its turn already.
        """
        retry = False
        at = 0
        while at < len(chain):
            link = chain[at]
            at += 1
            if link.is_method and offer.request is not None:
                if offer.request.state is RUNNING:
                    offer.request.state = QUEUED  # until its task's first step, as when nobody was asked before
                self._methods.start(link, offer.request, offer.params)
                return True, False
            outcome = declined if declined is not None else await self._offer_to(link, offer)
            declined = None
            if outcome is None:
                return True, False
            before = offer.method
            retry = self._passed_on(outcome, offer, link) or retry
            if offer.method != before:
                chain = [later for later in self._chains.of(offer) if later.order > link.order]
                at = 0
        for link in self._dynamic.links_for(offer):
            outcome = await self._offer_to(link, offer)
            if outcome is None:
                return True, False
            retry = self._passed_on(outcome, offer, link) or retry
        return False, retry

    async def _offer_to(self, link: Link, offer: Offer) -> Any:
        """One handler's turn: None when it claimed. Its exceptions come out as RpcError, logged as text (DEC-14)."""
        if self._methods.unstarted:
            await self._methods.first_steps_taken()
        self.running = link
        self.turns += 1
        try:
            return await link.call(offer, self._cx)
        except RpcError as error:
            if offer.kind == "notification":  # nobody is told of it elsewhere
                logger.warning("notification %s failed in %s: %s", offer.method, link.route.name, error)
            raise
        except (Exception, asyncio.CancelledError) as error:
            raise self._told(link, offer.method, error) from None
        finally:
            self.running = None

    def _told(self, link: Link, method: str, error: BaseException) -> RpcError:
        """What is told of an error that is no RpcError; it is logged here. Raises a cancellation of the loop itself."""
        if isinstance(error, asyncio.CancelledError):
            self._check_cancellation()
            logger.error("handler %s of %s was cancelled from inside", link.route.name, method)
        else:
            self._log_failure(link, method, error)
        return RpcError.internal_error()

    def _passed_on(self, outcome: Any, offer: Offer, link: Link) -> bool:
        """Take over what `Handled.no(…)` changed; whether it asked for a retry."""
        if not isinstance(outcome, Handled):
            logger.error(
                "handler %s of %s returned %r; ordered handlers return None or Handled.no(…)",
                link.route.name,
                offer.method,
                type(outcome).__name__,
            )
            raise RpcError.internal_error()
        if outcome.message is not None:
            try:
                offer.change(outcome.message)
            except Exception as error:  # not a message, or one that cannot be written as JSON
                self._log_failure(link, offer.method, error)
                raise RpcError.internal_error() from None
        return outcome.retry

    async def _replay(self) -> None:
        """Offer parked messages to handlers registered since: to the new handler only, in order (DY-06)."""
        while self._dynamic.replays:
            for offer, link in self._dynamic.next_replays():
                await self._replay_one(offer, link)

    async def _replay_one(self, offer: Offer, link: Link) -> None:
        if not link.route.active or not self._dynamic.is_parked(offer):
            return
        if offer.request is not None:
            offer.request.hold()
        token = current_request.set(offer.request)
        try:
            outcome = await self._offer_to(link, offer)
            if outcome is None:
                self._dynamic.unpark(offer)
            else:
                self._passed_on(outcome, offer, link)  # declined: it stays, whatever was said of a retry (DY-07)
        except RpcError as error:
            self._dynamic.unpark(offer)
            if offer.request is not None:
                offer.request.fail(error)
            elif offer.call is not None:
                self._calls.route(offer.call, error)
        finally:
            current_request.reset(token)
            if offer.request is not None:
                offer.request.release(parked=self._dynamic.is_parked(offer))
            elif offer.call is not None:
                self._calls.release(offer.call, parked=self._dynamic.is_parked(offer))

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

    def _log_failure(self, link: Link, method: str, error: BaseException) -> None:
        text = "".join(traceback.format_exception(error))
        logger.error("handler %s of %s failed:\n%s", link.route.name, method, text)

    def _check_cancellation(self) -> None:
        """Let a cancellation of the loop itself pass; one that a handler let leak is that handler's failure (PY-11)."""
        task = asyncio.current_task()
        if self._cx.is_ending or (task is not None and task.cancelling()):
            raise asyncio.CancelledError
