"""Typed messages of MCP, as many as a real client and a real server need to open, to call tools and to listen.

Not the whole protocol: whatever is missing can be sent and handled by its method name. Members that are not named here
are ignored when read. `meta` is `_meta` everywhere; a dialect fills in what the era asks for.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from acprt.mcp.ids import RequestId
from acprt.runtime.messages import Notification, Request

__all__ = [
    "CallToolRequest",
    "CallToolResult",
    "CancelledNotification",
    "DiscoverRequest",
    "DiscoverResult",
    "EmptyResult",
    "Implementation",
    "InitializeRequest",
    "InitializeResult",
    "InitializedNotification",
    "ListToolsRequest",
    "ListToolsResult",
    "ListenRequest",
    "LogLevel",
    "LoggingMessageNotification",
    "Meta",
    "PingRequest",
    "ProgressNotification",
    "PromptListChangedNotification",
    "ResourceListChangedNotification",
    "ResourceUpdatedNotification",
    "SubscriptionAcknowledgedNotification",
    "SubscriptionClosed",
    "SubscriptionFilter",
    "Tool",
    "ToolListChangedNotification",
    "text_content",
]

Meta = dict[str, Any]
"""`_meta`: keys of the protocol, of tracing and of vendors."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class _Payload(msgspec.Struct, rename="camel", omit_defaults=True):
    """Base of what is part of a message, or the result of one."""


class Implementation(_Payload, kw_only=True):
    """Who a client or a server is."""

    name: str
    version: str
    title: str | None = None


class EmptyResult(_Payload, kw_only=True):
    """A result that only says that it worked."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


# -- opening ----------------------------------------------------------------------------------------------------------


class InitializeResult(_Payload, kw_only=True):
    """What a server says to `initialize`; `protocol_version` is the one that both will speak."""

    protocol_version: str
    capabilities: dict[str, Any] = msgspec.field(default_factory=dict)
    server_info: Implementation
    instructions: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class InitializeRequest(Request[InitializeResult], method="initialize", omit_defaults=False):
    """The handshake of the legacy era. Never cancelled."""

    protocol_version: str
    capabilities: dict[str, Any] = msgspec.field(default_factory=dict)
    client_info: Implementation


class InitializedNotification(Notification, method="notifications/initialized"):
    """The client has read the answer to `initialize`."""


class DiscoverResult(_Payload, kw_only=True):
    """What a modern server says of itself; `ttl_ms` in milliseconds."""

    supported_versions: list[str]
    capabilities: dict[str, Any] = msgspec.field(default_factory=dict)
    instructions: str | None = None
    result_type: str | None = None
    ttl_ms: int | None = None
    cache_scope: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class DiscoverRequest(Request[DiscoverResult], method="server/discover"):
    """The opening of a modern client. Never cancelled."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class PingRequest(Request[EmptyResult], method="ping"):
    """Is anybody there. Of the legacy era only."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


# -- tools ------------------------------------------------------------------------------------------------------------


class Tool(_Payload, kw_only=True):
    """One tool of a server; the schemas are JSON Schema."""

    name: str
    input_schema: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object"})
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class ListToolsResult(_Payload, omit_defaults=False, kw_only=True):
    """One page of tools; `next_cursor` asks for the next one."""

    tools: list[Tool]
    next_cursor: str | msgspec.UnsetType = msgspec.UNSET
    result_type: str | msgspec.UnsetType = msgspec.UNSET
    ttl_ms: int | msgspec.UnsetType = msgspec.UNSET
    cache_scope: str | msgspec.UnsetType = msgspec.UNSET
    meta: Meta | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class ListToolsRequest(Request[ListToolsResult], method="tools/list"):
    """Which tools there are."""

    cursor: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class CallToolResult(_Payload, kw_only=True):
    """What a tool gave. `content` holds blocks such as `{"type": "text", "text": …}`; `text_content` makes one."""

    content: list[dict[str, Any]]
    structured_content: Any = None
    is_error: bool = False
    result_type: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class CallToolRequest(Request[CallToolResult], method="tools/call"):
    """Run one tool."""

    name: str
    arguments: dict[str, Any] | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


def text_content(text: str) -> dict[str, Any]:
    """A block of text for `CallToolResult.content`."""
    return {"type": "text", "text": text}


# -- while a request runs ---------------------------------------------------------------------------------------------


class ProgressNotification(Notification, method="notifications/progress"):
    """How far the request with this token is; `progress` grows, `total` need not be known."""

    progress_token: RequestId
    progress: float
    total: float | None = None
    message: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class LoggingMessageNotification(Notification, method="notifications/message"):
    """A line for the client's log; `data` is any JSON value."""

    level: LogLevel
    data: Any
    logger: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class CancelledNotification(Notification, method="notifications/cancelled"):
    """A cancel, as handlers see it after it was applied. Send none yourself: `sent.cancel(reason=…)` does."""

    request_id: RequestId
    reason: str | None = None


# -- subscriptions ----------------------------------------------------------------------------------------------------


class SubscriptionFilter(_Payload, kw_only=True):
    """What a subscription is about: lists that change, and resources by their uri."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] | None = None


class SubscriptionClosed(_Payload, kw_only=True):
    """How a subscription ended: `closed_by` "server" with its result, or with the `reason` of its cancel; or "client".

    A subscription whose connection is lost ends with that error instead.
    """

    closed_by: Literal["server", "client"]
    result: dict[str, Any] | None = None
    reason: str | None = None


class ListenRequest(Request[SubscriptionClosed], method="subscriptions/listen"):
    """Open a subscription; it lives until it is closed, so wait for its end without a timeout."""

    notifications: SubscriptionFilter
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class SubscriptionAcknowledgedNotification(Notification, method="notifications/subscriptions/acknowledged"):
    """The first message of a subscription: what of the wanted it will bring."""

    notifications: SubscriptionFilter
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class ToolListChangedNotification(Notification, method="notifications/tools/list_changed"):
    """The tools are others now."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class PromptListChangedNotification(Notification, method="notifications/prompts/list_changed"):
    """The prompts are others now."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class ResourceListChangedNotification(Notification, method="notifications/resources/list_changed"):
    """The resources are others now."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class ResourceUpdatedNotification(Notification, method="notifications/resources/updated"):
    """One resource has other contents now."""

    uri: str
    meta: Meta | None = msgspec.field(name="_meta", default=None)
