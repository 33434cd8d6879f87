"""As much of MCP's streamable HTTP as a client needs that only asks: one POST for each message, one answer to it.

The answer is JSON or a stream of events that holds it; what else the server sends on that stream is passed over. No
redirects, no proxies, no listening stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from acprt import mcp
from acprt.runtime.messages import Request, method_of, reply_type_of
from acprt.wire.frames import ResponseFrame, encode_notification, encode_request, parse
from acprt.wire.lines import LineSplitter
from acprt.wire.payloads import decode_result, decoder_for

__all__ = ["HttpServer"]

R = TypeVar("R")

_BODY_BYTES = 16 * 2**20  # more is no answer of a test's server
_OPENING_SECONDS = 60.0  # connecting and the handshake; a tool may take as long as it likes

Headers = Sequence[tuple[str, str]]


class _Reply(NamedTuple):
    status: int
    headers: dict[str, str]  # by their names in lower case
    body: AsyncIterator[bytes]


class HttpServer:
    """An MCP server behind a URL, opened. Raises OSError, EOFError, ValueError for what is no HTTP or no MCP, and the
    server's RpcError.
    """

    def __init__(self, url: str, headers: Headers) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url!r} is no http URL")
        self._is_safe = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._is_safe else 80)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = [("Host", parts.netloc.rpartition("@")[2]), *headers]
        self._ids = count(1)
        self._has_session = False

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str, headers: Headers, who: mcp.Implementation) -> AsyncIterator[Self]:
        """Open it, and end its session behind the block."""
        server = cls(url, headers)
        async with asyncio.timeout(_OPENING_SECONDS):
            await server._open(who)
        try:
            yield server
        finally:
            await server._end()

    async def ask(self, request: Request[R]) -> R:
        """Send a request and wait for its result."""
        id = next(self._ids)
        async with self._exchange("POST", bytes(encode_request(id, method_of(request), request))) as reply:
            if session := reply.headers.get("mcp-session-id"):
                self._keep_session(session)
            answer = await _answer(reply, id)
        if answer.error is not None:
            raise answer.error
        result: R = decode_result(decoder_for(reply_type_of(request)), answer.result)
        return result

    async def _open(self, who: mcp.Implementation) -> None:
        version = mcp.HANDSHAKE_VERSIONS[0]
        result = await self.ask(mcp.InitializeRequest(protocol_version=version, client_info=who))
        self._headers.append(("MCP-Protocol-Version", result.protocol_version))
        note = mcp.InitializedNotification()
        async with self._exchange("POST", bytes(encode_notification(method_of(note), note))):
            pass

    async def _end(self) -> None:
        """A session is told to end; a server may refuse that, and one that is gone needs no telling."""
        if self._has_session:
            try:
                async with asyncio.timeout(1.0), self._exchange("DELETE", b"", any_status=True):
                    pass
            except (OSError, EOFError, TimeoutError, ValueError):
                pass

    def _keep_session(self, id: str) -> None:
        if not self._has_session:
            self._has_session = True
            self._headers.append(("Mcp-Session-Id", id))

    @asynccontextmanager
    async def _exchange(self, verb: str, body: bytes, *, any_status: bool = False) -> AsyncIterator[_Reply]:
        head = self._head(verb, len(body))
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._is_safe or None)
        try:
            writer.write(head + body)
            reply = await _read_reply(reader)
            if reply.status // 100 != 2 and not any_status:
                raise ValueError(f"{verb} {self._path} was answered with HTTP status {reply.status}")
            yield reply
        finally:
            writer.close()

    def _head(self, verb: str, size: int) -> bytes:
        headers = [
            *self._headers,
            ("Accept", "application/json, text/event-stream"),
            ("Connection", "close"),
            ("Content-Length", str(size)),
            ("Content-Type", "application/json"),
        ]
        lines = [f"{verb} {self._path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header of the MCP server has a line break in it")
        return "\r\n".join([*lines, "", ""]).encode()


async def _read_reply(reader: asyncio.StreamReader) -> _Reply:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ValueError("the head of the HTTP answer is too long") from error
    first, *rest = head.split("\r\n")
    protocol, _, status = first.partition(" ")
    if not protocol.startswith("HTTP/1.") or not status[:3].isdecimal():
        raise ValueError(f"no HTTP answer: {first[:80]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    return _Reply(int(status[:3]), headers, _pieces(reader, headers))


async def _pieces(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    """The body, as it comes."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).partition(b";")[0] or b"", 16):
            yield await reader.readexactly(_bounded(size))
            await reader.readexactly(2)
    elif "content-length" in headers:
        yield await reader.readexactly(_bounded(int(headers["content-length"])))
    else:
        while piece := await reader.read(2**16):
            yield piece


async def _answer(reply: _Reply, id: int) -> ResponseFrame:
    """The response to request `id` in a body of either kind."""
    size = 0
    is_stream = reply.headers.get("content-type", "").startswith("text/event-stream")
    lines, data = LineSplitter(_BODY_BYTES), list[bytes]()
    async for piece in reply.body:
        size += len(piece)
        _bounded(size)
        if not is_stream:
            data.append(piece)
            continue
        for line in lines.feed(piece):
            assert isinstance(line, bytes), "the whole body is within the limit of one line"
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line:
                if (answer := _response(b"".join(data), id)) is not None:
                    return answer
                data.clear()
    answer = _response(b"".join(data), id)
    if answer is None:
        raise ValueError("the HTTP answer holds no response to the request")
    return answer


def _response(text: bytes, id: int) -> ResponseFrame | None:
    frame = parse(text) if text else None
    return frame if isinstance(frame, ResponseFrame) and frame.id == id else None


def _bounded(size: int) -> int:
    if not 0 <= size <= _BODY_BYTES:
        raise ValueError(f"an HTTP body of {size} bytes: at most {_BODY_BYTES} are read")
    return size
