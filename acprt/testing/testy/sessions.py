"""The sessions that testy keeps for clients of version 1, and the ids it gives.

Plain state: whether a session was cancelled or closed, and what runs in it. Nothing here sends anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import NoReturn

from acprt.acp.schema import v1
from acprt.errors import RpcError

__all__ = ["UPDATED_AT", "Ids", "Session", "Sessions", "refuse"]

UPDATED_AT = "2026-01-01T00:00:00Z"

MODES = {"chat": "Chat", "plan": "Plan"}
VERBOSITY = {"brief": "Brief", "normal": "Normal", "verbose": "Verbose"}


def refuse(why: str) -> NoReturn:
    """Raise -32602 with a reason."""
    raise RpcError.invalid_params(why)


class Ids:
    """Ids that are used once, and are the same in every run of the same script."""

    def __init__(self) -> None:
        self._messages = count(1)
        self._calls = count(1)

    def message(self, prefix: str) -> str:
        """For a message."""
        return f"{prefix}-{next(self._messages)}"

    def call(self, prefix: str) -> str:
        """For a tool call."""
        return f"{prefix}-{next(self._calls)}"


class Session:
    """One session. A cancel while nothing runs is kept until `cancel_status` asks for it."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.cwd = "/"
        self.additional_directories: list[str] = []
        self.mcp_servers: list[v1.McpServer] = []
        self.mode = "chat"
        self.verbosity = "normal"
        self.is_closed = False
        self._turns: set[asyncio.Task[object]] = set()
        self._warned: set[asyncio.Task[object]] = set()  # of these, which run since before a cancel that was heard
        self._cancelled_unheard = False  # a turn was stopped by a cancel that is still to be heard
        self._cancelled_idle = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The block is the work on a prompt."""
        task = asyncio.current_task()
        assert task is not None, "a prompt is worked on in a task"
        self._turns.add(task)
        try:
            yield
        finally:
            self._turns.discard(task)
            self._warned.discard(task)

    def turn_was_cancelled(self) -> None:
        """`session/cancel` stops the turn at hand. The notification itself comes through the dispatch loop: it may have
        been heard before, or is heard later.
        """
        if asyncio.current_task() not in self._warned:
            self._cancelled_unheard = True

    def hear_cancel(self) -> None:
        """The notification was dispatched. It counts as one for the idle session if no turn was there to be stopped."""
        if not self._turns and not self._cancelled_unheard:
            self._cancelled_idle = True
        self._cancelled_unheard = False
        self._warned.update(self._turns)

    def take_cancel(self) -> bool:
        """Whether a cancel came while nothing ran, since this was last asked."""
        taken, self._cancelled_idle = self._cancelled_idle, False
        return taken

    async def close(self) -> None:
        """Stop what runs, and wait until it has ended."""
        self.is_closed = True
        turns = list(self._turns)
        for task in turns:
            task.cancel()
        if turns:
            await asyncio.wait(turns)

    def modes(self) -> v1.SessionModeState:
        """The modes, and the one it is in."""
        modes = [v1.SessionMode(id=id, name=name) for id, name in MODES.items()]
        return v1.SessionModeState(current_mode_id=self.mode, available_modes=modes)

    def config_options(self) -> list[v1.SessionConfigOption]:
        """The one option, and what it is set to."""
        options: list[v1.SessionConfigSelectEntry] = [
            v1.SessionConfigSelectOption(value=value, name=name) for value, name in VERBOSITY.items()
        ]
        return [v1.SessionConfigSelect(id="verbosity", name="Verbosity", current_value=self.verbosity, options=options)]

    def info(self) -> v1.SessionInfo:
        """How a list shows it."""
        return v1.SessionInfo(
            session_id=self.id,
            cwd=self.cwd,
            additional_directories=self.additional_directories,
            title="Testy session",
            updated_at=UPDATED_AT,
        )


class Sessions:
    """All that are open, by id."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._numbers = count(1)

    def new(self) -> Session:
        """A session with the next id that no loaded session took."""
        id = next(id for id in (f"testy-session-{n}" for n in self._numbers) if id not in self._sessions)
        return self.loaded(id)

    def loaded(self, id: str) -> Session:
        """The session of that id, made if there is none. One that is being closed is open again."""
        session = self._sessions.get(id)
        if session is None or session.is_closed:
            session = self._sessions[id] = Session(id)
        return session

    def find(self, id: str) -> Session | None:
        """The session of that id, if it is open."""
        return self._sessions.get(id)

    def get(self, id: str) -> Session:
        """The session of that id. Raises RpcError -32602 when it is not open."""
        session = self._sessions.get(id)
        if session is None or session.is_closed:
            refuse(f"session {id!r} is not open")
        return session

    async def close(self, id: str) -> None:
        """Close one, if it is there; its turns end first."""
        session = self._sessions.get(id)
        if session is not None:
            await session.close()
            if self._sessions.get(id) is session:
                del self._sessions[id]

    def listed(self, cwd: str | None) -> list[v1.SessionInfo]:
        """Those of a directory, or all, by id."""
        sessions = sorted(self._sessions.values(), key=lambda session: session.id)
        return [session.info() for session in sessions if not session.is_closed and cwd in (None, session.cwd)]
