"""A transport played by a test: it delivers what the test says, keeps what is written, fails or stalls on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

import acprt
from acprt.limits import Limits
from acprt.transports.base import ChildStatus, Sink


class ScriptedTransport:
    """`deliver`, `end` and `lose` play the peer; `stall()` lets nothing out until `flow()`."""

    def __init__(self, *, peer_is_child: bool = False, facts: dict[str, Any] | None = None) -> None:
        self.peer_is_child = peer_is_child
        self.calls: list[str] = []
        self.write_closed = False
        self.closed = False
        self.close_error: Exception | None = None
        self.drain_error: OSError | None = None
        self._facts = facts or {}
        self._data = b""
        self._stalled = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    def deliver(self, *messages: Any) -> None:
        """All messages in one chunk."""
        self.sink.lines_received([m if isinstance(m, bytes) else msgspec.json.encode(m) for m in messages])

    def end(self) -> None:
        """Clean EOF."""
        self.sink.eof_received()

    def lose(self, error: Exception) -> None:
        """Reading or writing failed."""
        self.sink.connection_lost(error)

    def stall(self) -> None:
        """The peer reads no more."""
        self._stalled = True
        self._flowing.clear()
        self.sink.pause_writing()

    def flow(self) -> None:
        """The peer reads again, everything."""
        self._stalled = False
        self._flowing.set()
        self.sink.resume_writing()

    @property
    def written(self) -> list[Any]:
        """What was written, decoded line by line."""
        return [msgspec.json.decode(line) for line in self._data.splitlines()]

    def open(self, sink: Sink, limits: Limits) -> None:
        self.sink = sink

    def write(self, data: bytes) -> None:
        self._data += data

    async def drain(self) -> None:
        if self.drain_error is not None:
            raise self.drain_error
        await self._flowing.wait()

    def pause_reading(self) -> None:
        self.calls.append("pause_reading")

    def resume_reading(self) -> None:
        self.calls.append("resume_reading")

    def close_write(self) -> None:
        self.write_closed = True

    async def aclose(self) -> None:
        self.closed = True
        if self.close_error is not None:
            raise self.close_error

    def facts(self) -> dict[str, Any]:
        return self._facts

    def child_status(self) -> ChildStatus | None:
        return None


def request(id: Any, method: str, params: Any = None) -> dict[str, Any]:
    """A request as JSON."""
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return message if params is None else message | {"params": params}


def notification(method: str, params: Any = None) -> dict[str, Any]:
    """A notification as JSON."""
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def cancel(id: Any) -> dict[str, Any]:
    """The plain dialect's cancel as JSON."""
    return notification("$/cancel_request", {"requestId": id})


def result(id: Any, value: Any) -> dict[str, Any]:
    """A successful answer as JSON."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """An error answer as JSON."""
    body = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": id, "error": body if data is None else body | {"data": data}}


@asynccontextmanager
async def scripted(endpoint: acprt.Endpoint) -> AsyncIterator[tuple[acprt.Connection, ScriptedTransport]]:
    """A connection of `endpoint` whose peer is the test itself, and its transport."""
    transport = ScriptedTransport()
    cx = await endpoint.open(transport)
    try:
        yield cx, transport
    finally:
        await cx.aclose()


async def served(endpoint: acprt.Endpoint) -> tuple[asyncio.Task[None], ScriptedTransport]:
    """A running `serve()` and its scripted transport."""
    transport = ScriptedTransport()
    serving = asyncio.create_task(endpoint.serve(transport))
    await asyncio.sleep(0)
    return serving, transport


def keeper() -> tuple[acprt.Endpoint, list[acprt.Responder[Any]]]:
    """An endpoint that answers no `ask` by itself, and the responders that it keeps, in the order of the requests."""
    endpoint = acprt.Endpoint("keeper")
    kept: list[acprt.Responder[Any]] = []

    @endpoint.on_receive_request("ask")
    async def ask(_params: Any, responder: acprt.Responder[Any]) -> None:
        kept.append(responder)

    return endpoint, kept


def keeper_by_id() -> tuple[acprt.Endpoint, dict[Any, acprt.Responder[Any]]]:
    """The same, kept by the ids of the requests."""
    endpoint = acprt.Endpoint("keeper")
    kept: dict[Any, acprt.Responder[Any]] = {}

    @endpoint.on_receive_request("ask")
    async def ask(_params: Any, responder: acprt.Responder[Any], _cx: acprt.Connection) -> None:
        kept[responder.id] = responder

    return endpoint, kept


async def fail_with(error: Exception) -> None:
    """Work that fails."""
    raise error


async def outcome_of(sent: acprt.SentRequest[Any]) -> acprt.Result[Any]:
    """What a waiter gets, as a value."""
    try:
        return acprt.Ok(await sent.block_task(timeout=5))
    except acprt.RpcError as failure:
        return acprt.Err(failure)


async def until_idle() -> None:
    """Let everything that can go on without the peer go on."""
    for _ in range(20):
        await asyncio.sleep(0)


CANCELLED = {"code": -32800, "message": "Request cancelled"}
SHUTTING_DOWN = {"code": -32603, "message": "Internal error", "data": {"reason": "shutting_down"}}
