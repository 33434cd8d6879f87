"""Every message of both versions is a class that is decoded, encoded and known by its wire method."""

from __future__ import annotations

from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest

import acprt
from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode
from acprt.wire.payloads import decoder_for
from tests.acp.schema.samples import sample

UNIONS = (
    "ClientRequest",
    "ClientNotification",
    "ClientResponse",
    "AgentRequest",
    "AgentNotification",
    "AgentResponse",
    "ProtocolLevelNotification",
    "ProxyRequest",
    "ProxyNotification",
    "ProxyResponse",
)


def members(schema: ModuleType, name: str) -> list[Any]:
    union = getattr(schema, name)
    return [cls for cls in get_args(union) or (union,) if not cls.__name__.startswith("Ext")]


CLASSES = [cls for schema in (v1, v2) for cls in dict.fromkeys(cls for name in UNIONS for cls in members(schema, name))]


def each_of(*kinds: type) -> pytest.MarkDecorator:
    """The message classes that derive from one of `kinds`, or all of them."""
    chosen = [cls for cls in CLASSES if not kinds or issubclass(cls, kinds)]
    return pytest.mark.parametrize("message", chosen, ids=lambda cls: f"{cls.__module__[-2:]}-{cls.__name__}")


@pytest.mark.parametrize("full", [False, True], ids=["least", "most"])
@each_of()
def test_a_payload_is_written_as_it_was_read(message: type, full: bool) -> None:
    payload = sample(message, full)
    value = decode(message, msgspec.json.encode(payload))
    assert isinstance(value, message)
    written = msgspec.json.decode(msgspec.json.encode(value))
    assert decode(message, msgspec.json.encode(written)) == value
    assert written == (payload if full else payload | written)
    assert all(isinstance(each, dict) for name, each in written.items() if name not in payload)  # empty capabilities


@each_of()
def test_the_runtime_has_a_decoder_of_its_own_for_it(message: type) -> None:
    assert decoder_for(message).decode_again is not None


@each_of(acprt.Request, acprt.Notification)
def test_a_call_tells_its_wire_method(message: type) -> None:
    value = decode(message, msgspec.json.encode(sample(message, full=False)))
    assert value.method == acprt.method_of(message) == acprt.method_of(value)
    assert msgspec.json.decode(value.encode_params()) == msgspec.json.decode(msgspec.json.encode(value))


@each_of(acprt.Request)
def test_a_request_names_the_type_of_its_reply(message: type) -> None:
    reply = acprt.reply_type_of(message)
    assert reply is Any or issubclass(reply, msgspec.Struct)


@pytest.mark.parametrize(("schema", "methods"), [(v1, 40), (v2, 33)])
def test_every_method_of_a_version_is_there(schema: ModuleType, methods: int) -> None:
    calls = [cls for union in UNIONS if not union.endswith("Response") for cls in members(schema, union)]
    assert len({(acprt.method_of(cls), issubclass(cls, acprt.Request)) for cls in calls}) == methods


@pytest.mark.parametrize("schema", [v1, v2])
def test_unstable_methods_are_those_of_unstable_classes(schema: ModuleType) -> None:
    calls = [cls for union in UNIONS if not union.endswith("Response") for cls in members(schema, union)]
    assert {acprt.method_of(cls) for cls in calls if cls.__acprt_unstable__} == schema.UNSTABLE_METHODS


@pytest.mark.parametrize("schema", [v1, v2])
def test_a_stable_class_is_not_marked_and_an_unstable_one_is(schema: ModuleType) -> None:
    assert not schema.PromptRequest.__acprt_unstable__
    assert schema.ForkSessionRequest.__acprt_unstable__


def test_a_member_called_method_does_not_hide_the_wire_method() -> None:
    note = v2.MessageMcpNotification(server_id="s", request_id="r", inner_method="notifications/progress")
    assert note.method == "mcp/message"
    assert msgspec.json.decode(note.encode_params())["method"] == "notifications/progress"


def test_a_tag_is_readable_and_is_written_first() -> None:
    assert v1.AgentMessageChunk.session_update == "agent_message_chunk"
    chunk = v1.AgentMessageChunk(content=v1.TextContent(text="hi"))
    assert msgspec.json.encode(chunk).startswith(b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text"')


def test_variants_of_one_payload_share_a_base() -> None:
    for cls in (v1.AgentMessageChunk, v1.UserMessageChunk, v1.AgentThoughtChunk):
        assert isinstance(cls(content=v1.TextContent(text="")), v1.ContentChunk)


def test_metadata_is_kept() -> None:
    text = b'{"sessionId":"s","_meta":{"traceparent":"00-1-2-01","x":[1]}}'
    note = decode(v1.CancelNotification, text)
    assert note.meta == {"traceparent": "00-1-2-01", "x": [1]}
    assert msgspec.json.decode(msgspec.json.encode(note)) == msgspec.json.decode(text)


def test_nothing_that_was_left_out_is_written() -> None:
    assert msgspec.json.encode(v1.ToolCall(tool_call_id="t", title="x")) == (
        b'{"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}'
    )
    assert msgspec.json.encode(
        v2.UpdateSessionNotification(session_id="s", update=v2.StateUpdate(state="running"))
    ) == (b'{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"running"}}')


def test_printing_shows_what_was_set() -> None:
    assert repr(v1.ToolCallUpdate(tool_call_id="t", title="x")) == "ToolCallUpdate(tool_call_id='t', title='x')"
