"""What setting up a session is in either version of the protocol: sent when it is entered or awaited, never before.

It knows no message: what is sent, and what becomes of the answer, is the business of each version.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from acprt.errors import RpcError
from acprt.runtime.connection import Connection

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Opening", "Path", "absolute", "refuse_other_versions"]

Path = str | os.PathLike[str]

_OPENED_BY = {1: "acp.session()", 2: "acp.sessions_v2.session()"}


class Leavable(Protocol):
    """A session, as the end of its block sees it."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


S = TypeVar("S", bound=Leavable)


class Opening(Generic[S]):
    """A session to be: `async with opening as session` opens and leaves it, `session = await opening` opens it."""

    _session: S | None = None

    async def _open(self) -> S:
        raise NotImplementedError

    def __await__(self) -> Generator[Any, None, S]:
        return self._open().__await__()

    async def __aenter__(self) -> S:
        self._session = await self._open()
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.__aexit__(kind, error, traceback)


def refuse_other_versions(cx: Connection, version: int) -> None:
    """Raise RpcError on a connection that speaks another version: its agent would take the session for something else.

    One that was not initialized by `acp.initialize` is taken at its user's word.
    """
    spoken = getattr(cx.peer, "version", version)
    if spoken != version:
        raise RpcError.invalid_request(
            f"{_OPENED_BY[version]} is for protocol version {version}, and this connection speaks version {spoken}: "
            f"use {_OPENED_BY[spoken]}"
        )


def absolute(path: Path) -> str:
    """The path as the protocol wants it."""
    return os.path.abspath(os.fspath(path))
