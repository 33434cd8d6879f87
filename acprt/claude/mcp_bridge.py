"""MCP servers of the host's, reached through the control protocol: each is an endpoint of the runtime.

The messages inside `mcp_message` are JSON-RPC and go through the runtime's dispatcher unchanged. It knows no MCP but
for its cancel: of a request that was cancelled no server says any more, while the command waits for each message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from acprt.claude.asks import McpMessage, McpMessageReply
from acprt.errors import RpcError
from acprt.limits import Limits
from acprt.runtime.endpoint import Endpoint
from acprt.transports.memory import memory_pair
from acprt.wire.frames import UNREADABLE, MalformedFrame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId
from acprt.wire.lines import Line

__all__ = ["McpBridges"]

logger = logging.getLogger("acprt.claude")

_CANCELLED = "notifications/cancelled"
_NEVER_CANCELLED = ("initialize", "server/discover")
_ACKNOWLEDGED = McpMessageReply(mcp_response={"jsonrpc": "2.0", "result": {}, "id": 0})


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: int | str


_decode_cancelled = msgspec.json.Decoder(_Cancelled).decode


class McpBridges:
    """The servers by name. `send(server_name, message)` puts a message of a server's own on its way to the command."""

    def __init__(self, servers: Mapping[str, Endpoint], limits: Limits, send: Callable[[str, Raw], None]) -> None:
        self._servers = servers
        self._limits = limits
        self._send = send
        self._open: dict[str, _Bridge] = {}

    @property
    def names(self) -> list[str]:
        """The servers, as the command is told of them."""
        return list(self._servers)

    async def take(self, request: McpMessage) -> McpMessageReply:
        """Bring a message to its server; the server's answer to a request, an acknowledgement of all else."""
        bridge = self._open.get(request.server_name)
        if bridge is None:
            server = self._servers.get(request.server_name)
            if server is None:
                raise RpcError.invalid_params(f"no MCP server {request.server_name!r} here")
            bridge = _Bridge(request.server_name, server, self._limits, self._send)
            self._open[request.server_name] = bridge
        return await bridge.take(request.message)

    async def aclose(self) -> None:
        """End the connections to the servers."""
        for bridge in self._open.values():
            await bridge.aclose()


class _Bridge:
    """One server: the sink of the far end of a pair, whose near end the endpoint serves."""

    def __init__(self, name: str, server: Endpoint, limits: Limits, send: Callable[[str, Raw], None]) -> None:
        self._name = name
        self._send = send
        self._waiting: dict[RequestId, asyncio.Future[Raw]] = {}
        self._opening: RequestId = None  # of its cancel a server takes no notice
        self._ended: str | None = None  # why nothing can be brought to the server any more
        near, self._far = memory_pair()
        self._cx = server.open_connection(near)
        self._far.open(self, limits)

    async def take(self, message: Raw) -> McpMessageReply:
        line = msgspec.json.format(bytes(message), indent=-1)
        frame = parse(line)
        if self._ended is not None:
            raise RpcError.internal_error(self._ended)
        if not isinstance(frame, RequestFrame):
            if isinstance(frame, MalformedFrame):
                raise frame.error
            self._far.write(line + b"\n")
            if isinstance(frame, NotificationFrame) and frame.method == _CANCELLED:
                self._end_cancelled(frame.params)
            return _ACKNOWLEDGED
        if frame.id in self._waiting:
            raise RpcError.invalid_request(f"request {frame.id!r} of the MCP client is in flight already")
        waiter = asyncio.get_running_loop().create_future()
        self._waiting[frame.id] = waiter
        if frame.method in _NEVER_CANCELLED:
            self._opening = frame.id
        self._far.write(line + b"\n")
        try:
            return McpMessageReply(mcp_response=await waiter)
        except asyncio.CancelledError:
            cancel = {"jsonrpc": "2.0", "method": _CANCELLED, "params": {"requestId": frame.id}}
            self._far.write(msgspec.json.encode(cancel) + b"\n")
            raise
        finally:
            del self._waiting[frame.id]

    async def aclose(self) -> None:
        await self._cx.aclose()
        await self._far.aclose()

    # -- the sink of the far end --------------------------------------------------------------------------------------

    def lines_received(self, lines: list[Line]) -> None:
        for line in lines:
            frame = parse(line)
            if isinstance(frame, ResponseFrame):
                waiter = self._waiting.get(frame.id)
                if waiter is not None and not waiter.done():
                    waiter.set_result(Raw(bytes(_whole(line))))
            elif not isinstance(frame, MalformedFrame):
                self._send(self._name, Raw(bytes(_whole(line))))
            else:
                logger.warning("MCP server %s wrote a line that is no message: %s", self._name, frame.excerpt())
                if isinstance(frame.reply_id, int | str):
                    why = f"the answer of MCP server {self._name} was lost: {frame.error.data}"
                    self._refuse(frame.reply_id, RpcError.internal_error(why[:500]))

    def eof_received(self) -> None:
        self._fail(f"MCP server {self._name} has ended")

    def connection_lost(self, error: Exception) -> None:
        self._fail(f"MCP server {self._name} failed: {error}")

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def _fail(self, why: str) -> None:
        self._ended = why
        for id in self._waiting:
            self._refuse(id, RpcError.internal_error(why))

    def _end_cancelled(self, params: Raw) -> None:
        with contextlib.suppress(*UNREADABLE):
            id = _decode_cancelled(params).request_id
            if id != self._opening:
                self._refuse(id, RpcError.request_cancelled())

    def _refuse(self, id: RequestId, error: RpcError) -> None:
        waiter = self._waiting.get(id)
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


def _whole(line: Line) -> Any:
    assert isinstance(line, bytes), "what parses is no over-long line"
    return line
