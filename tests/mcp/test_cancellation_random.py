"""Random cancels: the fast path of the codec, its exact path and a plain reading of the rules agree on every frame.

Hypothesis takes some and shrinks what fails. `make soak` takes masses besides: `ACPRT_MCP_FRAMES`, 100,000 unless set.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acprt import mcp
from acprt.mcp.cancellation import _decode_exactly
from tests.mcp.oracle import Absent, Number, verdict
from tests.mcp.random_cancels import cancel_frame

FRAMES = int(os.environ.get("ACPRT_MCP_FRAMES", "100000"))
ERAS = [mcp.ProtocolEra.LEGACY_2024, mcp.ProtocolEra.MODERN_2026]
SENDERS = [mcp.CancellationSender.CLIENT, mcp.CancellationSender.SERVER]
PROFILES: list[mcp.CancellationProfile] = ["0.5", "0.8"]


def read(decode: Any, era: Any, sender: Any, line: bytes, profile: Any) -> Any:
    """The message, or the error."""
    try:
        return decode(era, sender, line, profile)
    except mcp.CancellationWireCodecError as error:
        return error


def decode(era: Any, sender: Any, line: Any, profile: Any) -> Any:
    return mcp.CancellationWireMessage.decode(era, sender, line, profile=profile)


def tokens(value: Any) -> Any:
    """A value of the package in the form of the oracle."""
    return json.loads(value, parse_int=Number, parse_float=Number)


def check(line: bytes, era: Any, sender: Any, profile: Any) -> bool:
    """One frame through all readers; whether they took it for a cancel."""
    message = read(decode, era, sender, line, profile)
    exact = read(_decode_exactly, era, sender, line, profile)
    assert message == exact
    expected = verdict(era is ERAS[1], sender is SENDERS[1], profile, line)
    if isinstance(message, mcp.CancellationWireCodecError):
        assert message.kind == expected
        return False
    assert not isinstance(expected, str), (line, expected)
    id, reason, meta, additional = expected
    written = message.encode()
    assert written == exact.encode()
    assert decode(era, sender, written, profile) == message
    assert b"\n" not in written
    again = tokens(written)
    assert again.keys() == {"jsonrpc", "method", "params"}
    wanted = {"requestId": id, "reason": reason, "_meta": meta} | additional
    assert again["params"] == {name: value for name, value in wanted.items() if value is not Absent}
    assert type(again["params"]["requestId"]) is type(id)
    assert list(again["params"]) == sorted(again["params"])
    return True


@pytest.mark.parametrize("frames", [300, pytest.param(2_000, marks=pytest.mark.slow)])
def test_both_paths_and_the_rules_agree(frames):
    """Accepted, refused, with the same values, and written again with the same spelling."""

    @settings(max_examples=frames)
    @given(
        choose=st.randoms(use_true_random=False),
        era=st.sampled_from(ERAS),
        sender=st.sampled_from(SENDERS),
        profile=st.sampled_from(PROFILES),
    )
    def agree(choose: random.Random, era: Any, sender: Any, profile: Any) -> None:
        check(cancel_frame(choose), era, sender, profile)

    agree()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_both_paths_and_the_rules_agree_for_long():
    """The same, a hundred thousand times; seeded, and without what shrinking costs."""
    choose = random.Random(2026)
    accepted = 0
    for _ in range(FRAMES):
        line = cancel_frame(choose)
        arguments = choose.choice(ERAS), choose.choice(SENDERS), choose.choice(PROFILES)
        try:
            accepted += check(line, *arguments)
        except BaseException as error:
            error.add_note(f"the frame {line!r} with {arguments}")
            raise
    assert FRAMES / 10 < accepted < FRAMES * 9 / 10, "frames of both kinds"


@given(line=st.binary(max_size=80), era=st.sampled_from(ERAS))
@settings(max_examples=300)
def test_rubbish_is_an_error_of_the_codec(line, era):
    """Whatever the bytes are, nothing else is raised."""
    assert isinstance(read(decode, era, SENDERS[0], line, "0.5"), mcp.CancellationWireCodecError)
