"""Subscriptions that a modern server serves: opened by a request, acknowledged first, ended by either side.

Everything sent within one carries its id and belongs to its request, so that after a cancel nothing of it is sent, and
what is still queued is taken back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from acprt.mcp.handshake import dialect_of
from acprt.mcp.ids import RequestId
from acprt.mcp.listens import LISTEN
from acprt.mcp.messages import (
    ListenRequest,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    SubscriptionFilter,
    ToolListChangedNotification,
)
from acprt.mcp.meta import SUBSCRIPTION_ID
from acprt.mcp.stamps import stamped_params
from acprt.runtime.connection import Connection
from acprt.runtime.dialect import CancelNotice
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.messages import method_of
from acprt.runtime.responder import InboundRequest, Responder, current_request

__all__ = ["EVERYTHING", "Publishable", "end_subscription", "offer_subscriptions", "publish", "stream_closed"]

EVERYTHING: Final = SubscriptionFilter(
    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True, resource_subscriptions=[]
)
"""Every kind of subscription that there is; of resources, whichever uris a client names."""

Publishable = (
    ToolListChangedNotification
    | PromptListChangedNotification
    | ResourceListChangedNotification
    | ResourceUpdatedNotification
)

_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class _Subscription(msgspec.Struct, eq=False):
    request: InboundRequest
    responder: Responder[Any]
    accepted: SubscriptionFilter

    def wants(self, note: Publishable) -> bool:
        match note:
            case ToolListChangedNotification():
                return self.accepted.tools_list_changed
            case PromptListChangedNotification():
                return self.accepted.prompts_list_changed
            case ResourceListChangedNotification():
                return self.accepted.resources_list_changed
            case ResourceUpdatedNotification(uri=uri):
                return uri in (self.accepted.resource_subscriptions or ())

    def send(self, cx: Connection, method: str, params: Any) -> None:
        """Send one notification of this subscription, as what its request says."""
        tagged = stamped_params(params, {SUBSCRIPTION_ID: _id_of(self.request)})
        token = current_request.set(self.request)
        try:
            cx.send_notification(method, tagged)
        finally:
            current_request.reset(token)

    def end(self) -> None:
        self.responder.respond(_graceful_end(self.request))


def offer_subscriptions(endpoint: Endpoint, offered: SubscriptionFilter = EVERYTHING) -> None:
    """Let clients subscribe to what `offered` names: each gets, and is told, the part of it that it asked for.

    What changes is told with `publish`. At the end of input every subscription that is left gets its result.
    """

    async def listen(request: ListenRequest, responder: Responder[Any], cx: Connection) -> None:
        inbound = current_request.get()
        assert inbound is not None, "a request handler serves a request"
        live = _live(cx)
        dialect_of(cx).serves_subscriptions = True
        inbound.cancelled_answer = _graceful_end(inbound)  # for a connection that is closed on this side
        subscription = _Subscription(inbound, responder, _common(request.notifications, offered))
        live.add(subscription)
        responder.cancellation.on_cancel(lambda: _cancelled(live, subscription))
        subscription.send(cx, _ACKNOWLEDGED, {"notifications": subscription.accepted})

    async def end_all(cx: Connection) -> None:
        live = _live(cx)
        while live:
            live.pop().end()

    endpoint.on_receive_request(ListenRequest)(listen)
    endpoint.on_close(end_all)


def publish(cx: Connection, note: Publishable) -> int:
    """Tell every subscription of this connection that asked for it; how many did."""
    told = [subscription for subscription in _live(cx) if subscription.wants(note)]
    for subscription in told:
        subscription.send(cx, method_of(note), note)
    return len(told)


async def end_subscription(cx: Connection, id: RequestId) -> bool:
    """End the subscription that the client opened with request `id`: its result is sent, and nothing after it.

    Whoever serves it, `offer_subscriptions` or a handler of your own, is done with it then. False: there is none.
    """
    request = cx.inbound.find(cx.dialect.key(id))
    if request is None or request.method != LISTEN:
        return False
    live = _live(cx)
    live -= {subscription for subscription in live if subscription.request is request}
    task = request.task
    request.answer(_graceful_end(request))
    if task is not None:
        task.cancel()
    return True


def stream_closed(cx: Connection, id: RequestId) -> None:
    """The stream of one request of the peer has closed, on a transport where that is its cancel: the very same happens
    as when a cancel had come.
    """
    cx.inbound.cancel(CancelNotice(cx.dialect.key(id)))


def _live(cx: Connection) -> set[_Subscription]:
    found: set[_Subscription] = cx.attachments.setdefault(_Subscription, set())
    return found


def _cancelled(live: set[_Subscription], subscription: _Subscription) -> None:
    live.discard(subscription)
    subscription.end()  # nothing is written for a request that its peer cancelled


def _id_of(request: InboundRequest) -> Raw:
    """The id as the client spelled it."""
    return Raw(msgspec.json.encode(request.id))


def _graceful_end(request: InboundRequest) -> dict[str, Any]:
    return {"resultType": "complete", "_meta": {SUBSCRIPTION_ID: _id_of(request)}}


def _common(wanted: SubscriptionFilter, offered: SubscriptionFilter) -> SubscriptionFilter:
    """What is both wanted and offered. Resources: of the uris offered, or of all when that list is empty."""
    uris: list[str] | None = None
    if wanted.resource_subscriptions and offered.resource_subscriptions is not None:
        limited = offered.resource_subscriptions
        uris = [uri for uri in wanted.resource_subscriptions if not limited or uri in limited] or None
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed and offered.tools_list_changed,
        prompts_list_changed=wanted.prompts_list_changed and offered.prompts_list_changed,
        resources_list_changed=wanted.resources_list_changed and offered.resources_list_changed,
        resource_subscriptions=uris,
    )
