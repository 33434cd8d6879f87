"""What the agent remembers of sessions: listing and deleting them. Neither opens one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from acprt.acp import v1
from acprt.acp.sessions.session_setup import Path, absolute
from acprt.errors import RpcError
from acprt.runtime.connection import Connection

__all__ = ["delete_session", "every_page", "list_sessions"]

Info = TypeVar("Info")
Shown = TypeVar("Shown", covariant=True)


class Page(Protocol[Shown]):
    """One answer to `session/list`, of either version."""

    @property
    def sessions(self) -> Sequence[Shown]: ...

    @property
    def next_cursor(self) -> str | None: ...


async def list_sessions(
    cx: Connection, *, cwd: Path | None = None, timeout: float | None = None
) -> list[v1.SessionInfo]:
    """The sessions that can be loaded or resumed, of one folder or of all; every page of the answer.

    `session/list`, capability `sessionCapabilities.list`. `timeout` is in seconds, for each page. Raises the agent's
    RpcError, and one with reason `cursor_repeated` when a page leads back to one that was read.
    """
    folder = None if cwd is None else absolute(cwd)
    return await every_page(
        lambda cursor: cx.send_request(v1.ListSessionsRequest(cwd=folder, cursor=cursor)).block_task(timeout)
    )


async def every_page(ask: Callable[[str | None], Awaitable[Page[Info]]]) -> list[Info]:
    """The sessions of all pages, of which `ask(cursor)` brings one. Raises RpcError (`cursor_repeated`) in a circle."""
    sessions: list[Info] = []
    cursor: str | None = None
    seen: set[str] = set()
    while True:
        page = await ask(cursor)
        sessions += page.sessions
        cursor = page.next_cursor
        if not cursor:
            return sessions
        if cursor in seen:
            raise RpcError.internal_error({"reason": "cursor_repeated", "method": "session/list", "cursor": cursor})
        seen.add(cursor)


async def delete_session(cx: Connection, session_id: str, *, timeout: float | None = None) -> None:
    """Have the agent forget a session. `session/delete`, capability `sessionCapabilities.delete`.

    Raises the agent's RpcError.
    """
    await cx.send_request(v1.DeleteSessionRequest(session_id=session_id)).block_task(timeout)
