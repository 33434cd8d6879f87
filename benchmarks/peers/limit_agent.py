"""The limit's agent: answers inside `data_received`, one write for all that one read brought, no task anywhere."""

from __future__ import annotations

import asyncio
import sys

import msgspec

import script
import wire
from limit_pipe import JOIN_AT_MOST, LimitPipe, LineReader
from loops import loop_factory


class Agent(LineReader):
    """Reads requests, answers through its outgoing pipe."""

    def __init__(self, out: UpdatePipe) -> None:
        super().__init__()
        self._out = out
        self._decode = msgspec.json.Decoder(
            wire.PromptMessage | wire.CancelMessage | wire.Initialize | wire.NewSession
        ).decode
        self._decode_answer = msgspec.json.Decoder(wire.PermissionAnswer).decode
        self._parked: set[int] = set()
        self._asking: dict[
            int, int
        ] = {}  # the id of a question to the client → of the prompt that waits for its answer
        self._last_id = 0

    def lines_received(self, lines: list[bytes]) -> None:
        replies: list[msgspec.Struct] = []
        for line in lines:
            if self._asking and b'"method"' not in line:
                replies.append(done(self._asking.pop(self._decode_answer(line).id)))
                continue
            message = self._decode(line)
            if type(message) is wire.PromptMessage:
                self._prompt(message, replies)
            elif type(message) is wire.CancelMessage:
                self._parked.remove(message.params.request_id)
                replies.append(wire.cancelled_reply(message.params.request_id))
            elif type(message) is wire.Initialize:
                replies.append(wire.Reply("2.0", message.id, wire.Result(protocol_version=1)))
            elif type(message) is wire.NewSession:
                replies.append(wire.Reply("2.0", message.id, wire.Result(session_id=script.SESSION_ID)))
        if replies:
            self._out.send_now(replies)

    def _prompt(self, message: wire.PromptMessage, replies: list[msgspec.Struct]) -> None:
        text = wire.text_of_prompt(message)
        command, number = script.command_of(text)
        if command == script.UPDATES:
            self._out.stream(number, done(message.id))
        elif command == script.PARK:
            self._parked.add(message.id)
            if len(self._parked) == number:
                replies.append(wire.update_message(script.PARKED))
        elif command == script.NAP:
            asyncio.get_running_loop().call_later(number / 1000, self._out.send_soon, done(message.id))
        elif command == script.CALL:
            self._last_id += 1
            self._asking[self._last_id] = message.id
            replies.append(wire.permission_message(self._last_id))
        else:
            if command == script.ECHO:
                replies.append(wire.update_message(text))
            replies.append(done(message.id))


def done(request_id: int) -> wire.Reply:
    return wire.Reply("2.0", request_id, wire.Result(stop_reason="end_turn"))


class UpdatePipe(LimitPipe):
    """Streams updates in joined writes, stops while the client does not read, goes on when it does."""

    def __init__(self) -> None:
        super().__init__()
        self._next = self._end = 0
        self._last: list[msgspec.Struct] = []

    def stream(self, count: int, reply: msgspec.Struct) -> None:
        self._next, self._end, self._last = 0, count, [reply]
        self._go_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._go_on()

    def _go_on(self) -> None:
        texts, mask, update = script.UPDATE_TEXTS, script.UPDATE_MASK, wire.update_message
        while self._next < self._end and not self.paused:
            upto = min(self._next + JOIN_AT_MOST, self._end)
            self.send_now([update(texts[i & mask]) for i in range(self._next, upto)])
            self._next = upto
        if self._last and self._next == self._end:
            last, self._last = self._last, []
            self.send_now(last)


async def main() -> None:
    out = UpdatePipe()
    agent = Agent(out)
    await out.open(agent, sys.stdin.buffer, sys.stdout.buffer)
    await agent.closed


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(main())
