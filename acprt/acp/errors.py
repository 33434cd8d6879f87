"""The errors to which ACP gives a shape of its own, for agents to answer with."""

from __future__ import annotations

from acprt.errors import ErrorCode, RpcError

__all__ = ["session_not_found"]


def session_not_found(session_id: str) -> RpcError:
    """-32002 with `data` `{"sessionId": …}`: a request names a session that does not exist or is not open.

    Clients take it for success of `session/close` and `session/delete`. For files: `RpcError.resource_not_found(uri)`.
    """
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, "Resource not found", {"sessionId": session_id})
