"""An agent as a child process, for tests: connected, and looked at afterwards for what it left behind."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from acprt.acp import Client
from acprt.acp.handshake import initialize
from acprt.limits import Limits
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.testing.proc import HAS_PROC, running_processes
from acprt.transports.process import AgentProcess

__all__ = ["SpawnedAgent", "processes_of_group", "spawned_agent"]

_GONE_SECONDS = 5.0  # for what was killed to be gone, on a busy machine

_COMPLAINT = re.compile(
    r"^Traceback |Warning: |was never awaited|Exception ignored in|Task was destroyed", re.MULTILINE
)
"""What a Python program writes to stderr when something was forgotten."""


class SpawnedAgent:
    """A child that is connected. `stderr` has the lines that it wrote there so far."""

    def __init__(self, cx: Connection, stderr: list[str]) -> None:
        self.cx = cx
        self.stderr = stderr

    @property
    def pid(self) -> int:
        """Its process id, which is that of its process group."""
        child = self.cx.status().child
        assert child is not None
        return child.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        child = self.cx.status().child
        return None if child is None else child.exit_status


@asynccontextmanager
async def spawned_agent(
    *argv: str | os.PathLike[str],
    client: Endpoint | None = None,
    env: Mapping[str, str | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    handshake: bool = True,
    quiet: bool = True,
) -> AsyncIterator[SpawnedAgent]:
    """Start the agent that `argv` names, connect `client` to it (by default one that offers nothing), do the handshake.

    At the end of the block it must end with status 0 once its stdin is closed, leave no process of its group behind
    and, if it is to be `quiet`, have written no traceback and no warning to stderr. AssertionError tells what is not
    so. RpcError when it cannot be started, and whatever the handshake raises.
    """
    client = client or Client("test-client", version="0")
    stderr: list[str] = []
    transport = AgentProcess(*argv, env=env, cwd=cwd, limits=limits, on_stderr=stderr.append)
    async with client.connect(transport) as cx:
        if handshake:
            await initialize(cx)
        agent = SpawnedAgent(cx, stderr)
        yield agent
    left = await _left_of(agent.pid)
    if left:
        raise AssertionError(f"the agent left processes behind: {left}")
    said = "\n".join(stderr)
    if agent.exit_status != 0:
        raise AssertionError(f"the agent ended with exit status {agent.exit_status}; its stderr:\n{said}")
    if quiet and _COMPLAINT.search(said):
        raise AssertionError(f"the agent complained on stderr:\n{said}")


async def _left_of(group: int) -> list[str]:
    deadline = asyncio.get_running_loop().time() + _GONE_SECONDS
    # Nobody tells when a process is gone that is not ours to wait for.
    while (left := processes_of_group(group)) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return left


def processes_of_group(group: int) -> list[str]:
    """What lives in a process group, as `pid (name)`; zombies do not. Without /proc just that something does."""
    if HAS_PROC:
        return [each.label for each in running_processes() if each.group == group and each.state not in "ZX"]
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, 0)
        return [f"group {group}"]
    return []
