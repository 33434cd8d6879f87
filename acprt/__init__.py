"""acprt: an asyncio JSON-RPC runtime over stdio. This is its face; every name here is documented where it lives."""

from acprt.errors import (
    AlreadyConsumed,
    DispatchLoopBlocked,
    ErrorCode,
    RpcError,
    is_incoming_transport_closed,
)
from acprt.limits import Limits
from acprt.runtime.connection import Connection
from acprt.runtime.dialect import CancelGroup, CancelNotice, Dialect
from acprt.runtime.dynamic import HandlerGuard
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.handlers import Handled
from acprt.runtime.live import dump_on_signal, live_connections
from acprt.runtime.messages import Notification, Request, method_of, reply_type_of
from acprt.runtime.responder import RequestCancellation, Responder
from acprt.runtime.results import Err, Ok, Result
from acprt.runtime.routing import Dispatch, ResponseRouter
from acprt.runtime.run import run
from acprt.runtime.sent import SentRequest
from acprt.runtime.status import ConnectionStatus
from acprt.trace import FileSink, TraceEvent
from acprt.transports.base import Transport
from acprt.transports.memory import memory_pair
from acprt.transports.process import AgentProcess
from acprt.transports.stdio import stdio
from acprt.transports.streams import streams

__all__ = [
    "AgentProcess",
    "AlreadyConsumed",
    "CancelGroup",
    "CancelNotice",
    "Connection",
    "ConnectionStatus",
    "Dialect",
    "Dispatch",
    "DispatchLoopBlocked",
    "Endpoint",
    "Err",
    "ErrorCode",
    "FileSink",
    "Handled",
    "HandlerGuard",
    "Limits",
    "Notification",
    "Ok",
    "Request",
    "RequestCancellation",
    "Responder",
    "ResponseRouter",
    "Result",
    "RpcError",
    "SentRequest",
    "TraceEvent",
    "Transport",
    "dump_on_signal",
    "is_incoming_transport_closed",
    "live_connections",
    "memory_pair",
    "method_of",
    "reply_type_of",
    "run",
    "stdio",
    "streams",
]
__version__ = "0.1.0"
