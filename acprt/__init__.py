"""acprt: an asyncio JSON-RPC runtime over stdio. This is its face; every name here is documented where it lives."""

from importlib import import_module
from typing import TYPE_CHECKING

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
from acprt.trace import TraceEvent
from acprt.transports.base import Transport
from acprt.transports.stdio import stdio

if TYPE_CHECKING:
    from acprt.trace.file_sink import FileSink
    from acprt.transports.memory import memory_pair
    from acprt.transports.process import AgentProcess
    from acprt.transports.streams import streams
else:  # imported when first asked for: agents, which are started often, need none of them (bench-core w5)
    _LATE = {
        "AgentProcess": "acprt.transports.process",
        "FileSink": "acprt.trace.file_sink",
        "memory_pair": "acprt.transports.memory",
        "streams": "acprt.transports.streams",
    }

    def __getattr__(name):
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_LATE[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *_LATE})


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
