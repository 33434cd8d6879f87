"""What a v2 agent keeps of sessions: listing and deleting them. Neither opens one."""

from __future__ import annotations

from acprt.acp import v2
from acprt.acp.sessions.listing import every_page
from acprt.acp.sessions.session_setup import Path, absolute
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.connection import Connection

__all__ = ["delete_session", "list_sessions"]


async def list_sessions(
    cx: Connection, *, cwd: Path | None = None, timeout: float | None = None
) -> list[v2.SessionInfo]:
    """The sessions that the agent keeps, those of `cwd` only if given; every page of the answer.

    `timeout` is in seconds, for each page. Raises the agent's RpcError, and one with reason `cursor_repeated` when a
    page leads back to one that was read.
    """
    folder = None if cwd is None else absolute(cwd)
    return await every_page(
        lambda cursor: cx.send_request(v2.ListSessionsRequest(cwd=folder, cursor=cursor)).block_task(timeout)
    )


async def delete_session(cx: Connection, session_id: str, *, timeout: float | None = None) -> None:
    """Delete a session from what the agent keeps, where it offers that (`session.delete`); one that it does not know is
    deleted already. Raises the agent's other errors.
    """
    try:
        await cx.send_request(v2.DeleteSessionRequest(session_id=session_id)).block_task(timeout)
    except RpcError as error:
        if error.code != ErrorCode.RESOURCE_NOT_FOUND:
            raise
