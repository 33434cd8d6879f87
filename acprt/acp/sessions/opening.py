"""How a session comes to be: new, loaded, resumed or forked, entered among the routes in its response's ordered slot.

Nothing is sent before the returned opening is entered or awaited. No update is lost between the response and the route.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from acprt.acp import v1
from acprt.acp.sessions.asking import ask
from acprt.acp.sessions.errors import SessionOverflow
from acprt.acp.sessions.handle import OpeningResponse, Session, agent_closes_sessions
from acprt.acp.sessions.routing import SessionRoutes
from acprt.acp.sessions.session_setup import Opening, Path, absolute, refuse_other_versions
from acprt.runtime.connection import Connection

__all__ = [
    "OpeningRequest",
    "SessionOpening",
    "fork_session",
    "load_session",
    "open_session",
    "resume_session",
    "session",
]

OpeningRequest = v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest | v1.ForkSessionRequest


class SessionOpening(Opening[Session]):
    """A session to be: `async with opening as session` opens and leaves it; `session = await opening` opens it for as
    long as the connection lives, or until `await session.aclose()`.

    Raises the agent's RpcError, and TimeoutError after `timeout` seconds. A failure never ends the connection.
    """

    def __init__(self, cx: Connection, request: OpeningRequest, timeout: float | None) -> None:
        self._cx = cx
        self._request = request
        self._timeout = timeout

    async def _open(self) -> Session:
        cx, request = self._cx, self._request
        refuse_other_versions(cx, 1)
        routes = SessionRoutes.of(cx)
        if isinstance(request, v1.LoadSessionRequest | v1.ResumeSessionRequest):
            routes.refuse_open(request.session_id)
        ask_for: Callable[..., Any] = ask  # the reply type of a union of requests is beyond type checkers
        with routes.opening():
            opened: Session = await ask_for(
                cx, request, self._opened, unwanted=self._close_unwanted, undo=Session.abandon, timeout=self._timeout
            )
        return opened

    def _opened(self, response: OpeningResponse) -> Session:
        """In the ordered slot of the response."""
        try:
            session = Session(self._cx, self._id_of(response), response)
        except SessionOverflow:  # one that is open already stays open: it has an owner
            self._close_unwanted(response)
            raise
        if isinstance(self._request, v1.LoadSessionRequest):
            session.replay = tuple(session.queue.take_all())
        return session

    def _close_unwanted(self, response: OpeningResponse) -> None:
        """Nobody can have the session: whoever asked has gone, or its updates were too many to keep."""
        if agent_closes_sessions(self._cx):
            self._cx.send_request(v1.CloseSessionRequest(session_id=self._id_of(response))).detach()

    def _id_of(self, response: OpeningResponse) -> str:
        if isinstance(response, v1.NewSessionResponse | v1.ForkSessionResponse):
            return response.session_id
        assert isinstance(self._request, v1.LoadSessionRequest | v1.ResumeSessionRequest), "these name their session"
        return self._request.session_id


def session(
    cx: Connection,
    *,
    cwd: Path = ".",
    mcp_servers: Sequence[v1.McpServer] = (),
    additional_directories: Sequence[Path] = (),
    meta: dict[str, Any] | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """A new session in the folder `cwd`: `async with acp.session(cx, cwd=".") as session`. `session/new`.

    Folders are made absolute. `timeout` is in seconds, for the opening alone. Updates that come before the response
    are read first by the first prompt.
    """
    request = v1.NewSessionRequest(
        cwd=absolute(cwd),
        mcp_servers=list(mcp_servers),
        additional_directories=_all_absolute(additional_directories),
        meta=meta,
    )
    return SessionOpening(cx, request, timeout)


def load_session(
    cx: Connection,
    session_id: str,
    *,
    cwd: Path = ".",
    mcp_servers: Sequence[v1.McpServer] = (),
    additional_directories: Sequence[Path] = (),
    meta: dict[str, Any] | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """An earlier session with its history, which is in `session.replay`. `session/load`, capability `loadSession`.

    A history of more than `Limits.session_bytes` raises SessionOverflow. Otherwise as `session`.
    """
    request = v1.LoadSessionRequest(
        session_id=session_id,
        cwd=absolute(cwd),
        mcp_servers=list(mcp_servers),
        additional_directories=_all_absolute(additional_directories),
        meta=meta,
    )
    return SessionOpening(cx, request, timeout)


def resume_session(
    cx: Connection,
    session_id: str,
    *,
    cwd: Path = ".",
    mcp_servers: Sequence[v1.McpServer] = (),
    additional_directories: Sequence[Path] = (),
    meta: dict[str, Any] | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """An earlier session without its history. `session/resume`, capability `sessionCapabilities.resume`."""
    request = v1.ResumeSessionRequest(
        session_id=session_id,
        cwd=absolute(cwd),
        mcp_servers=list(mcp_servers),
        additional_directories=_all_absolute(additional_directories),
        meta=meta,
    )
    return SessionOpening(cx, request, timeout)


def fork_session(
    cx: Connection,
    session_id: str,
    *,
    cwd: Path = ".",
    mcp_servers: Sequence[v1.McpServer] = (),
    additional_directories: Sequence[Path] = (),
    meta: dict[str, Any] | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """A new session that begins where `session_id` is. `session/fork`: unstable, `sessionCapabilities.fork`."""
    request = v1.ForkSessionRequest(
        session_id=session_id,
        cwd=absolute(cwd),
        mcp_servers=list(mcp_servers),
        additional_directories=_all_absolute(additional_directories),
        meta=meta,
    )
    return SessionOpening(cx, request, timeout)


def open_session(cx: Connection, request: OpeningRequest, *, timeout: float | None = None) -> SessionOpening:
    """The same from a whole request, for members that the other functions do not name. It is sent as it is."""
    return SessionOpening(cx, request, timeout)


def _all_absolute(paths: Sequence[Path]) -> list[str]:
    return [absolute(path) for path in paths]
