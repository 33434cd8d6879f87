"""One agent that was started to be checked: raw lines out, raw lines in, every one of them recorded.

It knows JSON-RPC well enough to find an answer and to refuse what the agent asks for; it forgives nothing and hides
nothing. What is right or wrong is decided by the checks.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from acprt.cli.check.verdicts import Failed
from acprt.errors import ErrorCode, mask_secrets
from acprt.limits import Limits
from acprt.transports.process import AgentProcess
from acprt.wire.lines import OversizedLine

__all__ = ["UNKNOWN_METHOD", "Answer", "CheckedProcess", "Frame"]

UNKNOWN_METHOD = "acprt/no_such_method"
"""A method that no agent has, so that any must answer it, and none does anything."""

_POLL_SECONDS = 0.01  # between two looks at whether the child has exited
_SOON_SECONDS = 10.0  # for what needs no model; a cold or busy machine is no fault of the agent
_STDERR_SECONDS = 0.2  # without a word: what was written before has come
_MIB = 1024 * 1024
# What it writes to stderr is counted, so nothing of it may be cut or dropped.
_LIMITS = Limits(
    exit_grace_seconds=1.0, term_grace_seconds=2.0, stderr_line_bytes=64 * _MIB, stderr_queue_lines=1_000_000
)


class Frame(msgspec.Struct, frozen=True):
    """A line that passed; `value` is what it says, UNSET when it is no JSON."""

    at: float
    process: int
    sender: Literal["client", "agent"]
    size: int
    line: bytes
    value: Any = msgspec.UNSET

    @property
    def is_response(self) -> bool:
        """Whether it is one response: an object without a method."""
        return isinstance(self.value, dict) and "method" not in self.value

    def answers(self, id: Any) -> bool:
        """Whether it is a response with this id, of the same type."""
        return self.is_response and "id" in self.value and _key(self.value["id"]) == _key(id)


class Answer(msgspec.Struct, frozen=True):
    """A response as it came: its members, and seconds from request to answer."""

    members: dict[str, Any]
    seconds: float

    @property
    def is_error(self) -> bool:
        """Whether it has an error."""
        return self.members.get("error") is not None

    @property
    def code(self) -> Any:
        """The code of the error; None for a result."""
        error = self.members.get("error")
        return error.get("code") if isinstance(error, dict) else None

    @property
    def result(self) -> dict[str, Any]:
        """The result if it is an object, else an empty one."""
        result = self.members.get("result")
        return result if isinstance(result, dict) else {}

    def __str__(self) -> str:
        """In a few words."""
        error = self.members.get("error")
        if error is None:
            return "a result"
        if not isinstance(error, dict):
            return f"an error that is no object: {error!r:.80}"
        text = f"error {error.get('code')!r} {error.get('message')!r:.120}"
        data = error.get("data")
        return text if data is None else f"{text}, {msgspec.json.encode(data).decode():.200}"


class CheckedProcess:
    """A started agent. `log` gets every line of every process, in order, on one clock that began at `epoch`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str | None] | None,
        number: int,
        log: list[Frame],
        epoch: float,
        timeout: float,
    ) -> None:
        self.number = number
        self.timeout = timeout
        self.initialized: Answer | None = None
        self.stderr_bytes = 0
        self._epoch = epoch
        self._log = log
        self._methods: dict[str, str] = {}  # of each request that was sent, by its id as JSON text: `1` is not `"1"`
        self._sent_at: dict[str, float] = {}
        self._answers: dict[str, Answer] = {}
        self._notes: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._ended: str | None = None
        self._next_id = 1
        self._transport = AgentProcess(
            *argv, env=env, limits=_LIMITS, on_stderr=self._stderr, die_with_parent=sys.platform == "linux"
        )

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it. Raises RpcError when that cannot be done."""
        self._transport.open(self, _LIMITS)

    @property
    def has_ended(self) -> bool:
        """Whether it exited or closed its stdout."""
        return self._ended is not None or self.exit_status is not None

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        status = self._transport.child_status()
        return None if status is None else status.exit_status

    def close_stdin(self) -> None:
        """What an editor does that is done with it."""
        self._transport.close_write()

    def terminate(self) -> None:
        """SIGTERM, to the process that was started and nobody else."""
        status = self._transport.child_status()
        if status is not None and status.exit_status is None:
            os.kill(status.pid, signal.SIGTERM)

    async def exited(self, within: float) -> float | None:
        """Wait until it has exited; the seconds that it took, None if it did not in time."""
        start = time.monotonic()
        while time.monotonic() - start < within:
            if self.exit_status is not None:
                return time.monotonic() - start
            await asyncio.sleep(_POLL_SECONDS)
        return None

    async def stderr_settled(self) -> None:
        """Wait until it writes no more to stderr than it did; what it wrote comes by a pipe and a thread of its own."""
        before = -1
        while before != self.stderr_bytes:
            before = self.stderr_bytes
            await asyncio.sleep(_STDERR_SECONDS)

    async def aclose(self) -> None:
        """End it, whatever it takes."""
        await self._transport.aclose()

    # -- what is sent -----------------------------------------------------------------------------------------------

    def send_line(self, line: bytes, *, end: bytes = b"\n") -> None:
        """Write bytes as they are, as a line."""
        self._record("client", line)
        self._transport.write(line + end)

    def request(self, method: str, params: Any = None, *, id: Any = None, end: bytes = b"\n") -> Any:
        """Send a request and return its id."""
        if id is None:
            id, self._next_id = self._next_id, self._next_id + 1
        key = _key(id)
        self._methods[key] = method
        self._answers.pop(key, None)
        self._sent_at[key] = time.monotonic()
        self.send_line(_encode({"jsonrpc": "2.0", "id": id, "method": method} | _params(params)), end=end)
        return id

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send_line(_encode({"jsonrpc": "2.0", "method": method} | _params(params)))

    async def call(self, method: str, params: Any = None, *, within: float | None = None) -> Answer:
        """Send a request and wait for its answer."""
        return await self.answer(self.request(method, params), within=within)

    # -- what comes -------------------------------------------------------------------------------------------------

    def answered(self, id: Any) -> Answer | None:
        """The answer to a request, if it is there."""
        return self._answers.get(_key(id))

    async def answer(self, id: Any, *, within: float | None = None) -> Answer:
        """Wait for the answer to a request. Raises `Failed` when the agent ends, or is silent for too long."""
        key = _key(id)
        seconds = within or self.timeout
        if not await self.until(lambda: key in self._answers, within=seconds):
            method = self._methods.get(key, "a request")
            raise Failed(self._ended or f"no answer to {method} (id {key}) in {seconds:g} s")
        return self._answers[key]

    async def soon(self, id: Any) -> Answer:
        """As `answer`, for a request that no model is asked about: it must not take long."""
        return await self.answer(id, within=min(self.timeout, _SOON_SECONDS))

    def has_asked(self, frame: Frame) -> bool:
        """Whether a response of its answers a request that was sent to it."""
        return "id" in frame.value and _key(frame.value["id"]) in self._methods

    async def must_live(self, after: str) -> None:
        """See that it still answers; what the answer is does not matter. Raises `Failed` if not."""
        try:
            await self.soon(self.request("_acprt/are_you_there", {}))
        except Failed as error:
            raise Failed(f"after {after}: {error}") from None

    def updates(self, session_id: str, since: int = 0) -> list[dict[str, Any]]:
        """The updates of a session that came so far, but for the first `since` notifications of all."""
        found = []
        for note in self._notes[since:]:
            params = note.get("params")
            if note.get("method") == "session/update" and isinstance(params, dict):
                update = params.get("update")
                if params.get("sessionId") == session_id and isinstance(update, dict):
                    found.append(update)
        return found

    @property
    def note_count(self) -> int:
        """How many notifications came so far."""
        return len(self._notes)

    async def until(self, happened: Callable[[], object], *, within: float) -> bool:
        """Wait until `happened()`, which is asked after each line; False when the agent ended or time is up first."""
        deadline = asyncio.get_running_loop().time() + within
        while not happened():
            if self._ended is not None:
                return False
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                return bool(happened())
        return True

    # -- Sink -------------------------------------------------------------------------------------------------------

    def lines_received(self, lines: list[bytes | OversizedLine]) -> None:
        """Record each line; note answers, refuse requests."""
        for line in lines:
            if isinstance(line, OversizedLine):
                self._record("agent", line.head, line.size)
                continue
            value = self._record("agent", line)
            for message in value if isinstance(value, list) else [value]:
                if isinstance(message, dict):
                    self._received(message)
        self._changed.set()

    def eof_received(self) -> None:
        """It closed its stdout, most likely by ending."""
        status = self.exit_status
        how = "closed its stdout" if status is None else f"ended with exit status {status}"
        tail = str(self._transport.facts().get("stderr_tail") or "").strip()
        self._end(f"the agent {how}" + (f"; its stderr ends: {mask_secrets(tail[-300:])!r}" if tail else ""))

    def connection_lost(self, error: Exception) -> None:
        """A pipe broke."""
        self._end(f"the pipe to the agent broke: {error}")

    def pause_writing(self) -> None:
        """The agent reads slowly: the transport keeps what it does not take."""

    def resume_writing(self) -> None:
        """It reads again."""

    def _end(self, why: str) -> None:
        self._ended = self._ended or why
        self._changed.set()

    def _stderr(self, line: str) -> None:
        self.stderr_bytes += len(line.encode("utf-8", "replace")) + 1

    def _received(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            self._refuse(method, message)
        elif isinstance(method, str):
            self._notes.append(message)
        elif "id" in message:
            key = _key(message["id"])
            if key in self._sent_at and key not in self._answers:
                self._answers[key] = Answer(message, time.monotonic() - self._sent_at[key])

    def _refuse(self, method: str, request: dict[str, Any]) -> None:
        """A check grants nothing: whatever it is asked, no file is written and no command is run."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if method == "session/request_permission":
            answer["result"] = {"outcome": _rejection(request.get("params"))}
        else:
            answer["error"] = {"code": ErrorCode.METHOD_NOT_FOUND, "message": "Method not found"}
        self.send_line(_encode(answer))

    def _record(self, sender: Literal["client", "agent"], line: bytes, size: int | None = None) -> Any:
        value: Any = msgspec.UNSET
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeError):
            value = msgspec.json.decode(line)
        at = time.monotonic() - self._epoch
        self._log.append(Frame(at, self.number, sender, len(line) if size is None else size, line, value))
        return value


def _rejection(params: Any) -> dict[str, Any]:
    options = params.get("options") if isinstance(params, dict) else None
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and str(option.get("kind", "")).startswith("reject"):
            return {"outcome": "selected", "optionId": option.get("optionId")}
    return {"outcome": "cancelled"}


def _key(id: Any) -> str:
    return _encode(id).decode()


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _params(params: Any) -> dict[str, Any]:
    return {} if params is None else {"params": params}
