"""The blocking client: no loop, no threads, so no futures and no tasks either."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import wire
from blocking_pipe import BlockingPipe
from drive_blocking import BlockingSession, client_main
from measure import Updates

AGENT = Path(__file__).with_name("blocking_agent.py")
FILL_AT_MOST = 100
"""Requests of one write while the pipeline fills: both processes block in `write`, so neither may outgrow the pipe."""


class PipeSession(BlockingSession):
    """Writes a request, then reads until its answer is there."""

    def __init__(self, pipe: BlockingPipe, pid: int, updates: Updates) -> None:
        self.agent_pid = pid
        self._pipe = pipe
        self._updates = updates
        self._decode = msgspec.json.Decoder(wire.Inbound).decode
        self._last_id = 0

    def initialize(self) -> None:
        self._pipe.write([wire.initialize_message(self._new_id())])
        self._read_answers(1)

    def new_session(self) -> None:
        self._pipe.write([wire.new_session_message(self._new_id())])
        self._read_answers(1)

    def prompt(self, text: str) -> None:
        self._pipe.write([wire.prompt_message(self._new_id(), text)])
        self._read_answers(1)

    def prompts(self, text: str, count: int, in_flight: int) -> None:
        """For each answer read the next request is written, joined per read."""
        sent = answered = 0
        while sent < in_flight:
            few = min(FILL_AT_MOST, in_flight - sent)
            self._pipe.write([wire.prompt_message(self._new_id(), text) for _ in range(few)])
            sent += few
        while answered < count:
            came = self._read_answers(1)
            answered += came
            if few := min(came, count - sent):
                self._pipe.write([wire.prompt_message(self._new_id(), text) for _ in range(few)])
                sent += few

    def _read_answers(self, at_least: int) -> int:
        came = 0
        while came < at_least:
            lines = self._pipe.read_lines()
            if not lines:
                raise EOFError("the agent has gone")
            for line in lines:
                message = self._decode(line)
                if message.params is None:
                    came += 1
                elif message.params.options is None:
                    self._updates.received(wire.text_of_update(message.params))
                else:
                    self._pipe.write([wire.permission_answer(message.id, message.params.options)])
        return came

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


@contextmanager
def connect(updates: Updates, _handlers: int) -> Iterator[BlockingSession]:
    command = [sys.executable, str(AGENT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        yield PipeSession(BlockingPipe(child.stdout.fileno(), child.stdin.fileno()), child.pid, updates)


if __name__ == "__main__":
    client_main(connect)
