"""`acprt run --reload`: stands between the client and an agent that is started anew whenever its files change.

The client keeps its connection: what it said in `initialize` is said again to each new agent. Requests that the old one
has not answered fail, and so do those to sessions that only the old one knew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from acprt.cli.exit_codes import ExitCode
from acprt.cli.failures import Failure, failure_of, has_ended
from acprt.cli.signals import hangup_is_an_end
from acprt.errors import RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.handlers import Handled
from acprt.runtime.routing import Dispatch
from acprt.runtime.run import run
from acprt.transports.process import AgentProcess

__all__ = ["serve_reloading"]

_POLL_SECONDS = 0.3  # a person who saves a file does not notice, and a folder of thousands takes a few milliseconds
_START_SECONDS = 60.0  # for an agent to answer `initialize` again
_SKIPPED = {"__pycache__", "node_modules", "build", "dist"}


def serve_reloading(command: Sequence[str], folder: Path, *, exit_with_parent: bool = False) -> None:
    """Serve what `command` starts on this process's stdio, started anew when a Python file below `folder` changes.

    Returns at EOF, as `acprt.run` does. Raises Failure then if no agent that was started ever came to run.
    """
    reloader = _Reloader(command, folder)
    hangup_is_an_end()  # else it would leave the agent behind
    run(reloader.front, exit_with_parent=exit_with_parent)
    if reloader.never_ran:
        raise Failure("no agent came to run before the end of the input; its stderr says why", ExitCode.FAILED)


class _Reloader:
    """The client's connection in front, that of the agent of the moment behind."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.front = Endpoint("reload")
        self.front.on_receive_dispatch(self._from_client)
        self.front.with_spawned(self._keep_running)
        self._back = Endpoint("reload, agent side")
        self._back.on_receive_dispatch(self._from_agent)
        self._back.on_close(self._agent_ended)
        self._command = command
        self._folder = folder
        self._client: Connection | None = None
        self._agent: Connection | None = None
        self._process: AgentProcess | None = None  # of the agent that was started last
        self._settled = asyncio.Event()  # an agent runs, or could not be started
        self._has_spoken = False  # any agent so far
        self._hello: bytes | None = None

    @property
    def never_ran(self) -> bool:
        """Whether no agent said a word and the last one failed by itself; one that was ended has not failed."""
        if self._has_spoken or self._process is None:
            return False
        child = self._process.child_status()
        return child is None or (child.exit_status or 0) > 0

    async def _keep_running(self, client: Connection) -> None:
        """One agent after the other, until the connection to the client ends."""
        self._client = client
        seen = _stamps(self._folder)
        while True:
            async with contextlib.AsyncExitStack() as running:
                await self._start(running)
                seen = await self._changed(seen)
                self._settled.clear()
                self._agent = None
            click.echo("acprt: files changed, the agent is started anew", err=True)

    async def _changed(self, seen: dict[str, int]) -> dict[str, int]:
        """Wait until the files are no longer as they were; how they are then."""
        while True:
            now = await asyncio.to_thread(_stamps, self._folder)
            if now != seen:
                return now
            await asyncio.sleep(_POLL_SECONDS)

    async def _start(self, running: contextlib.AsyncExitStack) -> None:
        self._process = AgentProcess(*self._command, on_stderr=lambda line: click.echo(line, err=True))
        agent: Connection | None = None
        try:
            agent = await self._back.open(self._process)
            running.push_async_callback(agent.aclose)
            if self._hello is not None:
                await agent.send_request("initialize", msgspec.Raw(self._hello)).block_task(timeout=_START_SECONDS)
            self._agent = None if agent.is_incoming_closed else agent
        except (RpcError, TimeoutError) as error:
            is_agents = agent is not None and not has_ended(agent)
            failure = failure_of(error, "initialize", said_by_agent=is_agents)
            why = failure.message.partition("\n")[0]  # its stderr was shown as it came
            click.echo(f"acprt: the agent could not be started: {why}; a changed file starts it anew", err=True)
        self._settled.set()

    async def _from_client(self, dispatch: Dispatch) -> Handled | None:
        if dispatch.kind == "response":
            return Handled.no(dispatch)
        await self._settled.wait()
        if self._agent is None and dispatch.responder is not None:
            data = {
                "reason": "reload_failed",
                "error": "no agent runs: its stderr says why; change a file to start one",
            }
            dispatch.responder.respond_with_error(RpcError.internal_error(data))
        elif self._agent is not None:
            if dispatch.method == "initialize":
                self._hello = bytes(dispatch.raw_params)  # for the next agent; this one hears it now
            _forward(dispatch, self._agent)
        return None

    async def _agent_ended(self, agent: Connection) -> None:
        """It ended by itself: in the middle of its work, or before it came to any."""
        if agent is self._agent:
            self._agent = None
            child = agent.status().child
            status = "" if child is None or child.exit_status is None else f" with exit status {child.exit_status}"
            click.echo(f"acprt: the agent ended{status}; a changed file starts it anew", err=True)

    async def _from_agent(self, dispatch: Dispatch) -> Handled | None:
        self._has_spoken = True
        if dispatch.kind == "response":
            return Handled.no(dispatch)
        assert self._client is not None, "agents are started once the client is connected"
        _forward(dispatch, self._client)
        return None


def _forward(dispatch: Dispatch, onward: Connection) -> None:
    if dispatch.responder is not None:
        onward.send_request(dispatch.method, dispatch.raw_params).forward_response_to(dispatch.responder)
    elif dispatch.method != "$/cancel_request":  # its request is known there by another id: the forwarding cancels
        with contextlib.suppress(RpcError):  # that side is just ending
            onward.send_notification(dispatch.method, dispatch.raw_params)


def _stamps(folder: Path) -> dict[str, int]:
    """When each Python file below `folder` was changed last."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                with contextlib.suppress(OSError):
                    found[path] = os.stat(path).st_mtime_ns
    return found
