"""Which commands were legacy servers when they were last started: a first guess for the next start, spared a probe.

A guess only. Whoever opens a connection must still be able to find out that the program has become another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acprt.mcp.era import ProtocolEra
from acprt.transports.process import AgentProcess

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["LegacyCommands"]

_KEPT: Final = 64  # commands: a command line may hold a name made up for each start


class LegacyCommands:
    """What the client connections of one dialect have learnt of the commands that they started, by argument list."""

    def __init__(self) -> None:
        self._commands: dict[tuple[str, ...], None] = {}  # in order of learning

    def knows(self, cx: Connection) -> bool:
        """Whether this connection has started a command that was a legacy server before."""
        return _command(cx) in self._commands

    def learn(self, cx: Connection, era: ProtocolEra) -> None:
        """The server of this connection turned out to be of `era`."""
        command = _command(cx)
        if command is None:
            return
        self._commands.pop(command, None)
        if era is ProtocolEra.LEGACY_2024:
            self._commands[command] = None
            if len(self._commands) > _KEPT:
                del self._commands[next(iter(self._commands))]


def _command(cx: Connection) -> tuple[str, ...] | None:
    """What would be started again; None for a server that was not started here."""
    return cx.transport.argv if isinstance(cx.transport, AgentProcess) else None
