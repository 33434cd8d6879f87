"""What decoding forgives: exactly what the schema marks, and only there."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode, lenient_decoder


def read(type_: Any, payload: Any) -> Any:
    return decode(type_, json.dumps(payload).encode())


def refuse(type_: Any, payload: Any) -> str:
    with pytest.raises(msgspec.ValidationError) as caught:
        read(type_, payload)
    return str(caught.value)


def update(schema: Any, **members: Any) -> Any:
    message = schema.SessionNotification if schema is v1 else schema.UpdateSessionNotification
    return read(message, {"sessionId": "s", "update": members}).update


TOOL_CALL = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "x"}


class TestDefaultOnError:
    def test_malformed_member_counts_as_absent_and_the_object_survives(self) -> None:
        chunk = update(
            v1,
            sessionUpdate="agent_message_chunk",
            content={"type": "text", "text": "hi", "annotations": 5},
            messageId=[],
        )
        assert chunk == v1.AgentMessageChunk(content=v1.TextContent(text="hi"))

    def test_default_of_the_member_stands(self) -> None:
        call = update(v1, **TOOL_CALL, kind="from_the_future", status=7, content="no list")
        assert (call.kind, call.status, call.content) == ("other", "pending", [])

    def test_wrong_null_counts_as_malformed(self) -> None:
        assert update(v1, **TOOL_CALL, kind=None, locations=None).kind == "other"

    def test_only_the_innermost_marked_member_is_given_up(self) -> None:
        answer = read(
            v1.InitializeResponse,
            {
                "protocolVersion": 1,
                "agentCapabilities": {"loadSession": "yes", "promptCapabilities": {"image": True, "audio": 1}},
            },
        )
        capabilities = answer.agent_capabilities
        assert capabilities.prompt_capabilities.image
        assert not capabilities.prompt_capabilities.audio
        assert not capabilities.load_session

    def test_required_list_that_is_malformed_is_empty(self) -> None:
        assert update(v1, sessionUpdate="plan", entries=7) == v1.Plan(entries=[])

    def test_required_list_that_is_missing_is_an_error(self) -> None:
        assert "entries" in refuse(v1.SessionNotification, {"sessionId": "s", "update": {"sessionUpdate": "plan"}})

    def test_metadata_that_is_no_object_is_dropped(self) -> None:
        assert read(v1.CancelNotification, {"sessionId": "s", "_meta": []}).meta is None

    def test_number_out_of_its_range_is_malformed(self) -> None:
        location = update(v1, **TOOL_CALL, locations=[{"path": "/a", "line": -1}]).locations[0]
        assert location == v1.ToolCallLocation(path="/a")


class TestSkippedElements:
    def test_malformed_elements_are_dropped_and_the_others_kept_in_order(self) -> None:
        entry = {"content": "a", "priority": "high", "status": "pending"}
        plan = update(v1, sessionUpdate="plan", entries=[entry, {"content": 1}, None, {**entry, "content": "b"}])
        assert [each.content for each in plan.entries] == ["a", "b"]

    def test_list_that_may_not_be_malformed_is_an_error(self) -> None:
        refuse(v2.SetSessionConfigOptionResponse, {"configOptions": {}})
        assert read(v2.SetSessionConfigOptionResponse, {"configOptions": [5]}).config_options == []

    def test_methods_of_authentication_are_kept_one_by_one(self) -> None:
        methods = [{"id": "a", "name": "A"}, {"id": 5}, {"type": "terminal", "id": "t", "name": "T"}]
        answer = read(v1.InitializeResponse, {"protocolVersion": 1, "authMethods": methods})
        assert answer.auth_methods == [v1.AuthMethodAgent(id="a", name="A"), v1.AuthMethodTerminal(id="t", name="T")]


class TestDefaultOnNull:
    def test_null_is_an_empty_list(self) -> None:
        assert read(v1.NewSessionRequest, {"cwd": "/", "mcpServers": None}).mcp_servers == []

    def test_null_is_an_empty_map(self) -> None:
        method = {"type": "terminal", "id": "t", "name": "T", "env": None, "args": None}
        answer = read(v1.InitializeResponse, {"protocolVersion": 1, "authMethods": [method]})
        assert answer.auth_methods == [v1.AuthMethodTerminal(id="t", name="T", args=[], env={})]

    def test_anything_else_malformed_is_an_error(self) -> None:
        refuse(v1.NewSessionRequest, {"cwd": "/", "mcpServers": {}})
        refuse(v1.NewSessionRequest, {"cwd": "/", "mcpServers": [{"name": "x"}]})

    def test_missing_where_required_is_an_error(self) -> None:
        assert "mcpServers" in refuse(v1.NewSessionRequest, {"cwd": "/"})
        assert read(v2.NewSessionRequest, {"cwd": "/"}).mcp_servers == []


class TestStrictMembers:
    @pytest.mark.parametrize(
        ("type_", "payload", "named"),
        [
            (v1.PromptRequest, {"sessionId": 5, "prompt": []}, "sessionId"),
            (v1.PromptRequest, {"sessionId": "s", "prompt": [{"type": "text"}]}, "text"),
            (v1.PromptRequest, {"sessionId": "s", "prompt": [{"type": "hologram"}]}, "hologram"),
            (v1.PromptRequest, {"sessionId": "s"}, "prompt"),
            (v1.PromptResponse, {"stopReason": "bored"}, "stopReason"),
            (v1.ReadTextFileRequest, {"sessionId": "s", "path": "/", "line": "1"}, "line"),
            (v1.InitializeRequest, {"protocolVersion": "1"}, "protocolVersion"),
            (v1.InitializeRequest, {"protocolVersion": 100_000}, "protocolVersion"),
            (v1.InitializeRequest, {"protocolVersion": 1.5}, "protocolVersion"),
            (v1.CancelRequestNotification, {"requestId": True}, "requestId"),
            (v2.CancelRequestNotification, {"requestId": None}, "requestId"),
            (v2.PromptRequest, {"sessionId": "s", "prompt": []}, "prompt"),
            (v2.PromptResponse, {}, "messageId"),
            (v1.PromptRequest, [], "object"),
        ],
        ids=str,
    )
    def test_malformed_is_an_error_that_names_the_member(self, type_: Any, payload: Any, named: str) -> None:
        assert named in refuse(type_, payload)

    def test_unknown_members_are_ignored(self) -> None:
        assert read(v1.PromptRequest, {"sessionId": "s", "prompt": [], "extra": 1}) == v1.PromptRequest(
            session_id="s", prompt=[]
        )

    def test_null_is_an_id_in_version_1_only(self) -> None:
        assert read(v1.CancelRequestNotification, {"requestId": None}).request_id is None


class TestEmptyResults:
    def test_null_is_a_result_without_required_members(self) -> None:
        assert read(v1.WriteTextFileResponse, None) == v1.WriteTextFileResponse()
        assert read(v1.LoadSessionResponse, None) == v1.LoadSessionResponse()

    def test_null_is_no_result_that_has_required_members(self) -> None:
        refuse(v1.PromptResponse, None)


def test_first_attempt_is_that_of_msgspec() -> None:
    text = b'{"sessionId":"s"}'
    decoder = lenient_decoder(v1.CancelNotification)
    assert type(decoder.decode) is type(msgspec.json.Decoder(v1.CancelNotification).decode)
    assert decoder.decode(text) == v1.CancelNotification(session_id="s")


def test_both_attempts_read_a_right_payload_alike() -> None:
    payload = {
        "sessionId": "s",
        "prompt": [{"type": "text", "text": "a"}, {"type": "resource", "resource": {"uri": "u", "blob": "b"}}],
        "_meta": {"x": 1.0},
    }
    text = json.dumps(payload).encode()
    decoder = lenient_decoder(v1.PromptRequest)
    assert decoder.decode_again is not None
    assert decoder.decode(text) == decoder.decode_again(text)


def test_text_that_is_not_json_is_no_matter_of_leniency() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(v1.PromptRequest, b'{"sessionId"')
