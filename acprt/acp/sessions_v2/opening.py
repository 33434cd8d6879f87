"""How a v2 session comes to be: new, resumed or forked, and followed from the first update that is said of it.

Nothing is sent before the returned opening is entered or awaited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from acprt.acp import v2
from acprt.acp.sessions.asking import ask
from acprt.acp.sessions.errors import SessionOverflow
from acprt.acp.sessions.routing import SessionRoutes
from acprt.acp.sessions.session_setup import Opening, Path, absolute, refuse_other_versions
from acprt.acp.sessions_v2.handle import OpeningRequest, SessionHandle
from acprt.acp.sessions_v2.patches import Meta
from acprt.acp.sessions_v2.session import Session

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["SessionOpening", "fork_session", "resume_session", "session"]


class SessionOpening(Opening[Session]):
    """A session on its way: `await` it for the session, or use it as `async with` block that closes it at the end.

    Nothing is sent before. Raises the agent's RpcError, and TimeoutError after `timeout` seconds; a failure never ends
    the connection.
    """

    def __init__(self, cx: Connection, request: OpeningRequest, timeout: float | None) -> None:
        self._cx = cx
        self._request = request
        self._timeout = timeout

    async def _open(self) -> Session:
        refuse_other_versions(self._cx, 2)
        if isinstance(self._request, v2.ResumeSessionRequest):
            return await self._resume(self._request)
        ask_for: Callable[..., Any] = ask  # the reply type of a union of requests is beyond type checkers
        with SessionRoutes.of(self._cx).opening():
            opened: Session = await ask_for(
                self._cx,
                self._request,
                self._opened,
                unwanted=self._close_unwanted,
                undo=Session.abandon,
                timeout=self._timeout,
            )
        return opened

    async def _resume(self, request: v2.ResumeSessionRequest) -> Session:
        """The history is replayed before the answer, so the session is followed before it asks."""
        session = Session(SessionHandle(self._cx, request.session_id), None)
        session.follow()
        try:
            return await ask(
                self._cx,
                request,
                session.opened,
                unwanted=lambda _response: session.handle.close().detach(),
                undo=Session.abandon,
                timeout=self._timeout,
            )
        except BaseException:
            session.leave()
            raise

    def _opened(self, response: v2.NewSessionResponse | v2.ForkSessionResponse) -> Session:
        """In the ordered slot of the answer: no update can come between it and the route."""
        session = Session(SessionHandle(self._cx, response.session_id), None)
        try:
            session.follow()
        except SessionOverflow:  # one that is open already stays open: it has an owner
            self._close_unwanted(response)
            raise
        return session.opened(response)

    def _close_unwanted(self, response: v2.NewSessionResponse | v2.ForkSessionResponse) -> None:
        """Nobody can have the session: whoever asked has gone, or its updates were too many to keep."""
        SessionHandle(self._cx, response.session_id).close().detach()


def session(
    cx: Connection,
    *,
    cwd: Path,
    additional_directories: Sequence[Path] = (),
    mcp_servers: Sequence[v2.McpServer] = (),
    meta: Meta | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """A new session in `cwd`; paths are made absolute. `async with` it, or `await` it for a `Session`."""
    return SessionOpening(
        cx,
        v2.NewSessionRequest(
            cwd=absolute(cwd),
            additional_directories=[absolute(path) for path in additional_directories],
            mcp_servers=list(mcp_servers),
            meta=meta,
        ),
        timeout,
    )


def resume_session(
    cx: Connection,
    session_id: str,
    *,
    cwd: Path,
    replay: bool = False,
    additional_directories: Sequence[Path] = (),
    mcp_servers: Sequence[v2.McpServer] = (),
    meta: Meta | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """A session that the agent keeps. `cwd` must be its own. With `replay` the agent tells the whole history before it
    answers, and the projection has it when the session is there; its state is told in either case.
    """
    return SessionOpening(
        cx,
        v2.ResumeSessionRequest(
            session_id=session_id,
            cwd=absolute(cwd),
            replay_from=v2.ReplayFromStart() if replay else None,
            additional_directories=[absolute(path) for path in additional_directories],
            mcp_servers=list(mcp_servers),
            meta=meta,
        ),
        timeout,
    )


def fork_session(
    cx: Connection,
    session_id: str,
    *,
    cwd: Path,
    additional_directories: Sequence[Path] = (),
    mcp_servers: Sequence[v2.McpServer] = (),
    meta: Meta | None = None,
    timeout: float | None = None,
) -> SessionOpening:
    """A new session that begins with what the given one knows (unstable). Its id is the agent's choice."""
    return SessionOpening(
        cx,
        v2.ForkSessionRequest(
            session_id=session_id,
            cwd=absolute(cwd),
            additional_directories=[absolute(path) for path in additional_directories],
            mcp_servers=list(mcp_servers),
            meta=meta,
        ),
        timeout,
    )
