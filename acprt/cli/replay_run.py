"""Plays the client of a script to a live agent, in the order in which things happened.

A step of the client waits for what the agent had said before it: answers and requests of its own always, a
notification by its kind, since how many there are is the agent's business. It must never leave an agent waiting: a
request that the script does not know is refused at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from acprt.cli.replay_compare import IS_ID
from acprt.cli.replay_script import Message, Script, Step
from acprt.limits import Limits
from acprt.trace import Tap
from acprt.transports.base import Transport
from acprt.wire.lines import Line

__all__ = ["Replay"]

_NOT_IN_THE_SCRIPT = {"code": -32601, "message": "Method not found", "data": {"reason": "not_in_the_trace"}}


class Replay:
    """One run of `script` against the agent behind `transport`. `said` is what the agent said, decoded, in order.

    `stuck` names what did not come within `timeout` seconds, or before the agent ended (`ended_early`), if anything did
    not. `rubbish` has the lines that are no messages. `tap` sees every line. `folders`: what the client says in place
    of a recorded folder.
    """

    def __init__(
        self,
        script: Script,
        transport: Transport,
        *,
        timeout: float | None,
        tap: Tap | None = None,
        folders: dict[str, str] | None = None,
    ) -> None:
        self.said: list[Message] = []
        self.rubbish: list[str] = []
        self.stuck: str | None = None
        self.ended_early = False
        self._script = script
        self._transport = transport
        self._timeout = timeout
        self._tap = tap
        self._changed = asyncio.Event()
        self._ended = False
        self._left: Counter[str] = Counter()  # requests of the agent that the script still knows, by method
        self._asked: defaultdict[str, list[Message]] = defaultdict(list)  # what it asked and no step has taken
        self._answers: dict[Any, Message] = {}
        self._kinds: Counter[str] = Counter()
        self._ids: dict[Any, Any] = {}  # its request ids: recorded → of this run
        self._values = dict(folders or {})  # and session ids and the like: recorded → of this run

    async def run(self, limits: Limits) -> None:
        """Play every step, then end the agent's input and take what still comes. Raises RpcError if it cannot start."""
        self._left.update(
            message["method"] for step in self._script.steps if not step.by_client for message in step.messages
            if "method" in message and "id" in message
        )  # fmt: skip
        self._transport.open(self, limits)
        try:
            seen: Counter[str] = Counter()
            kind: str | None = None
            for step in self._script.steps:
                if step.by_client:
                    if kind is not None:
                        await self._some(kind, seen)
                    seen, kind = Counter(self._kinds), None
                    self._say(step)
                    continue
                for message in step.messages:
                    if "method" in message and "id" not in message:
                        kind = _kind(message)
                    elif "method" in message:
                        await self._request(message)
                    else:
                        await self._answer(message)
                        kind = None
                if self.stuck is not None:
                    break
            self._transport.close_write()
        finally:
            await self._transport.aclose()

    # ── The agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def lines_received(self, lines: list[Line]) -> None:
        """Sort what came."""
        for line in lines:
            if self._tap is not None:
                self._tap.received(line)
            message = _decoded(line)
            messages = message if isinstance(message, list) else [message]
            if not messages or not all(_is_message(each) for each in messages):
                self.rubbish.append(line.decode("utf-8", "replace") if isinstance(line, bytes) else repr(line.head))
            for each in messages:
                if _is_message(each):
                    self._take(each)
        self._changed.set()

    def eof_received(self) -> None:
        """It will say nothing more."""
        self._ended = True
        self._changed.set()

    def connection_lost(self, _error: Exception) -> None:
        """Nor here."""
        self.eof_received()

    def pause_writing(self) -> None:
        """A script is short: it may wait in the transport."""

    def resume_writing(self) -> None:
        """See above."""

    def _take(self, message: Message) -> None:
        self.said.append(message)
        method = message.get("method")
        if not isinstance(method, str):
            self._answers[message.get("id")] = message
        elif "id" not in message:
            self._kinds[_kind(message)] += 1
        elif self._left[method] > 0:
            self._left[method] -= 1
            self._asked[method].append(message)
        else:
            self._write({"jsonrpc": "2.0", "id": message["id"], "error": _NOT_IN_THE_SCRIPT})

    # ── The client ───────────────────────────────────────────────────────────────────────────────────────────────

    def _say(self, step: Step) -> None:
        messages = []
        for message in step.messages:
            here = self._of_this_run(message)
            if "method" not in message:
                if message["id"] not in self._ids:
                    continue  # an answer to what this agent has not asked
                here["id"] = self._ids.pop(message["id"])
            elif message["method"] == "$/cancel_request" and isinstance(message.get("params"), dict):
                here["params"] = message["params"]  # it names a request of ours, whose id is as it was
            messages.append(here)
        if step.is_batch and messages:
            self._write(messages)
        elif messages:
            self._write(messages[0])
        elif step.text:
            self._put(step.text.encode("utf-8", "replace"))

    async def _answer(self, recorded: Message) -> None:
        id_ = recorded.get("id")
        if id_ is not None and await self._happens(lambda: id_ in self._answers, f"the answer to request {id_!r}"):
            self._learn(recorded, self._answers.pop(id_))

    async def _request(self, recorded: Message) -> None:
        method = recorded["method"]
        if await self._happens(lambda: bool(self._asked[method]), f"a request {method} of the agent"):
            asked = self._asked[method].pop(0)
            self._ids[recorded["id"]] = asked["id"]
            self._learn(recorded.get("params"), asked.get("params"))

    async def _some(self, kind: str, before: Counter[str]) -> None:
        await self._happens(lambda: self._kinds[kind] > before[kind], f"a notification {kind}")

    async def _happens(self, condition: Callable[[], bool], what: str) -> bool:
        """Wait for `condition`; False, and `stuck`, when it will not become true in time."""
        try:
            async with asyncio.timeout(self._timeout):
                while not condition():
                    if self._ended:
                        self.ended_early = True
                        self.stuck = f"the agent ended before {what}"
                        return False
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            self.stuck = f"{what} did not come within {self._timeout:g} s"
            return False
        return True

    # ── What is different in this run ────────────────────────────────────────────────────────────────────────────

    def _learn(self, recorded: Any, actual: Any) -> None:
        """Remember which ids of this run stand where the recorded ones stood."""
        if isinstance(recorded, dict) and isinstance(actual, dict):
            for name, value in recorded.items():
                other = actual.get(name)
                if isinstance(value, str) and isinstance(other, str):
                    if value != other and IS_ID.search(name):
                        self._values[value] = other
                else:
                    self._learn(value, other)
        elif isinstance(recorded, list) and isinstance(actual, list):
            for value, other in zip(recorded, actual, strict=False):
                self._learn(value, other)

    def _of_this_run(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._of_this_run(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._of_this_run(each) for each in value]
        return self._values.get(value, value) if isinstance(value, str) else value

    def _write(self, message: Any) -> None:
        self._put(msgspec.json.encode(message))

    def _put(self, line: bytes) -> None:
        if self._tap is not None:
            self._tap.sent(line)
        if not self._ended:
            self._transport.write(line + b"\n")


def _kind(message: Message) -> str:
    """The method, and for an update which one it is."""
    params = message.get("params")
    update = params.get("update") if isinstance(params, dict) else None
    what = update.get("sessionUpdate") if isinstance(update, dict) else None
    return f"{message['method']} {what}" if isinstance(what, str) else str(message["method"])


def _is_message(value: Any) -> bool:
    """An object, with an id that can be one where it has any."""
    return isinstance(value, dict) and isinstance(value.get("id"), int | float | str | None)


def _decoded(line: Line) -> Any:
    if not isinstance(line, bytes):
        return None
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
