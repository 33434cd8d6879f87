"""What a handler says while it serves a request: how far it is, and lines for the client's log.

Both are said only if the client asked for them, as its request tells, and never after it was cancelled.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from acprt.mcp.era import ProtocolEra
from acprt.mcp.handshake import dialect_of
from acprt.mcp.messages import LogLevel
from acprt.mcp.meta import CLIENT_CAPABILITIES, LOG_LEVEL
from acprt.mcp.progress import PROGRESS
from acprt.runtime.connection import Connection
from acprt.runtime.responder import InboundRequest, current_request
from acprt.wire.frames import UNREADABLE

__all__ = ["client_capabilities", "log", "report_progress", "request_meta"]

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class _WithMeta(msgspec.Struct):
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


_decode = msgspec.json.Decoder(_WithMeta).decode


def request_meta() -> dict[str, Any]:
    """`_meta` of the request that is being served; empty when there is none, and once it is answered."""
    return _meta_of(current_request.get())


def report_progress(cx: Connection, progress: float, total: float | None = None, message: str | None = None) -> bool:
    """Tell the client how far the request is that is being served. False: it gave no token, so nothing was sent.

    ValueError for a number that is none in JSON: the client would read null.
    """
    if not math.isfinite(progress) or not math.isfinite(total or 0):
        raise ValueError(f"progress and total are finite numbers, not {progress!r} and {total!r}")
    token = _meta_for(cx).get("progressToken")
    if not isinstance(token, str | int) or isinstance(token, bool):
        return False
    params: dict[str, Any] = {"progressToken": token, "progress": progress}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    cx.send_notification(PROGRESS, params)
    return True


def log(cx: Connection, level: LogLevel, data: Any, logger: str | None = None) -> bool:
    """Send a line for the client's log. In the modern era only if the request that is being served asks for that level;
    whether anything was sent. ValueError for a level that there is not.
    """
    if level not in _LEVELS:
        raise ValueError(f"level is one of {', '.join(_LEVELS)}, not {level!r}")
    if dialect_of(cx).era is ProtocolEra.MODERN_2026:
        wanted = _meta_for(cx).get(LOG_LEVEL)
        if wanted not in _LEVELS or _LEVELS.index(level) < _LEVELS.index(wanted):
            return False
    params: dict[str, Any] = {"level": level, "data": data}
    if logger is not None:
        params["logger"] = logger
    cx.send_notification("notifications/message", params)
    return True


def client_capabilities(cx: Connection) -> dict[str, Any]:
    """What the client declared: in the modern era with the request that is being served, else in the handshake."""
    if dialect_of(cx).era is ProtocolEra.MODERN_2026:
        declared = _meta_for(cx).get(CLIENT_CAPABILITIES)
        return declared if isinstance(declared, dict) else {}
    return dict(cx.peer.capabilities) if cx.peer is not None else {}


def _meta_for(cx: Connection) -> dict[str, Any]:
    """`_meta` of the request that is being served, if it came on this connection."""
    request = current_request.get()
    return {} if request is None or request.table is not cx.inbound else _meta_of(request)


def _meta_of(request: InboundRequest | None) -> dict[str, Any]:
    if request is None:
        return {}
    try:
        return _decode(request.params).meta
    except UNREADABLE:
        return {}
