"""The fake's protocol: what it reads and writes, its queue of prompts, its asks, and how it ends.

What a turn consists of is in `scenarios`, what runs in the background in `background`, what is answered to the host's
requests in `control`. It is a sink of a transport, so it runs as a child process and in memory alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections import deque
from collections.abc import Coroutine
from typing import Any

import msgspec

from acprt.limits import DEFAULT_LIMITS
from acprt.testing.fake_claude.background import Background
from acprt.testing.fake_claude.control import Control
from acprt.testing.fake_claude.options import Options
from acprt.testing.fake_claude.stage import Stage
from acprt.transports.base import Transport
from acprt.wire.lines import Line, OversizedLine

__all__ = ["FakeClaude"]


class FakeClaude:
    """One run of the fake on a transport: `exit_code = await FakeClaude(transport, options).run()`."""

    def __init__(self, transport: Transport, options: Options | None = None) -> None:
        self.options = options or Options()
        self.mode = self.options.permission_mode
        self.initialize: dict[str, Any] = {}
        """What the host said in `initialize`."""
        self.received: list[dict[str, Any]] = []
        """Every frame of the host's, in order."""
        self.unmatched: list[dict[str, Any]] = []
        """Answers to asks that were not open: given too late, or twice."""
        self.background = Background(self)
        self.holds_results = False
        """Whether results wait for the end of background work."""
        self.at_eof = asyncio.Event()
        self.exit_code: int | None = None
        self.prompts: deque[dict[str, Any]] = deque()
        """What is queued: prompts, and ends of tasks, each of which begins a turn."""
        self._control = Control(self)
        self._transport = transport
        self._used: set[str] = set()
        self._asks: dict[str, asyncio.Future[Any]] = {}
        self._held: list[dict[str, Any]] = []
        self._last_is_error = False
        self._interrupted = False
        self._is_playing = False
        self._turn: asyncio.Task[None] | None = None
        self._work = asyncio.Event()
        self._over = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._numbers = itertools.count(1)
        self._results = itertools.count()
        transport.open(self, DEFAULT_LIMITS)

    async def run(self) -> int:
        """Serve until EOF and all that is owed is done, or something ends it earlier. The exit code."""
        if self.options.resume == "bad":
            error = f"No conversation found with session ID: {self.options.resume}"
            sys.stderr.write(f"{error}\n")
            self.result(subtype="error_during_execution", is_error=True, errors=[error])
            self.exit(1)
        turns = self.spawn(self._serve_turns())
        await self._over.wait()
        turns.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(OSError):
            await self._transport.drain()
        await self._transport.aclose()
        return self.exit_code or 0

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, frame: dict[str, Any]) -> None:
        """One frame."""
        self._transport.write(msgspec.json.encode(frame) + b"\n")

    def write_raw(self, data: bytes) -> None:
        """Bytes as they are, such as a line that is no frame."""
        self._transport.write(data)

    def say(self, type: str, subtype: str | None = None, **members: Any) -> None:
        """A conversational frame, with the uuid and the session id that every such frame has."""
        frame: dict[str, Any] = {"type": type} if subtype is None else {"type": type, "subtype": subtype}
        self.write(frame | members | {"session_id": self.options.session_id, "uuid": self.new_uuid()})

    def result(self, **members: Any) -> None:
        """The end of a turn; `type` stands last, as in what the real command writes."""
        frame: dict[str, Any] = {
            "duration_ms": 1,
            "num_turns": 1,
            "is_error": False,
            "session_id": self.options.session_id,
        }
        frame |= {"subtype": "success", "total_cost_usd": 0, "usage": {}, "permission_denials": []} | members
        frame |= {"uuid": self.new_uuid(), "result_index": next(self._results), "type": "result"}
        self._last_is_error = frame["is_error"]
        if self.holds_results and self.background.agents_run:
            self._held.append(frame)
            return
        self.release()
        self.write(frame)

    def release(self) -> None:
        """Write the results that were held back."""
        held, self._held = self._held, []
        for frame in held:
            self.write(frame)

    def state(self, state: str) -> None:
        """The state of the session, for a host that asked for it."""
        if self.options.session_states:
            self.say("system", "session_state_changed", state=state)

    def lifecycle(self, prompt: dict[str, Any], state: str) -> None:
        """What becomes of a prompt."""
        if "uuid" in prompt and not self.options.no_lifecycle:
            self.say("command_lifecycle", command_uuid=prompt["uuid"], state=state)

    def new_uuid(self) -> str:
        """The next uuid; they count."""
        return f"00000000-0000-4000-8000-{next(self._numbers):012d}"

    async def ask(self, subtype: str, **members: Any) -> Any:
        """A control request to the host; its payload. Raises RuntimeError with the text of an error."""
        id = f"ask-{next(self._numbers)}"
        answer = self._asks[id] = asyncio.get_running_loop().create_future()
        self.write({"type": "control_request", "request_id": id, "request": {"subtype": subtype} | members})
        try:
            return await answer
        except asyncio.CancelledError:
            self.write({"type": "control_cancel_request", "request_id": id})
            raise
        finally:
            del self._asks[id]

    async def mcp(self, server: str, message: dict[str, Any]) -> Any:
        """One JSON-RPC message to a server of the host's; what it answered."""
        payload = await self.ask("mcp_message", server_name=server, message={"jsonrpc": "2.0"} | message)
        return payload["mcp_response"]

    # -- ending -------------------------------------------------------------------------------------------------------

    def exit(self, code: int) -> None:
        """End at once, with what is written."""
        if self.exit_code is None:
            self.exit_code = code
        self._over.set()

    def terminate(self) -> None:
        """SIGTERM: running tasks get their stop frames, the turn gets no result."""
        if not self.options.ignore_term:
            self.background.terminated()
            self.exit(143)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something beside, until the end."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- turns --------------------------------------------------------------------------------------------------------

    def wake(self, notification: dict[str, Any]) -> None:
        """A finished task begins a turn of its own, behind what is queued."""
        self.prompts.append({"task": notification})
        self._work.set()

    async def _serve_turns(self) -> None:
        while True:
            while self.prompts:
                prompt = self.prompts.popleft()
                self._interrupted = self._is_playing = False
                self._turn = self.spawn(self._play(prompt))
                await asyncio.wait({self._turn})
                if not self._turn.cancelled():
                    self._turn.result()
                self._turn = None
            self.state("idle")  # also while something runs in the background, as the real one
            if self.at_eof.is_set() and self.background.count == 0 and not self.prompts:
                await self._leave()
            await self._work.wait()
            self._work.clear()

    async def _play(self, prompt: dict[str, Any]) -> None:
        stage = Stage(self, prompt)
        self._is_playing = True
        self.state("running")
        self.lifecycle(prompt, "started")
        if self.options.replay and "task" not in prompt:
            self.write(prompt | {"isReplay": True, "session_id": self.options.session_id})
        try:
            if self._interrupted:
                raise asyncio.CancelledError
            await stage.play()
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            stage.abort()
            self.lifecycle(prompt, "cancelled")
        except Exception as error:  # arguments that the scenario cannot read, or a host that has closed stdin
            why = f"this fake cannot play {stage.text[:200]!r}: {error!r}"
            stage.result(subtype="error_during_execution", is_error=True, errors=[why], terminal_reason="model_error")
            self.lifecycle(prompt, "completed")
        else:
            self.lifecycle(prompt, "completed")

    async def _leave(self) -> None:
        if self.options.ignore_term:
            return
        if self.options.linger:
            await asyncio.sleep(self.options.linger)
        if self.options.farewell:
            with open(self.options.farewell, "w", encoding="utf-8") as file:  # noqa: ASYNC230  # its last deed
                file.write("goodbye")
        self.release()
        self.exit(1 if self._last_is_error else 0)

    # -- reading ------------------------------------------------------------------------------------------------------

    def lines_received(self, lines: list[Line]) -> None:
        """What the host wrote."""
        for line in lines:
            assert not isinstance(line, OversizedLine), "the fake is given no such lines"
            if line.strip() and not self._over.is_set():
                self._line(line)

    def eof_received(self) -> None:
        """The host closed stdin: open asks fail, what runs goes on to its end."""
        self.at_eof.set()
        self.holds_results = True
        for ask in self._asks.values():
            if not ask.done():
                ask.set_exception(RuntimeError("Tool permission request failed: Error: Stream closed"))
        self._work.set()

    def connection_lost(self, error: Exception) -> None:
        """The host is gone."""
        self.exit(1)

    def pause_writing(self) -> None:
        """What is written waits; the fake writes little."""

    def resume_writing(self) -> None:
        """It has left."""

    def _line(self, line: bytes) -> None:
        try:
            frame = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            sys.stderr.write(f"Error parsing streaming input line ({len(line)} chars): SyntaxError: {error}\n")
            self.exit(1)
            return
        if not isinstance(frame, dict):
            return
        self.received.append(frame)
        match frame:
            case {"type": "user", "message": {"role": "user"}}:
                self._take_prompt(frame)
            case {"type": "control_request", "request": {"subtype": str(subtype)}}:
                self._control.take(frame.get("request_id"), subtype, frame["request"])
            case {"type": "control_response", "response": {"request_id": str(id)}}:
                self._answered(id, frame["response"], frame)
            case {"type": "user"} | {"type": "control_request"}:
                sys.stderr.write("Error: not a frame that can be taken\n")
                self.exit(1)

    def _take_prompt(self, frame: dict[str, Any]) -> None:
        uuid = frame.get("uuid")
        if uuid in self._used:
            return  # as the real one: without a word
        if uuid is not None:
            self._used.add(uuid)
        self.prompts.append(frame)
        self.lifecycle(frame, "queued")
        self._work.set()

    def _answered(self, id: str, answer: dict[str, Any], frame: dict[str, Any]) -> None:
        ask = self._asks.get(id)
        if ask is None or ask.done():
            self.unmatched.append(frame)
        elif answer.get("subtype") == "error":
            ask.set_exception(RuntimeError(answer.get("error")))
        else:
            ask.set_result(answer.get("response"))

    def interrupted_by_host(self) -> None:
        """A refusal that ends the turn as well."""
        if self._turn is not None:
            self._interrupted = True
            if self._is_playing:  # else it begins, and sees that at once: a cancelled task would never begin
                self._turn.cancel()
