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


def serve_reloading(command: Sequence[str], folder: Path) -> None:
    """Serve what `command` starts on this process's stdio, started anew when a Python file below `folder` changes."""
    run(_Reloader(command, folder).front)


class _Reloader:
    """The client's connection in front, that of the agent of the moment behind."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.front = Endpoint("reload")
        self.front.on_receive_dispatch(self._from_client)
        self.front.with_spawned(self._keep_running)
        self._back = Endpoint("reload, agent side")
        self._back.on_receive_dispatch(self._from_agent)
        self._command = command
        self._folder = folder
        self._client: Connection | None = None
        self._agent: Connection | None = None
        self._settled = asyncio.Event()  # an agent runs, or could not be started
        self._hello: bytes | None = None

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
        try:
            process = AgentProcess(*self._command, on_stderr=lambda line: click.echo(line, err=True))
            agent = await self._back.open(process)
            running.push_async_callback(agent.aclose)
            if self._hello is not None:
                await agent.send_request("initialize", msgspec.Raw(self._hello)).block_task(timeout=_START_SECONDS)
            self._agent = agent
        except (RpcError, TimeoutError) as error:
            click.echo(f"acprt: the agent could not be started: {error}", err=True)
        self._settled.set()

    async def _from_client(self, dispatch: Dispatch) -> Handled | None:
        if dispatch.kind == "response":
            return Handled.no(dispatch)
        if dispatch.method == "initialize":
            self._hello = bytes(dispatch.raw_params)
        await self._settled.wait()
        if self._agent is None and dispatch.responder is not None:
            data = {"reason": "reload_failed", "error": "the agent does not start; its stderr says why"}
            dispatch.responder.respond_with_error(RpcError.internal_error(data))
        elif self._agent is not None:
            _forward(dispatch, self._agent)
        return None

    async def _from_agent(self, dispatch: Dispatch) -> Handled | None:
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
