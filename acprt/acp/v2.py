"""ACP v2: the names of its schema, and decoding of messages by their method.

`decode_client_notification("session/cancel", b'{"sessionId":"sess-1"}')` and its siblings serve programs that route
messages themselves: a proxy, a test, another transport. Handlers of an endpoint need none of them. Each takes the
wire method and JSON text, and raises `acprt.RpcError`: -32601 for a method that the sender does not have, or that is
unstable while `unstable` is false; -32602 for params of the wrong shape. `decode(cls, text)` reads one class,
and raises msgspec's errors.
"""

from msgspec import Raw

from acprt.acp.schema import v2 as schema
from acprt.acp.schema.decoding import decode
from acprt.acp.schema.json_schema import json_schema
from acprt.acp.schema.routing import AnswerRouter, RawJson, Router
from acprt.acp.schema.v2 import *  # noqa: F403  # the face of that module

__all__ = [
    "decode",
    "decode_agent_notification",
    "decode_agent_request",
    "decode_agent_response",
    "decode_client_notification",
    "decode_client_request",
    "decode_client_response",
    "decode_protocol_level_notification",
    "json_schema",
]
__all__ += schema.__all__

_client_requests: Router[schema.ClientRequest] = Router(schema.ClientRequest)
_client_notifications: Router[schema.ClientNotification] = Router(schema.ClientNotification)
_client_responses: AnswerRouter[schema.ClientResponse] = AnswerRouter(schema.AgentRequest)
_agent_requests: Router[schema.AgentRequest] = Router(schema.AgentRequest)
_agent_notifications: Router[schema.AgentNotification] = Router(schema.AgentNotification)
_agent_responses: AnswerRouter[schema.AgentResponse] = AnswerRouter(schema.ClientRequest)
_protocol_notifications: Router[schema.ProtocolLevelNotification] = Router(schema.ProtocolLevelNotification)


def decode_client_request(method: str, params: RawJson, *, unstable: bool = False) -> schema.ClientRequest:
    """A request of a client, as an agent receives it."""
    return _client_requests.decode(method, params, unstable)


def decode_client_notification(method: str, params: RawJson, *, unstable: bool = False) -> schema.ClientNotification:
    """A notification of a client, as an agent receives it."""
    return _client_notifications.decode(method, params, unstable)


def decode_client_response(method: str, result: Raw | bytes, *, unstable: bool = False) -> schema.ClientResponse:
    """The result with which a client answers an agent's request of `method`."""
    return _client_responses.decode(method, result, unstable)


def decode_agent_request(method: str, params: RawJson, *, unstable: bool = False) -> schema.AgentRequest:
    """A request of an agent, as a client receives it."""
    return _agent_requests.decode(method, params, unstable)


def decode_agent_notification(method: str, params: RawJson, *, unstable: bool = False) -> schema.AgentNotification:
    """A notification of an agent, as a client receives it."""
    return _agent_notifications.decode(method, params, unstable)


def decode_agent_response(method: str, result: Raw | bytes, *, unstable: bool = False) -> schema.AgentResponse:
    """The result with which an agent answers a client's request of `method`."""
    return _agent_responses.decode(method, result, unstable)


def decode_protocol_level_notification(method: str, params: RawJson) -> schema.ProtocolLevelNotification:
    """A notification that either side may send; an unknown `$/…` one may be ignored."""
    return _protocol_notifications.decode(method, params, False)
