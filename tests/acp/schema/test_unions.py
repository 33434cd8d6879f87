"""Unions that msgspec cannot tell apart, and unions that the schema flattens into their parent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode


def read(type_: Any, payload: Any) -> Any:
    return decode(type_, json.dumps(payload).encode())


FORM: dict[str, Any] = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
URL: dict[str, Any] = {"mode": "url", "message": "m", "elicitationId": "e", "url": "https://x"}


class TestWithoutTag:
    def test_server_without_a_type_is_started_over_stdio(self) -> None:
        servers = read(
            v1.NewSessionRequest,
            {
                "cwd": "/",
                "mcpServers": [
                    {"name": "a", "command": "x", "args": [], "env": []},
                    {"type": "sse", "name": "b", "url": "u", "headers": []},
                ],
            },
        ).mcp_servers
        assert servers == [
            v1.McpServerStdio(name="a", command="x", args=[], env=[]),
            v1.McpServerSse(name="b", url="u", headers=[]),
        ]
        assert all(isinstance(each, v1.McpServer) for each in servers)

    def test_server_over_stdio_is_written_without_a_type(self) -> None:
        server = v1.McpServerStdio(name="a", command="x", args=[], env=[])
        assert msgspec.json.encode(server) == b'{"name":"a","command":"x","args":[],"env":[]}'

    def test_version_2_names_every_kind_of_server(self) -> None:
        server = v2.McpServerStdio(name="a", command="/x")
        assert msgspec.json.encode(server) == b'{"type":"stdio","name":"a","command":"/x"}'

    def test_resource_is_told_by_what_it_holds(self) -> None:
        def resource(**members: Any) -> Any:
            return (
                read(v1.PromptRequest, {"sessionId": "s", "prompt": [{"type": "resource", "resource": members}]})
                .prompt[0]
                .resource
            )

        assert resource(uri="u", text="t") == v1.TextResourceContents(uri="u", text="t")
        assert resource(uri="u", blob="b") == v1.BlobResourceContents(uri="u", blob="b")
        with pytest.raises(msgspec.ValidationError, match="text"):
            resource(uri="u")

    def test_items_of_a_choice_are_strings_titled_or_unknown(self) -> None:
        def items(**members: Any) -> Any:
            form = {"type": "object", "properties": {"a": {"type": "array", "items": members}}}
            request = {"mode": "form", "message": "m", "sessionId": "s", "requestedSchema": form}
            return read(v1.CreateElicitationRequest, request).requested_schema.properties["a"].items

        assert items(type="string", enum=["a"]) == v1.StringMultiSelectItems(enum=["a"])
        assert items(anyOf=[{"const": "a", "title": "A"}]) == v1.TitledMultiSelectItems(
            any_of=[v1.EnumOption(const="a", title="A")]
        )
        assert items(type="_x", y=1) == v1.Unknown("type", {"type": "_x", "y": 1})

    @pytest.mark.parametrize(("schema", "group", "id"), [(v1, "group", "id"), (v2, "groupId", "configId")])
    def test_options_are_all_options_or_all_groups(self, schema: Any, group: str, id: str) -> None:
        option = {"value": "v", "name": "V"}
        grouped = {group: "g", "name": "G", "options": [option]}

        def options(*each: Any) -> Any:
            select = {"type": "select", id: "c", "name": "n", "currentValue": "v", "options": each}
            read_options = read(schema.NewSessionResponse, {"sessionId": "s", "configOptions": [select]}).config_options
            return [type(one) for one in read_options[0].options] if read_options else None

        assert options(option, option) == [schema.SessionConfigSelectOption] * 2
        assert options(grouped) == [schema.SessionConfigSelectGroup]
        assert options(option, grouped) is None  # the option is malformed, and skipped


class TestToolCallsWithAndWithoutTag:
    def test_permission_request_holds_a_patch(self) -> None:
        request = read(v1.RequestPermissionRequest, {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []})
        assert type(request.tool_call) is v1.ToolCallPatch

    def test_update_given_to_a_permission_request_loses_its_tag(self) -> None:
        call = v1.ToolCallUpdate(tool_call_id="c", title="x")
        request = v1.RequestPermissionRequest(session_id="s", tool_call=call, options=[])
        assert msgspec.json.decode(msgspec.json.encode(request))["toolCall"] == {"toolCallId": "c", "title": "x"}
        subject = v2.ToolCallPermissionSubject(tool_call=v2.ToolCallUpdate(tool_call_id="c", title=None))
        assert msgspec.json.encode(subject) == b'{"type":"tool_call","toolCall":{"toolCallId":"c","title":null}}'

    def test_an_update_is_a_patch(self) -> None:
        assert issubclass(v1.ToolCallUpdate, v1.ToolCallPatch)


class TestElicitations:
    @pytest.mark.parametrize("schema", [v1, v2])
    @pytest.mark.parametrize("payload", [FORM, URL])
    @pytest.mark.parametrize("scope", [{"sessionId": "s"}, {"sessionId": "s", "toolCallId": "t"}, {"requestId": 1}])
    def test_form_and_url_belong_to_a_session_or_a_request(self, schema: Any, payload: Any, scope: Any) -> None:
        request = read(schema.CreateElicitationRequest, payload | scope)
        assert msgspec.json.decode(msgspec.json.encode(request)) == payload | scope | (
            {"requestedSchema": {"type": "object"} if schema is v1 else {"type": "object", "properties": {}}}
            if payload is FORM
            else {}
        )

    @pytest.mark.parametrize("schema", [v1, v2])
    @pytest.mark.parametrize(
        "payload",
        [FORM, {**URL, "sessionId": "s", "url": None}, {"mode": "form", "message": "m", "sessionId": "s"}],
    )
    def test_incomplete_one_is_an_error(self, schema: Any, payload: Any) -> None:
        with pytest.raises(msgspec.ValidationError, match="elicitation"):
            read(schema.CreateElicitationRequest, payload)

    def test_version_2_takes_one_scope_and_version_1_the_session_of_two(self) -> None:
        both = URL | {"sessionId": "s", "requestId": 1}
        with pytest.raises(msgspec.ValidationError, match="either"):
            read(v2.CreateElicitationRequest, both)
        assert read(v1.CreateElicitationRequest, both).request_id is msgspec.UNSET
        assert read(v1.CreateElicitationRequest, both | {"sessionId": 5}).request_id == 1

    def test_null_names_a_request_in_version_1(self) -> None:
        assert read(v1.CreateElicitationRequest, URL | {"requestId": None}).request_id is None

    def test_unknown_mode_is_kept_with_what_is_known_of_it(self) -> None:
        request = read(v2.CreateElicitationRequest, {"mode": "_voice", "message": "m", "sessionId": "s", "url": 5})
        assert (request.mode, request.message, request.url) == ("_voice", "m", None)

    def test_schema_of_a_form_writes_its_type_and_needs_it_in_version_2(self) -> None:
        assert msgspec.json.encode(v1.ElicitationSchema()) == b'{"type":"object"}'
        assert msgspec.json.encode(v2.ElicitationSchema(properties={})) == b'{"type":"object","properties":{}}'
        untyped = {**FORM, "sessionId": "s", "requestedSchema": {"properties": {}}}
        assert read(v1.CreateElicitationRequest, untyped).requested_schema == v1.ElicitationSchema()
        with pytest.raises(msgspec.ValidationError, match="type"):
            read(v2.CreateElicitationRequest, untyped)

    def test_wrong_type_of_a_form_is_forgiven_in_version_1_only(self) -> None:
        mistyped = {**FORM, "sessionId": "s", "requestedSchema": {"type": "array", "properties": {}}}
        assert read(v1.CreateElicitationRequest, mistyped).requested_schema == v1.ElicitationSchema()
        with pytest.raises(msgspec.ValidationError, match="array"):
            read(v2.CreateElicitationRequest, mistyped)

    @pytest.mark.parametrize("schema", [v1, v2])
    def test_content_belongs_to_acceptance(self, schema: Any) -> None:
        answer = schema.CreateElicitationResponse
        assert read(answer, {"action": "accept", "content": {"a": 1, "b": ["x"]}}).content == {"a": 1, "b": ["x"]}
        assert read(answer, {"action": "decline", "content": 5}) == answer(action="decline")
        with pytest.raises(msgspec.ValidationError, match="content"):
            read(answer, {"action": "accept", "content": 5})
        assert read(answer, {"action": "_later"}).action == "_later"


class TestConfigValues:
    def test_version_1_takes_a_string_whatever_its_type_says(self) -> None:
        for extra in ({}, {"type": "_x"}, {"type": 5}, {"type": "boolean"}):
            request = read(v1.SetSessionConfigOptionRequest, {"sessionId": "s", "configId": "c", "value": "v", **extra})
            assert (request.value, request.type) == ("v", msgspec.UNSET)

    def test_version_1_takes_a_bool_only_as_boolean(self) -> None:
        payload = {"sessionId": "s", "configId": "c", "value": True}
        assert read(v1.SetSessionConfigOptionRequest, payload | {"type": "boolean"}).value is True
        with pytest.raises(msgspec.ValidationError, match="boolean"):
            read(v1.SetSessionConfigOptionRequest, payload)
        with pytest.raises(ValueError, match="boolean"):
            v1.SetSessionConfigOptionRequest(session_id="s", config_id="c", value=True)

    def test_version_2_takes_what_the_type_says_and_anything_for_an_unknown_one(self) -> None:
        def value(type_: str, value: Any) -> Any:
            payload = {"sessionId": "s", "configId": "c", "type": type_, "value": value}
            return read(v2.SetSessionConfigOptionRequest, payload).value

        assert value("id", "v") == "v"
        assert value("boolean", False) is False
        assert value("_number", {"n": 1}) == {"n": 1}
        for type_, wrong in (("id", True), ("boolean", "v")):
            with pytest.raises(msgspec.ValidationError, match=type_):
                value(type_, wrong)


class TestMcpAnswers:
    def test_result_counts_before_an_error(self) -> None:
        assert read(v2.MessageMcpResponse, {"result": 1, "error": 5}) == v2.MessageMcpResponse(result=1)

    def test_error_keeps_members_of_any_name(self) -> None:
        error = {"code": 1, "message": "m", "data": None, "more": [1]}
        assert read(v2.MessageMcpResponse, {"error": error}).error == error

    @pytest.mark.parametrize("payload", [{}, {"error": {}}, {"error": {"code": 2**40, "message": "m"}}, {"error": 5}])
    def test_neither_is_an_error(self, payload: Any) -> None:
        with pytest.raises(msgspec.ValidationError):
            read(v2.MessageMcpResponse, payload)
