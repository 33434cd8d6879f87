"""What typed reading of one ACP update costs, beside the same reading by msgspec alone.

    python benchmarks/schema_decoding.py [ROUNDS]

A line of 241 bytes with 40 characters of text becomes a value in two steps: the envelope with raw params, then the
params as their class. `bare` does that with two decoders and nothing else; `acprt` with the functions that a
connection calls. Rounds interleave, each of 1,000 messages, and the fastest of each counts: nothing here waits, so
whatever is slower was disturbed. The goal is at most 1.5. The third row is the lenient second attempt, where it is
needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from acprt.acp import v1
from acprt.wire.frames import NotificationFrame, parse
from acprt.wire.payloads import decode_params, decoder_for

MESSAGES = 1_000
LINE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789abcde","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":'
    b'"forty characters of what an agent says.."},"messageId":"msg_01234567"}}}'
)
BENT = LINE.replace(b'"msg_01234567"', b"5")  # a malformed member that must be forgiven


class Envelope(msgspec.Struct, gc=False):
    """Every member that an envelope may have."""

    jsonrpc: Literal["2.0"]
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


read_envelope = msgspec.json.Decoder(Envelope).decode
decoder = decoder_for(v1.SessionNotification)
read_params = decoder.decode


def bare() -> None:
    """Two decoders."""
    for _ in range(MESSAGES):
        read_params(read_envelope(LINE).params)


def acprt() -> None:
    """What a connection does with a line."""
    for _ in range(MESSAGES):
        frame = parse(LINE)
        decode_params(decoder, frame.params)  # type: ignore[union-attr]  # a notification


def lenient() -> None:
    """The same where the first attempt fails."""
    for _ in range(MESSAGES):
        frame = parse(BENT)
        decode_params(decoder, frame.params)  # type: ignore[union-attr]  # a notification


def fastest(work: list[Callable[[], None]], rounds: int) -> list[float]:
    """Nanoseconds per message of each, in its best round."""
    best = [float("inf")] * len(work)
    for _ in range(rounds):
        for index, step in enumerate(work):
            start = time.perf_counter_ns()
            step()
            best[index] = min(best[index], (time.perf_counter_ns() - start) / MESSAGES)
    return best


def main() -> None:
    """Prints a row per way."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    frame = parse(LINE)
    assert isinstance(frame, NotificationFrame)
    assert len(LINE) == 241, len(LINE)
    work = [bare, acprt, lenient]
    times = fastest(work, rounds)
    for step, each in zip(work, times, strict=True):
        print(f"{step.__name__:8} {each:7.0f} ns  {each / times[0]:5.2f} x bare")


if __name__ == "__main__":
    main()
