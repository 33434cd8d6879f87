"""A well-formed message is read by msgspec alone: leniency costs nothing where nothing is wrong."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from acprt.acp import v1, v2
from acprt.wire.frames import NotificationFrame, parse
from acprt.wire.payloads import decode_params, decoder_for

CHUNK = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess_0123456789abcdef","update":'
    b'{"sessionUpdate":"agent_message_chunk","messageId":"msg_0123456789","content":{"type":"text","text":'
    b'"a text of forty characters, or about that"}}}}'
)


@pytest.mark.parametrize("message", [v1.SessionNotification, v2.UpdateSessionNotification])
def test_no_python_runs_between_a_line_and_its_value(message: Any) -> None:
    decoder = decoder_for(message)
    entered: list[str] = []

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        frame = parse(CHUNK)
        assert type(frame) is NotificationFrame
        value = decode_params(decoder, frame.params)
    finally:
        sys.setprofile(None)
    assert entered == ["parse", "decode_params"]
    assert value.update.content.text.startswith("a text")
