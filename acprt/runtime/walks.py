"""How one message is offered to the handlers of its chain, in order, and the ordered callback behind a response's walk.

Everything here runs in the dispatch task: while a handler or callback has its turn, it holds the loop. No error of a
handler leaves a walk; a failing ordered callback ends the connection (OB-06).

The first handler has its turn in the walk's own coroutine, which saves two more in every message (bench-core w3, w12);
`_walk` offers to the others.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from acprt.errors import RpcError
from acprt.runtime.calls import OutgoingCall
from acprt.runtime.forwarding import Forwarding
from acprt.runtime.handlers import Handled, Link
from acprt.runtime.inbox import Item
from acprt.runtime.responder import QUEUED, RUNNING, InboundRequest, current_request
from acprt.runtime.routing import Dispatch, Offer, response_dispatch
from acprt.wire.frames import NO_PARAMS, UNREADABLE, NotificationFrame, ResponseFrame
from acprt.wire.payloads import decode_params

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection, Rooms
    from acprt.runtime.dispatch import DispatchLoop

__all__ = ["Walks"]

logger = logging.getLogger("acprt.dispatch")


class Walks:
    """The walks of one connection. Its dispatch loop awaits one at a time, and is told who holds it meanwhile."""

    def __init__(self, cx: Connection, rooms: Rooms, loop: DispatchLoop) -> None:
        self._cx = cx
        self._loop = loop
        self._dynamic = rooms.dynamic
        self._methods = rooms.methods
        self._inbox = rooms.inbox
        self._calls = rooms.calls

    # -- one walk for each kind of message ------------------------------------------------------------------------

    async def request(self, request: InboundRequest, chain: Sequence[Link]) -> None:
        """Offer a request; one that nobody takes, or whose handler fails, is answered with the error."""
        loop, method, params = self._loop, request.method, request.params  # an answered request has none any more
        token = current_request.set(request)
        request.hold()
        claimed = parked = False
        declined: Any = None
        try:
            if chain:
                link = chain[0]
                if self._methods.unstarted:
                    await self._methods.first_steps_taken()
                loop.running = link
                loop.turns += 1
                try:
                    declined = await link.call_with_request(request, method, params, self._cx)
                except RpcError:
                    raise
                except (Exception, asyncio.CancelledError) as error:
                    raise self._failed(link, method, error) from None
                finally:
                    loop.running = None
                claimed = declined is None
            if not claimed:
                offer = Offer(method, params, request)
                claimed, parked = await self._walk(offer, chain, declined)
                if not claimed and not parked:
                    request.fail(RpcError.method_not_found(offer.method))
        except RpcError as error:
            request.fail(error)
        finally:
            current_request.reset(token)
            if request.task is None:  # else a `method` handler took it: its return value is the answer
                request.release(parked=parked)

    async def notifications(self, first: NotificationFrame, rest: Iterator[Item]) -> Item | None:
        """Offer `first` and the notifications right behind it, in one coroutine for all (bench-core w3).

        Returns the item behind them, or None; another notification where the loop has to replay or to end before it.
        """
        loop, dynamic, methods, inbox = self._loop, self._dynamic, self._methods, self._inbox
        chains = loop.chains
        links = chains.first_notifications
        item: Item | None = first
        while type(item) is NotificationFrame:
            link = links.get(item.method)
            if link is None or dynamic.chains:
                chain = chains.notifications.get(item.method, chains.other_notifications)
                await self._notification(Offer(item.method, item.params), chain)
            else:
                if methods.unstarted:
                    await methods.first_steps_taken()
                loop.running = link
                loop.turns += 1
                try:
                    try:
                        message = link.decode(item.params)
                    except UNREADABLE:
                        message = decode_params(link.decoder, item.params)  # a call less for the rest (w3)
                    declined = await (link.handler(message, self._cx) if link.takes_cx else link.handler(message))
                    if declined is not None:
                        chain = chains.notifications[item.method]
                        await self._notification(Offer(item.method, item.params), chain, declined)
                except RpcError as error:
                    self._notification_failed(link, item.method, error)
                except (Exception, asyncio.CancelledError) as error:
                    self._failed(link, item.method, error)
                finally:
                    loop.running = None
            item = next(rest, None)
            if dynamic.replays or not inbox.receives:
                break
        return item

    async def response(self, call: OutgoingCall, frame: ResponseFrame, chain: Sequence[Link]) -> None:
        """Offer a response to one of our requests; once it is delivered, run the ordered callback."""
        call.cancel_sent = call.held = True  # a response in the dispatcher disarms the automatic cancel (SR-15)
        loop, calls = self._loop, self._calls
        calls.being_dispatched = call
        dispatch: Dispatch[Any] | None = None
        claimed = parked = False
        declined: Any = None
        try:
            if chain:
                link = chain[0]
                if self._methods.unstarted:
                    await self._methods.first_steps_taken()
                loop.running = link
                loop.turns += 1
                try:
                    dispatch = response_dispatch(call.method, call, frame, link.decoder)
                    declined = await (link.handler(dispatch, self._cx) if link.takes_cx else link.handler(dispatch))
                except RpcError:
                    raise
                except (Exception, asyncio.CancelledError) as error:
                    raise self._failed(link, call.method, error) from None
                finally:
                    loop.running = None
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
                    claimed, parked = await self._walk(offer, chain, declined)
                    if not claimed and not parked:
                        assert offer.response is not None, "a response offer has a response"
                        call.settle(offer.response)
        except RpcError as error:
            call.settle(error)  # OB-11, OB-12: ignored when the handler had routed before it failed
        except asyncio.CancelledError:  # the connection ends, and the handler was cut short
            calls.cut_short(call)
            raise
        finally:
            dispatch = None
            if call.outcome is not None:
                call.held = parked
            elif not calls.is_cut_short(call):
                calls.release(call, parked=parked)
            calls.being_dispatched = None
        if call.outcome is not None and call.callback is not None:
            work = self.call_back(call)
            if work is not None:
                await work

    # -- the ordered callback of a settled call -------------------------------------------------------------------

    def call_back(self, call: OutgoingCall) -> Awaitable[None] | None:
        """Run the ordered callback as far as can be done without waiting; the rest is what is returned."""
        forwarding = call.callback
        if type(forwarding) is not Forwarding or call.owner is not None or self._methods.unstarted:
            return self._callback(call)
        call.callback = call.errors_to = None
        try:
            forwarding.deliver()
        except Exception as error:  # as in `_callback`
            self._cx.fail(error)
            raise asyncio.CancelledError from None
        return None

    async def _callback(self, call: OutgoingCall) -> None:
        """The ordered callback, awaited before the next message is looked at (OB-03). Its failure is final."""
        if self._methods.unstarted:
            try:
                await self._methods.first_steps_taken()
            except asyncio.CancelledError:
                self._calls.cut_short(call)
                raise
        callback, call.callback = call.callback, None
        assert callback is not None, "only a call with a callback comes here"
        token = current_request.set(call.owner)
        call.owner = call.errors_to = None  # a responder that the callback drops must not live on in a kept handle
        self._loop.running = callback
        self._loop.turns += 1
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
            self._loop.running = None
            current_request.reset(token)

    # -- a parked message -----------------------------------------------------------------------------------------

    async def parked(self, offer: Offer, link: Link) -> None:
        """Offer a parked message to one handler that was registered since. Declined, it stays parked (DY-07)."""
        dynamic = self._dynamic
        if not link.route.active or not dynamic.is_parked(offer):
            return
        if offer.request is not None:
            offer.request.hold()
        token = current_request.set(offer.request)
        try:
            outcome = await self._offer_to(link, offer)
            if outcome is None:
                dynamic.unpark(offer)
            else:
                self._pass_on(outcome, offer, link)  # whether it asks for a retry makes no difference now
        except RpcError as error:
            dynamic.unpark(offer)
            if offer.request is not None:
                offer.request.fail(error)
            elif offer.call is not None:
                self._calls.route(offer.call, error)
        finally:
            current_request.reset(token)
            if offer.request is not None:
                offer.request.release(parked=dynamic.is_parked(offer))
            elif offer.call is not None:
                self._calls.release(offer.call, parked=dynamic.is_parked(offer))

    # -- what the walks share -------------------------------------------------------------------------------------

    async def _notification(self, offer: Offer, chain: Sequence[Link], declined: Any = None) -> None:
        try:
            claimed, parked = await self._walk(offer, chain, declined)
        except RpcError:
            return  # logged where it happened
        if not claimed and not parked:
            logger.debug("ignored notification %s: no handler took it", offer.method)

    async def _walk(self, offer: Offer, chain: Sequence[Link], declined: Any = None) -> tuple[bool, bool]:
        """Offer to each handler of the chain, then to the dynamic ones, until one claims. Returns (claimed, parked).

        `declined` is what the first handler said, when it had its turn already. Raises RpcError when one fails (HC-04).
        """
        retry = False
        at = 0
        while at < len(chain):
            link = chain[at]
            at += 1
            if link.is_method and offer.request is not None:
                if offer.request.is_cancelled:  # while an earlier handler had it: this one never begins (DEC-10)
                    self._cx.inbound.end_cancelled(offer.request)
                    return True, False
                if offer.request.state is RUNNING:
                    offer.request.state = QUEUED  # until its task's first step, as when nobody was asked before
                self._methods.start(link, offer.request, offer.params)
                return True, False
            outcome = declined if declined is not None else await self._offer_to(link, offer)
            declined = None
            if outcome is None:
                return True, False
            before = offer.method
            retry = self._pass_on(outcome, offer, link) or retry
            if offer.method != before:  # the later handlers of the other method's chain go on from here
                chain = [later for later in self._loop.chains.of(offer) if later.order > link.order]
                at = 0
        for link in self._dynamic.links_for(offer):
            outcome = await self._offer_to(link, offer)
            if outcome is None:
                return True, False
            retry = self._pass_on(outcome, offer, link) or retry
        return False, retry and self._dynamic.park(offer)

    async def _offer_to(self, link: Link, offer: Offer) -> Any:
        """One handler's turn: None when it claimed. Its exceptions come out as RpcError, logged as text (DEC-14)."""
        if self._methods.unstarted:
            await self._methods.first_steps_taken()
        self._loop.running = link
        self._loop.turns += 1
        try:
            return await link.call(offer, self._cx)
        except RpcError as error:
            if offer.kind == "notification":
                self._notification_failed(link, offer.method, error)
            raise
        except (Exception, asyncio.CancelledError) as error:
            raise self._failed(link, offer.method, error) from None
        finally:
            self._loop.running = None

    def _pass_on(self, outcome: Any, offer: Offer, link: Link) -> bool:
        """Take over what `Handled.no(…)` changed; whether it asked for a retry."""
        if not isinstance(outcome, Handled):
            logger.error(
                "handler %s of %s returned %r; ordered handlers return None or Handled.no(…)",
                link.name,
                offer.method,
                type(outcome).__name__,
            )
            raise RpcError.internal_error()
        if outcome.message is not None:
            try:
                offer.change(outcome.message)
            except Exception as error:  # not a message, or one that cannot be written as JSON
                raise self._failed(link, offer.method, error) from None
        return outcome.retry

    def _failed(self, link: Link, method: str, error: BaseException) -> RpcError:
        """Log a failure that is no RpcError; what the peer is told of it. A cancellation of the loop itself goes on."""
        if isinstance(error, asyncio.CancelledError):
            self._check_cancellation()
            logger.error("handler %s of %s was cancelled from inside", link.name, method)
        else:
            text = "".join(traceback.format_exception(error))
            logger.error("handler %s of %s failed:\n%s", link.name, method, text)
        return RpcError.internal_error()

    def _notification_failed(self, link: Link, method: str, error: RpcError) -> None:
        """Nobody else is told: a notification has no answer."""
        logger.warning("notification %s failed in %s: %s", method, link.name, error)

    def _check_cancellation(self) -> None:
        """Let a cancellation of the loop itself pass; one that a handler let leak is that handler's failure (PY-11)."""
        task = asyncio.current_task()
        if self._cx.is_ending or (task is not None and task.cancelling()):
            raise asyncio.CancelledError
