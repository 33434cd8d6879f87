"""One connection to an agent, as every subcommand that talks to one holds it: from its start to an exit code.

`Talk.run` runs a coroutine with the open connection and turns what goes wrong into a `Failure`. It prints nothing of
what the agent says.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

import click

from acprt.acp import v1
from acprt.acp.client import Client
from acprt.acp.handshake import authenticate, initialize
from acprt.acp.peer import Peer
from acprt.acp.sessions import Session, load_session, resume_session, session
from acprt.cli import VERSION
from acprt.cli.agent_command import AgentChoice
from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import Failure, failure_of, has_ended
from acprt.cli.permissions import ask_in_terminal
from acprt.cli.progress import waiting
from acprt.cli.signals import run_with_agent
from acprt.errors import RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.trace import TraceEvent
from acprt.transports.process import AgentProcess

__all__ = ["Talk", "cli_client"]

T = TypeVar("T")

_PLAIN_TEXT_CHARACTERS = 200  # of what an agent writes to stdout that is no message
_HANG_UP_SECONDS = 0.5  # for each of two steps; what reacts at all takes a tenth of that


class Talk:
    """A connection to one agent: open while `run` runs, at one step after the other."""

    def __init__(self, agent: AgentChoice) -> None:
        self.agent = agent
        self.stage = "start"
        self.plain_text = ""
        """The first line of the agent that is no message."""
        self.peer: Peer | None = None
        """The agent, once the handshake is done."""
        self._silence: asyncio.Timeout | None = None
        self._silence_seconds = 0.0
        self._user_is_asked = False
        self._said_by_agent = False  # the error that ended the body: it came while the connection was open
        self._process: AgentProcess | None = None
        self._connection: Connection | None = None
        self._shown = contextlib.ExitStack()
        self._one_question = asyncio.Lock()

    def run(
        self,
        endpoint: Endpoint,
        body: Callable[[], Awaitable[T]],
        *,
        show_stderr: Callable[[str], object] | None = None,
    ) -> T:
        """Start the agent and run `body` with a connection of `endpoint` to it; what `body` returns.

        Raises Failure, and exits when interrupted or told to end (`acprt.cli.signals`). `show_stderr` gets the agent's
        lines, on a thread, where the user wants to see them; without it they are printed.
        """
        try:
            return run_with_agent(self._connected(endpoint, body, show_stderr))
        except (RpcError, TimeoutError) as error:
            raise self._failure_of(error) from error
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None

    @property
    def cx(self) -> Connection:
        """The connection, once it is open."""
        assert self._connection is not None, "the body of a talk runs with its connection"
        return self._connection

    async def initialize(self, auth: str | None = None) -> Peer:
        """Shake hands, and sign in by the method `auth` where one is given."""
        with self.step("initialize", f"connecting to {self.agent.name}"):
            self.peer = await initialize(self.cx, timeout=self.agent.timeout)
        if auth is not None:
            with self.step("authenticate", f"signing in to {self.agent.name}"):
                await authenticate(self.cx, auth, timeout=self.agent.timeout)
        return self.peer

    async def open_session(self, *, load: str | None = None, resume: str | None = None) -> Session:
        """A new session in the folder that the user chose; or an earlier one by its id, with its history or without."""
        cx, cwd, timeout = self.cx, self.agent.cwd, self.agent.timeout
        if load is not None:
            stage, opening = "session/load", load_session(cx, load, cwd=cwd, timeout=timeout)
        elif resume is not None:
            stage, opening = "session/resume", resume_session(cx, resume, cwd=cwd, timeout=timeout)
        else:
            stage, opening = "session/new", session(cx, cwd=cwd, timeout=timeout)
        with self.step(stage, "opening a session"):
            return await opening

    async def set_mode(self, opened: Session, mode: str | None) -> None:
        """Set the mode of a session, where one is given."""
        if mode is not None:
            with self.step("session/set_mode", f"setting the mode {mode}"):
                async with asyncio.timeout(self.agent.timeout):
                    await opened.set_mode(mode)

    @contextlib.contextmanager
    def step(self, stage: str, shown: str) -> Iterator[None]:
        """A step that the user waits for: named in errors as `stage`, shown meanwhile as `shown`."""
        self.stage = stage
        with contextlib.ExitStack() as self._shown:
            self._shown.enter_context(waiting(shown))
            yield

    def stop_waiting(self) -> None:
        """There is something else to show: end what the step shows before the step ends."""
        self._shown.close()

    @contextlib.asynccontextmanager
    async def no_silence_of(self, seconds: float | None) -> AsyncIterator[None]:
        """Raise TimeoutError when no line comes for so long: a limit on silence, since turns may take hours."""
        if seconds is None:
            yield
            return
        self._silence_seconds = seconds
        try:
            async with asyncio.timeout(seconds) as self._silence:
                yield
        finally:
            self._silence = None

    @contextlib.contextmanager
    def silence_allowed(self) -> Iterator[None]:
        """While the agent waits for the user, it may be silent."""
        self._user_is_asked = True
        if self._silence is not None:
            self._silence.reschedule(None)
        try:
            yield
        finally:
            self._user_is_asked = False
            self._put_off()

    async def ask(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        """Put a question of the agent to the user, one at a time; nothing else is shown meanwhile."""
        async with self._one_question:
            self.stop_waiting()
            with self.silence_allowed():
                return await ask_in_terminal(request)

    async def hang_up(self) -> None:
        """End the agent in about a second, whatever it does: nobody takes any more what it says.

        One that floods reads neither a cancel nor EOF, so its group gets SIGTERM and SIGKILL sooner than at the end of
        a conversation.
        """
        process = self._process
        assert process is not None, "the body of a talk runs with its agent"
        process.close_write()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HANG_UP_SECONDS):
                await self.cx.incoming_closed()
        child = process.child_status()
        if child is not None and child.exit_status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HANG_UP_SECONDS):
                await process.aclose()  # cut short, it goes on to SIGKILL

    def _failure_of(self, error: Exception) -> Failure:
        option = "--idle-timeout" if self._silence_seconds else "--timeout"
        return failure_of(
            error,
            self.stage,
            said_by_agent=self._said_by_agent,
            plain_text=self.plain_text,
            ways_to_sign_in=[way.id for way in self.peer.auth_methods] if self.peer is not None else [],
            more_time=f"{option} waits longer"
            + ("" if self.agent.shows_stderr else ", --stderr shows what it says there"),
        )

    async def _connected(
        self,
        endpoint: Endpoint,
        body: Callable[[], Awaitable[T]],
        show_stderr: Callable[[str], object] | None,
    ) -> T:
        self.agent.tap(endpoint)
        endpoint.trace(self._line_passed)
        self._process = self.agent.process(show_stderr)
        async with endpoint.connect(self._process) as self._connection:
            try:
                return await body()
            except RpcError:
                self._said_by_agent = not has_ended(self._connection)  # now: behind the block it has, in any case
                raise

    def _line_passed(self, event: TraceEvent) -> None:
        if event.direction == "out":
            return
        self._put_off()
        if not self.plain_text and not event.line.lstrip().startswith((b"{", b"[")):
            self.plain_text = event.line[:_PLAIN_TEXT_CHARACTERS].decode("utf-8", "replace").strip()

    def _put_off(self) -> None:
        if self._silence is not None and not self._silence.expired() and not self._user_is_asked:
            self._silence.reschedule(asyncio.get_running_loop().time() + self._silence_seconds)


def cli_client() -> Client:
    """The client that this command is, without handlers."""
    return Client("acprt", version=VERSION, title="acprt command")
