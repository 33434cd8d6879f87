"""The agent under check, across the processes that it takes: one that checks share, and fresh ones for those that may
break it.

It speaks the few words that both versions of the protocol need (opening, session, turn), so that a check reads the same
for either.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, get_args

import msgspec

from acprt.acp import v1
from acprt.cli import VERSION
from acprt.cli.check.process import Answer, CheckedProcess, Frame
from acprt.cli.check.verdicts import Failed, NotApplicable
from acprt.errors import ErrorCode

__all__ = ["STOP_REASONS", "Options", "Subject", "Turn", "TurnEnd"]

_STARTED_SECONDS = 1.0  # a turn that shows nothing for so long counts as running


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may set. `cwd` is the folder of the sessions; `prompt` begins a short turn, `slow_prompt` one that
    takes long enough to be cancelled; `timeout` is seconds for one answer.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None] = msgspec.field(default_factory=dict)
    version: int = 1
    prompt: str = "Say hello in one word. Use no tools."
    slow_prompt: str = "Count slowly from 1 to 300, one number on each line. Use no tools."
    timeout: float = 60.0


class TurnEnd(msgspec.Struct, frozen=True):
    """How a turn ended: its stop reason, or the answer that is none."""

    stop_reason: str | None
    answer: Answer


class Turn:
    """A prompt that was sent."""

    def __init__(self, subject: Subject, process: CheckedProcess, session_id: str, text: str) -> None:
        self.process = process
        self.session_id = session_id
        self.version = subject.options.version
        self._since = process.note_count
        block = {"type": "text", "text": text}
        self.id = process.request("session/prompt", {"sessionId": session_id, "prompt": [block]})

    def updates(self) -> list[dict[str, Any]]:
        """Its updates so far."""
        return self.process.updates(self.session_id, self._since)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        answer = self.process.answered(self.id)
        return answer is not None and (self.version == 1 or answer.is_error or self._idle() is not None)

    async def started(self) -> None:
        """Wait until it shows a sign of life, or for a second."""
        await self.process.until(lambda: self.is_over or self.updates(), within=_STARTED_SECONDS)

    def cancel(self) -> None:
        """Send `session/cancel`."""
        self.process.notify("session/cancel", {"sessionId": self.session_id})

    async def end(self, within: float | None = None) -> TurnEnd:
        """Wait for its end. Raises `Failed` when none comes."""
        answer = await self.process.answer(self.id, within=within)
        if answer.is_error:
            return TurnEnd(None, answer)
        if self.version == 1:
            return TurnEnd(answer.result.get("stopReason"), answer)
        seconds = within or self.process.timeout
        if not await self.process.until(lambda: self._idle() is not None, within=seconds):
            raise Failed(f"the prompt was accepted, and no idle state followed in {seconds:g} s")
        return TurnEnd((self._idle() or {}).get("stopReason"), answer)

    def _idle(self) -> dict[str, Any] | None:
        """The state update that ends it, in version 2; an idle that comes before any work belongs to what was."""
        running = False
        for update in self.updates():
            if update.get("sessionUpdate") == "state_update":
                if running and update.get("state") == "idle":
                    return update
                running = running or update.get("state") != "idle"
        return None


class Subject:
    """The agent, as often as it has to be started."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.log: list[Frame] = []
        self.processes: list[CheckedProcess] = []
        self.agent_name: str | None = None
        self._epoch = time.monotonic()
        self._shared: CheckedProcess | None = None
        self._session: tuple[CheckedProcess, str] | None = None
        self._no_handshake: str | None = None
        self._no_session: str | None = None

    @property
    def stderr_bytes(self) -> int:
        """What it wrote to stderr, all processes together."""
        return sum(process.stderr_bytes for process in self.processes)

    def written_by(self, process: CheckedProcess, since: int) -> list[Frame]:
        """What one process wrote, from the entry `since` of the log on."""
        return [frame for frame in self.log[since:] if frame.process == process.number and frame.sender == "agent"]

    # -- processes --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def fresh(self, *, opened: bool = True) -> AsyncIterator[CheckedProcess]:
        """A process of its own, with the handshake done unless `opened=False`; it is ended with the block."""
        if opened and self._no_handshake is not None:
            raise NotApplicable(self._no_handshake)
        process = self._start()
        try:
            if opened:
                await self._open(process)
            yield process
        finally:
            await process.aclose()

    async def shared(self) -> CheckedProcess:
        """The process that checks share, started again if one of them ended it."""
        if self._no_handshake is not None:
            raise NotApplicable(self._no_handshake)
        if self._shared is not None and self._shared.has_ended:
            await self._shared.aclose()
            self._shared = None
        if self._shared is None:
            process = self._start()
            try:
                await self._open(process)
            except BaseException:
                await process.aclose()
                raise
            self._shared = process
        return self._shared

    async def restart(self) -> None:
        """End the shared process: the next check starts another one."""
        if self._shared is not None:
            process, self._shared = self._shared, None
            await process.aclose()

    async def aclose(self) -> None:
        """End whatever still runs."""
        for process in self.processes:
            await process.aclose()

    def _start(self) -> CheckedProcess:
        options = self.options
        process = CheckedProcess(
            options.argv,
            env=options.env,
            number=len(self.processes) + 1,
            log=self.log,
            epoch=self._epoch,
            timeout=options.timeout,
        )
        process.start()
        self.processes.append(process)
        return process

    async def _open(self, process: CheckedProcess) -> None:
        try:
            answer = await process.call("initialize", self.opening())
        except Failed as error:
            if not any(other.initialized for other in self.processes):  # it would be the same for every check
                self._no_handshake = f"the handshake failed: {error}"
            raise
        if answer.is_error:
            self._no_handshake = f"the handshake failed: {answer}"
            raise Failed(self._no_handshake)
        if answer.result.get("protocolVersion") != self.options.version:
            self._no_handshake = (
                f"the agent answered protocol version {answer.result.get('protocolVersion')!r}, "
                f"not {self.options.version}"
            )
            raise Failed(self._no_handshake)
        process.initialized = answer
        info = answer.result.get("agentInfo" if self.options.version == 1 else "info")
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self.agent_name = f"{info['name']} {info.get('version', '')}".strip()

    # -- the words of both versions ---------------------------------------------------------------------------------

    def opening(self, version: int | None = None) -> dict[str, Any]:
        """The params of `initialize`. Files and terminals are not offered: nothing is to be changed by a check."""
        version = self.options.version if version is None else version
        implementation = {"name": "acprt-check", "version": VERSION}
        if self.options.version == 1:
            capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
            return {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": implementation}
        return {"protocolVersion": version, "info": implementation, "capabilities": {}}

    def capability(self, process: CheckedProcess, *path: str) -> Any:
        """What the agent advertises at a path below its capabilities; None if nothing."""
        assert process.initialized is not None
        value: Any = process.initialized.result.get(
            "agentCapabilities" if self.options.version == 1 else "capabilities", {}
        )
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def require(self, process: CheckedProcess, *path: str) -> Any:
        """The same; raises `NotApplicable` when it is not advertised."""
        value = self.capability(process, *path)
        if value is None or value is False:
            raise NotApplicable(f"the agent does not advertise {'.'.join(path)}")
        return value

    def session_params(self) -> dict[str, Any]:
        """What every request that opens a session has in common."""
        return {"cwd": self.options.cwd, "mcpServers": []}

    async def new_session(self, process: CheckedProcess) -> str:
        """A new session, and its id."""
        if self._no_session is not None:
            raise NotApplicable(self._no_session)
        answer = await process.call("session/new", self.session_params())
        session_id = answer.result.get("sessionId")
        if isinstance(session_id, str):
            return session_id
        self._no_session = f"no session could be opened: {answer}"
        if answer.code == ErrorCode.AUTH_REQUIRED:
            self._no_session = f"the agent wants a login first: {answer}"
            raise NotApplicable(self._no_session)
        raise Failed(self._no_session)

    async def session(self) -> tuple[CheckedProcess, str]:
        """The shared process, and the session in it that checks share."""
        process = await self.shared()
        if self._session is None or self._session[0] is not process:
            self._session = process, await self.new_session(process)
        return self._session

    def turn(self, process: CheckedProcess, session_id: str, text: str) -> Turn:
        """Send a prompt."""
        return Turn(self, process, session_id, text)

    async def short_turn(self, process: CheckedProcess, session_id: str) -> tuple[Turn, TurnEnd]:
        """A whole turn. Raises `NotApplicable` when the agent ends it with an error of its own making."""
        turn = self.turn(process, session_id, self.options.prompt)
        end = await turn.end()
        if end.answer.is_error:
            raise NotApplicable(f"the turn failed: {end.answer}")
        return turn, end


STOP_REASONS: tuple[str, ...] = get_args(v1.StopReason)
"""Those that the protocol names, in both versions."""
