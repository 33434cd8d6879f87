"""Messages are told apart by their method, never by the shape of their params."""

from __future__ import annotations

from typing import Any, assert_never, get_args

import msgspec
import pytest
from msgspec import Raw

import acprt
from acprt.acp import v1, v2

FACES = pytest.mark.parametrize("schema", [v1, v2])


def code(decode: Any, *args: Any, **options: Any) -> int:
    with pytest.raises(acprt.RpcError) as caught:
        decode(*args, **options)
    return caught.value.code


class TestClientNotification:
    def test_version_2_has_three_variants(self) -> None:
        assert get_args(v2.ClientNotification) == (
            v2.CancelSessionNotification,
            v2.MessageMcpNotification,
            v2.ExtNotification,
        )

    def test_cancel(self) -> None:
        note = v2.decode_client_notification("session/cancel", b'{"sessionId":"s"}')
        assert note == v2.CancelSessionNotification(session_id="s")
        assert note.method == "session/cancel"
        assert note.encode_params() == b'{"sessionId":"s"}'

    def test_mcp_message_needs_unstable_features(self) -> None:
        params = b'{"serverId":"srv","requestId":"r","method":"notifications/progress"}'
        assert code(v2.decode_client_notification, "mcp/message", params) == acprt.ErrorCode.METHOD_NOT_FOUND
        note = v2.decode_client_notification("mcp/message", params, unstable=True)
        assert isinstance(note, v2.MessageMcpNotification)
        assert (note.method, note.inner_method) == ("mcp/message", "notifications/progress")

    def test_extension_keeps_its_name_and_its_json(self) -> None:
        note = v2.decode_client_notification("_example.com/file_opened", Raw(b'{"path": "/a", "n": 1.50}'))
        assert isinstance(note, v2.ExtNotification)
        assert note.method == "_example.com/file_opened"
        assert note.encode_params() == b'{"path": "/a", "n": 1.50}'

    def test_a_program_can_cover_every_variant(self) -> None:
        def name(note: v2.ClientNotification) -> str:
            match note:
                case v2.CancelSessionNotification(session_id=session):
                    return session
                case v2.MessageMcpNotification(server_id=server):
                    return server
                case v2.ExtNotification(method=method):
                    return method
            assert_never(note)

        assert name(v2.decode_client_notification("_x", b"{}")) == "_x"

    def test_params_that_would_fit_another_variant_do_not_choose_it(self) -> None:
        both = b'{"sessionId":"s","serverId":"srv","requestId":"r","method":"m"}'
        assert type(v2.decode_client_notification("session/cancel", both)) is v2.CancelSessionNotification


@FACES
@pytest.mark.parametrize("params", [None, b"", Raw(b"")])
def test_extension_may_have_no_params(schema: Any, params: Any) -> None:
    request = schema.decode_agent_request("_x/y", params)
    assert (request.method, request.params, request.encode_params()) == ("_x/y", None, b"null")


@FACES
def test_absent_params_are_an_empty_object(schema: Any) -> None:
    assert code(schema.decode_client_notification, "session/cancel", None) == acprt.ErrorCode.INVALID_PARAMS
    assert type(schema.decode_client_request("session/list", None)) is schema.ListSessionsRequest


@FACES
@pytest.mark.parametrize(
    ("decode", "method"),
    [
        ("decode_client_notification", "session/update"),  # the other side's
        ("decode_client_notification", "session/prompt"),  # a request
        ("decode_client_notification", "$/cancel_request"),  # of the protocol, not of a role
        ("decode_client_request", "no/such"),
        ("decode_agent_notification", "session/cancel"),
        ("decode_agent_request", "session/prompt"),
        ("decode_client_request", "session/fork"),  # unstable
        ("decode_agent_request", "mcp/message"),
        ("decode_agent_notification", "auth/status_update"),
        ("decode_agent_response", "no/such"),
        ("decode_client_response", "session/prompt"),
    ],
)
def test_method_that_is_not_of_the_union_is_not_found(schema: Any, decode: str, method: str) -> None:
    assert code(getattr(schema, decode), method, b"{}") == acprt.ErrorCode.METHOD_NOT_FOUND


@FACES
def test_wrong_params_and_text_that_is_no_json_are_told_apart(schema: Any) -> None:
    decode = schema.decode_client_notification
    assert code(decode, "session/cancel", b'{"sessionId":5}') == acprt.ErrorCode.INVALID_PARAMS
    assert code(decode, "session/cancel", b'{"sessionId"') == acprt.ErrorCode.PARSE_ERROR


@FACES
def test_protocol_level_notification_is_of_either_side(schema: Any) -> None:
    note = schema.decode_protocol_level_notification("$/cancel_request", b'{"requestId":7}')
    assert note == schema.CancelRequestNotification(request_id=7)
    assert code(schema.decode_protocol_level_notification, "$/other", b"{}") == acprt.ErrorCode.METHOD_NOT_FOUND
    assert code(schema.decode_protocol_level_notification, "_x", b"{}") == acprt.ErrorCode.METHOD_NOT_FOUND


def test_requests_and_notifications_of_both_sides() -> None:
    prompt = v1.decode_client_request("session/prompt", b'{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}')
    assert prompt == v1.PromptRequest(session_id="s", prompt=[v1.TextContent(text="hi")])
    update = b'{"sessionId":"s","update":{"sessionUpdate":"_new","x":1}}'
    note = v1.decode_agent_notification("session/update", update)
    assert note.encode_params() == update
    read = v1.decode_agent_request("fs/read_text_file", b'{"sessionId":"s","path":"/a"}')
    assert read == v1.ReadTextFileRequest(session_id="s", path="/a")
    fork = v2.decode_client_request("session/fork", b'{"sessionId":"s","cwd":"/"}', unstable=True)
    assert fork == v2.ForkSessionRequest(session_id="s", cwd="/")


class TestAnswers:
    def test_answer_is_told_by_the_method_of_its_request(self) -> None:
        assert v1.decode_agent_response("session/prompt", b'{"stopReason":"end_turn"}') == v1.PromptResponse(
            stop_reason="end_turn"
        )
        assert v2.decode_agent_response("session/prompt", b'{"messageId":"m"}') == v2.PromptResponse(message_id="m")
        answer = v1.decode_client_response("terminal/create", Raw(b'{"terminalId":"t"}'))
        assert answer == v1.CreateTerminalResponse(terminal_id="t")

    def test_result_of_an_extension_is_kept_raw(self) -> None:
        answer = v1.decode_agent_response("_x/y", b"[1, 2]")
        assert isinstance(answer, v1.ExtResponse)
        assert bytes(answer.result) == b"[1, 2]"

    def test_result_of_the_wrong_shape_is_a_local_failure(self) -> None:
        assert code(v1.decode_agent_response, "session/prompt", b"{}") == acprt.ErrorCode.INTERNAL_ERROR

    def test_unstable_answers_need_the_opt_in(self) -> None:
        text = b'{"title":"t"}'
        assert code(v2.decode_agent_response, "session/set_title", text) == acprt.ErrorCode.METHOD_NOT_FOUND
        assert v2.decode_agent_response("session/set_title", text, unstable=True) == v2.SetSessionTitleResponse(
            title="t"
        )


UNIONS = [
    "AgentNotification",
    "AgentRequest",
    "AgentResponse",
    "ClientNotification",
    "ClientRequest",
    "ClientResponse",
    "ProtocolLevelNotification",
]


class TestJsonSchema:
    @FACES
    @pytest.mark.parametrize("name", UNIONS)
    def test_every_member_of_a_routing_union_is_described(self, schema: Any, name: str) -> None:
        union = getattr(schema, name)
        described = schema.json_schema(union)
        members = [each.__name__ for each in get_args(union) or (union,) if not each.__name__.startswith("Ext")]
        entries = described.get("anyOf", [described])
        assert [each["$ref"].rsplit("/", 1)[1] for each in entries if "$ref" in each] == members
        assert any(each.get("title") == "Extension" for each in entries) is (name != "ProtocolLevelNotification")
        assert set(members) <= set(described["$defs"])

    @FACES
    @pytest.mark.parametrize("name", UNIONS)
    def test_every_reference_leads_somewhere(self, schema: Any, name: str) -> None:
        described = schema.json_schema(getattr(schema, name))
        assert set(references(described)) == set(described["$defs"])

    def test_params_are_described_as_they_are_on_the_wire(self) -> None:
        cancel = v2.json_schema(v2.ClientNotification)["$defs"]["CancelSessionNotification"]
        assert cancel["properties"]["sessionId"] == {"type": "string"}
        assert cancel["required"] == ["sessionId"]

    def test_unions_without_a_tag_are_any_of_their_variants(self) -> None:
        described = v1.json_schema(v1.McpServer)
        names = [each["$ref"].rsplit("/", 1)[1] for each in described["anyOf"]]
        assert names == ["McpServerHttp", "McpServerSse", "McpServerAcp", "McpServerStdio"]

    def test_unions_with_a_tag_name_it(self) -> None:
        assert v1.json_schema(v1.ContentBlock)["discriminator"]["propertyName"] == "type"

    @pytest.mark.parametrize("type_", [v2.ReplayFrom, v2.AvailableCommand, v2.CreateElicitationRequest])
    def test_only_variant_stands_alone(self, type_: Any) -> None:
        text = msgspec.json.encode(v2.json_schema(type_))
        assert b"Never" not in text
        assert b"u0000" not in text


def references(schema: Any) -> set[str]:
    """The definitions referred to anywhere."""
    if isinstance(schema, list):
        return set().union(*map(references, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].rsplit("/", 1)[1]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(references, schema.values()))
