"""What reading the Claude Code stream costs, beside msgspec alone and beside the json of the standard library.

    python benchmarks/claude_decode.py [ROUNDS]

Per frame, in nanoseconds: `json` is `json.loads`; `bare` a header and then the same class, with two msgspec decoders
and nothing else; `decode` is `claude.decode`, whose goal is at most 2 × bare; `client` is a whole client on a pipe in
memory, from the bytes to the loop that reads the turn. Rounds interleave, each of 1,000 frames, and the fastest of each
counts: whatever is slower was disturbed. 10,000 ns are 100,000 frames a second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

import msgspec

import acprt
from acprt import claude
from acprt.limits import DEFAULT_LIMITS

FRAMES = 1_000
LINES: dict[str, tuple[type[claude.Message], bytes]] = {
    "stream_event": (
        claude.StreamEvent,
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
        b'"twenty five characters .."}},"session_id":"ba830663-a29f-47d1-820c-2e234858fd49","parent_tool_use_id":null,'
        b'"uuid":"caa3fcc2-27f6-42b3-b2da-3ba3943b06b1"}',
    ),
    "assistant": (
        claude.AssistantMessage,
        b'{"type":"assistant","message":{"id":"msg_01","type":"message","role":"assistant","model":"m",'
        b'"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls -la"}}],'
        b'"stop_reason":null,'
        b'"usage":{"input_tokens":3,"output_tokens":1,"cache_read_input_tokens":0}},"parent_tool_use_id":null,'
        b'"session_id":"ba830663-a29f-47d1-820c-2e234858fd49","uuid":"caa3fcc2-27f6-42b3-b2da-3ba3943b06b1",'
        b'"user_message_uuid":"11111111-1111-4111-8111-111111111111"}',
    ),
    "task_notification": (
        claude.TaskNotificationMessage,
        b'{"type":"system","subtype":"task_notification","task_id":"b0000task",'
        b'"run_id":"0mxa-097f2535","tool_use_id":"toolu_2","status":"completed",'
        b'"output_file":"/tmp/tasks/b0000task.output","summary":"Background command done",'
        b'"session_id":"ba830663-a29f-47d1-820c-2e234858fd49","uuid":"caa3fcc2-27f6-42b3-b2da-3ba3943b06b1"}',
    ),
}


class Header(msgspec.Struct, gc=False):
    """The discriminators."""

    type: str
    subtype: str | None = None


read_header = msgspec.json.Decoder(Header).decode


def ways(cls: type[claude.Message], line: bytes) -> dict[str, Callable[[], None]]:
    """The ways to read `line`, FRAMES times each."""
    read = msgspec.json.Decoder(cls).decode

    def with_json() -> None:
        for _ in range(FRAMES):
            json.loads(line)

    def bare() -> None:
        for _ in range(FRAMES):
            read_header(line)
            read(line)

    def decode() -> None:
        for _ in range(FRAMES):
            claude.decode(line)

    return {"json": with_json, "bare": bare, "decode": decode}


class Command:
    """The far end of the pipe: it takes what it is given."""

    def lines_received(self, lines: list[object]) -> None: ...

    def eof_received(self) -> None: ...

    def connection_lost(self, error: Exception) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


async def client(line: bytes, rounds: int) -> float:
    """Nanoseconds per frame in the best round: a turn that is read while it comes, 64 KiB at a time."""
    near, far = acprt.memory_pair(left_is_parent=True)
    far.open(Command(), DEFAULT_LIMITS)  # type: ignore[arg-type]  # a sink that looks at nothing
    at_once = max(1, 65_536 // len(line))
    piece, best = (line + b"\n") * at_once, float("inf")
    async with claude.connect(near, initialize=None) as cli:
        turn = cli.prompt("go")
        async with turn:
            far.write(b'{"type":"command_lifecycle","command_uuid":"%b","state":"started"}\n' % turn.uuid.encode())
            await anext(turn)
            for _ in range(rounds):
                start = time.perf_counter_ns()
                far.write(piece)
                for _ in range(at_once):
                    await anext(turn)
                best = min(best, (time.perf_counter_ns() - start) / at_once)
            far.write(b'{"type":"result","subtype":"success","user_message_uuid":"%b"}\n' % turn.uuid.encode())
            async for _ in turn:
                pass
    return best


def main() -> None:
    """Prints a table per kind of frame."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, (cls, line) in LINES.items():
        times = dict.fromkeys(ways(cls, line), float("inf"))
        for _ in range(rounds):
            for way, work in ways(cls, line).items():
                start = time.perf_counter_ns()
                work()
                times[way] = min(times[way], (time.perf_counter_ns() - start) / FRAMES)
        if cls is claude.StreamEvent:
            times["client"] = asyncio.run(client(line, rounds))
        print(f"{name}, {len(line)} bytes")
        for way, each in times.items():
            print(f"  {way:7} {each:7.0f} ns  {each / times['bare']:5.2f} x bare  {each / times['json']:5.2f} x json")


if __name__ == "__main__":
    main()
