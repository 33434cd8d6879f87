"""A scripted peer: the other end of a connection, in the hands of a test.

It writes what it is told, line by line, right or wrong, and expects what must come. It knows nothing of the runtime it
talks to: whatever it sees was on the wire.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from acprt.limits import DEFAULT_LIMITS
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.testing.clock import FakeClockLoop, fake_clock_loop
from acprt.transports.memory import MemoryTransport, memory_pair
from acprt.wire.lines import OversizedLine

__all__ = ["ScriptedPeer"]

_SECONDS = 10.0  # for a message that is on its way; a fake clock needs none
_SHOWN = 20  # messages of the past that a failure tells
_END_SECONDS = 10.0  # for serving to end: twice what requests that still run are given

_ANY: Any = ...


class ScriptedPeer:
    """Made by `as_client_of` and `as_agent_of`. Messages are plain values, as JSON has them."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.lost: Exception | None = None
        """What broke the connection, if anything did."""
        self.transcript: list[tuple[str, Any]] = []
        """Everything so far: `("sent", …)` and `("got", …)`; what is no JSON is in it as bytes."""
        self._connection: Connection | None = None
        self._transport = transport
        self._unread: deque[Any] = deque()
        self._changed = asyncio.Event()
        self._at_eof = False
        self._next_id = 1
        transport.open(self, DEFAULT_LIMITS)

    @classmethod
    @asynccontextmanager
    async def as_client_of(cls, agent: Endpoint) -> AsyncIterator[ScriptedPeer]:
        """Serve `agent`, as `acprt.run` would, to a scripted client. With the block comes EOF, and then serving must
        end; what it raises is raised here.
        """
        near, far = memory_pair()
        serving = asyncio.ensure_future(agent.serve(far))
        peer = cls(near)
        try:
            yield peer
            peer.close()
            loop = asyncio.get_running_loop()
            if isinstance(loop, FakeClockLoop):
                await loop.advance(_END_SECONDS)
            else:
                await asyncio.wait([serving], timeout=_END_SECONDS)
            if not serving.done():
                raise AssertionError(f"{agent.name} was not done {_END_SECONDS:g} s after EOF")
            serving.result()
        finally:
            serving.cancel()
            await asyncio.wait([serving])
            await peer.aclose()

    @classmethod
    @asynccontextmanager
    async def as_agent_of(cls, client: Endpoint) -> AsyncIterator[ScriptedPeer]:
        """Connect `client`, as to a child that it started, to a scripted agent; its connection is `peer.cx`."""
        near, far = memory_pair(left_is_parent=True)
        peer = cls(far)
        try:
            async with client.connect(near) as cx:
                peer._connection = cx
                yield peer
        finally:
            await peer.aclose()

    @property
    def cx(self) -> Connection:
        """The connection of the client under test. RuntimeError for an agent under test: serving has it to itself."""
        if self._connection is None:
            raise RuntimeError(
                "as_client_of serves the agent, whose connection its handlers get: only as_agent_of has cx"
            )
        return self._connection

    # -- what it says -----------------------------------------------------------------------------------------------

    def send(self, *messages: Any) -> None:
        """Write each message as a line of its own, in one write: text and bytes as they are, other values as JSON."""
        lines = []
        for message in messages:
            self.transcript.append(("sent", message))
            if isinstance(message, str):
                message = message.encode()
            lines.append((message if isinstance(message, bytes) else msgspec.json.encode(message)) + b"\n")
        self._transport.write(b"".join(lines))

    def send_raw(self, data: bytes) -> None:
        """Write bytes as they are, with no end of line."""
        self.transcript.append(("sent", data))
        self._transport.write(data)

    def request(self, method: str, params: Any = None, *, id: Any = None) -> Any:
        """Send a request; its id, counted up from 1 unless it is given."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1
        self.send(_with_params({"jsonrpc": "2.0", "id": id, "method": method}, params))
        return id

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send(_with_params({"jsonrpc": "2.0", "method": method}, params))

    def respond(self, request: dict[str, Any], result: Any) -> None:
        """Answer a request that came."""
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def respond_error(self, request: dict[str, Any], code: int, message: str, data: Any = None) -> None:
        """Answer a request that came with an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    def close(self) -> None:
        """Half-close: the other side sees EOF, and may go on writing."""
        self._transport.close_write()

    async def aclose(self) -> None:
        """Close both directions, as a process that dies does."""
        await self._transport.aclose()

    async def delay(self, seconds: float) -> None:
        """Let time pass on the fake clock. RuntimeError on a loop that has none."""
        await fake_clock_loop().advance(seconds)

    # -- what it expects --------------------------------------------------------------------------------------------

    async def expect(self, method: str, params: Any = _ANY) -> dict[str, Any]:
        """The next message, which must be a request or a notification of `method`. Of an object in `params` the members
        that are named must be as they are here; others may be there, too. AssertionError tells what came instead.
        """
        message = await self.receive()
        if not (isinstance(message, dict) and message.get("method") == method):
            raise self._unexpected(method, message)
        if not _fits(message.get("params"), params):
            raise self._unexpected(f"{method} with params {params!r}", message)
        return message

    async def expect_result(self, id: Any, result: Any = _ANY) -> Any:
        """The next message, which must be the answer to the request `id`, and no error; its result."""
        message = await self._expect_answer(id)
        if "result" not in message:
            raise self._unexpected(f"a result for id {id!r}", message)
        if not _fits(message["result"], result):
            raise self._unexpected(f"the result {result!r}", message)
        return message["result"]

    async def expect_error(self, id: Any, code: int | None = None) -> dict[str, Any]:
        """The next message, which must answer the request `id` with an error, of `code` if that is given; the error."""
        message = await self._expect_answer(id)
        error = message.get("error")
        if not isinstance(error, dict) or code not in (None, error.get("code")):
            raise self._unexpected(
                f"an error for id {id!r}" if code is None else f"error {code} for id {id!r}", message
            )
        return error

    async def expect_nothing(self) -> None:
        """See that nothing more comes. On a fake clock that is certain; otherwise it is asked by a request that the
        other side must answer, and what it says before counts.
        """
        loop = asyncio.get_running_loop()
        if isinstance(loop, FakeClockLoop):
            await loop.settled()
            if self._unread:
                raise self._unexpected("nothing", self._unread[0])
            return
        id = self.request("_acprt.testing/anything_before_this?", {}, id="anything before this?")
        message = await self.receive()
        if not (isinstance(message, dict) and message.get("id") == id):
            raise self._unexpected("nothing", message)

    async def expect_eof(self) -> None:
        """Wait until the other side has closed. AssertionError when it says something first, or does not."""
        await self._until(lambda: self._unread or self._at_eof or self.lost, "the end")
        if self._unread:
            raise self._unexpected("the end", self._unread[0])

    async def receive(self) -> Any:
        """The next message, whatever it is. AssertionError when none comes."""
        await self._until(lambda: self._unread or self._at_eof or self.lost, "a message")
        if not self._unread:
            raise AssertionError(f"the other side has closed, no message can come any more\n{self._past()}")
        return self._unread.popleft()

    async def _expect_answer(self, id: Any) -> dict[str, Any]:
        message = await self.receive()
        if not isinstance(message, dict) or "method" in message or message.get("id") != id:
            raise self._unexpected(f"the answer to id {id!r}", message)
        answer: dict[str, Any] = message
        return answer

    async def _until(self, happened: Callable[[], object], what: str) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(loop, FakeClockLoop):
            await loop.settled()
            if not happened():
                raise AssertionError(f"{what} was expected, and nothing comes without a delay\n{self._past()}")
            return
        try:
            async with asyncio.timeout(_SECONDS):
                while not happened():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what} was expected and did not come in {_SECONDS:g} s\n{self._past()}") from None

    def _unexpected(self, expected: str, message: Any) -> AssertionError:
        return AssertionError(f"{expected} was expected, and this came: {_brief(message)}\n{self._past()}")

    def _past(self) -> str:
        lines = [f"  {'→' if how == 'sent' else '←'} {_brief(message)}" for how, message in self.transcript[-_SHOWN:]]
        return "\n".join(["so far:", *lines])

    # -- Sink -------------------------------------------------------------------------------------------------------

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        """Decode and keep each line."""
        for line in lines:
            message = _decoded(line.head if isinstance(line, OversizedLine) else line)
            self.transcript.append(("got", message))
            self._unread.append(message)
        self._changed.set()

    def eof_received(self) -> None:
        """The other side will say nothing more."""
        self._at_eof = True
        self._changed.set()

    def connection_lost(self, error: Exception) -> None:
        """The other side is gone."""
        self.lost = error
        self._changed.set()

    def pause_writing(self) -> None:
        """The transport keeps what is not read."""

    def resume_writing(self) -> None:
        """It was read."""


def _fits(value: Any, expected: Any) -> bool:
    """Whether `value` is as expected; `...` fits everything, and an object fits one with more members."""
    if expected is _ANY:
        return True
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(
            name in value and _fits(value[name], member) for name, member in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(_fits(each, other) for each, other in zip(value, expected, strict=True))
        )
    return type(value) is type(expected) and bool(value == expected)


def _with_params(message: dict[str, Any], params: Any) -> dict[str, Any]:
    return message if params is None else message | {"params": params}


def _decoded(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return line


def _brief(message: Any) -> str:
    text = repr(message) if isinstance(message, bytes | str) else msgspec.json.encode(message).decode()
    return text if len(text) <= 300 else text[:300] + "…"
