"""A scripted peer for tests: it writes raw lines, reads raw lines, and knows nothing of the runtime it talks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

import acprt
from acprt.limits import DEFAULT_LIMITS
from acprt.transports.memory import MemoryTransport
from acprt.wire.lines import OversizedLine


class RawPeer:
    """The far end of a memory pair. `send` takes text, bytes or JSON values; `receive` gives decoded lines in order."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self.at_eof = asyncio.Event()
        self.lost: Exception | None = None
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        transport.open(self, DEFAULT_LIMITS)

    def send(self, *messages: Any) -> None:
        """Write each message as a line of its own, all in one write."""
        lines: list[Any] = []
        for message in messages:
            if isinstance(message, bytes):
                lines.append(message)
            elif isinstance(message, str):
                lines.append(message.encode())
            else:
                lines.append(msgspec.json.encode(message))
        self.send_raw(b"".join(line + b"\n" for line in lines))

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.transport.write(data)

    def request(self, id: Any, method: str, params: Any = msgspec.UNSET) -> None:
        """Send one request."""
        self.send(_call({"jsonrpc": "2.0", "id": id, "method": method}, params))

    def notify(self, method: str, params: Any = msgspec.UNSET) -> None:
        """Send one notification."""
        self.send(_call({"jsonrpc": "2.0", "method": method}, params))

    def respond(self, id: Any, result: Any) -> None:
        """Answer a request."""
        self.send({"jsonrpc": "2.0", "id": id, "result": result})

    def respond_error(self, id: Any, code: int, message: str, **extra: Any) -> None:
        """Answer a request with an error; `data=` may be given."""
        self.send({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, **extra}})

    def cancel(self, id: Any) -> None:
        """Cancel a request by the plain dialect."""
        self.notify("$/cancel_request", {"requestId": id})

    async def receive(self, timeout: float = 5.0) -> Any:
        """The next line, decoded."""
        return msgspec.json.decode(await self.receive_raw(timeout))

    async def receive_raw(self, timeout: float = 5.0) -> bytes:
        """The next line as it came."""
        return await asyncio.wait_for(self._lines.get(), timeout)

    def unread(self) -> list[Any]:
        """Everything received and not taken yet, decoded."""
        lines: list[Any] = []
        while not self._lines.empty():
            lines.append(msgspec.json.decode(self._lines.get_nowait()))
        return lines

    async def settled(self) -> list[Any]:
        """Let everything in flight come to rest, by a round trip that the other side must answer in order; what came
        before that answer. It shows that something was *not* sent.
        """
        self.request("settled?", "acprt-test/no-such-method")
        lines: list[Any] = []
        while True:
            line = await self.receive()
            if isinstance(line, dict) and line.get("id") == "settled?":
                return lines
            lines.append(line)

    def close_write(self) -> None:
        """Half-close: the other side sees EOF."""
        self.transport.close_write()

    async def aclose(self) -> None:
        """Close both directions."""
        await self.transport.aclose()

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        for line in lines:
            assert isinstance(line, bytes)
            self._lines.put_nowait(line)

    def eof_received(self) -> None:
        self.at_eof.set()

    def connection_lost(self, error: Exception) -> None:
        self.lost = error

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


def _call(message: dict[str, Any], params: Any) -> dict[str, Any]:
    return message if params is msgspec.UNSET else message | {"params": params}


@asynccontextmanager
async def raw_client_of(endpoint: acprt.Endpoint) -> AsyncIterator[RawPeer]:
    """Serve `endpoint` and be its raw client. At the end: EOF, and serving must end cleanly."""
    near, far = acprt.memory_pair()
    serving = asyncio.create_task(endpoint.serve(far))
    peer = RawPeer(near)
    try:
        yield peer
        peer.close_write()
        await asyncio.wait_for(serving, 10)
    finally:
        if not serving.done():
            serving.cancel()
            await asyncio.wait([serving])
        await peer.aclose()


@asynccontextmanager
async def raw_server_for(
    endpoint: acprt.Endpoint, *, spawned: bool = False
) -> AsyncIterator[tuple[acprt.Connection, RawPeer]]:
    """Connect `endpoint` to a raw peer; `spawned`: as if it had started that peer as its child."""
    near, far = acprt.memory_pair(left_is_parent=spawned)
    peer = RawPeer(far)
    async with endpoint.connect(near) as cx:
        yield cx, peer


async def turns(count: int = 20) -> None:
    """Give whatever is ready its turns of the loop; what still has not happened afterwards waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)
