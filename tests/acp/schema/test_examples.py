"""Lines as they pass on the wire, read and written again with the same meaning."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode

LINES: list[tuple[Any, str]] = [
    (v1.CancelNotification, '{"sessionId":"sess_1"}'),
    (v2.CancelSessionNotification, '{"sessionId":"sess_1"}'),
    (v2.CancelRequestNotification, '{"requestId":7}'),
    (v1.CancelRequestNotification, '{"requestId":"a"}'),
    (v1.PromptResponse, '{"stopReason":"cancelled"}'),
    (v1.RequestPermissionResponse, '{"outcome":{"outcome":"cancelled"}}'),
    (v2.RequestPermissionResponse, '{"outcome":{"outcome":"selected","optionId":"allow"}}'),
    (
        v2.UpdateSessionNotification,
        '{"sessionId":"sess_1","update":{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"cancelled"}}',
    ),
    (
        v2.UpdateSessionNotification,
        '{"sessionId":"sess_1","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled"}}',
    ),
    (
        v2.MessageMcpRequest,
        '{"serverId":"srv-1","requestId":"mcp-7","method":"tools/call","params":{"name":"x","arguments":{}}}',
    ),
    (
        v2.MessageMcpNotification,
        '{"serverId":"srv-1","requestId":"mcp-7","method":"notifications/progress",'
        '"params":{"progressToken":"t","progress":0.5}}',
    ),
    (v2.MessageMcpResponse, '{"result":{"content":[]}}'),
    (v2.MessageMcpResponse, '{"result":null}'),
    (v2.MessageMcpResponse, '{"error":{"code":-32601,"message":"no such tool","data":null,"hint":"x"}}'),
    (v2.ResumeSessionRequest, '{"sessionId":"s","cwd":"/","replayFrom":{"type":"start"}}'),
    (v2.UnsupportedProtocolVersionErrorData, '{"requested":1,"supported":[2]}'),
    (v2.SessionNotFoundErrorData, '{"sessionId":"sess_9"}'),
    (v2.AgentCapabilities, '{"session":{"prompt":{"image":{}},"mcp":{"stdio":{}},"delete":{}},"auth":{}}'),
    (v1.SessionCapabilities, '{"list":{},"resume":{},"close":{},"fork":{}}'),
    (
        v1.NewSessionRequest,
        '{"cwd":"/home/u","mcpServers":[{"name":"files","command":"/bin/mcp","args":["-v"],'
        '"env":[{"name":"A","value":"1"}]},{"type":"http","name":"h","url":"https://h","headers":[]}]}',
    ),
    (
        v1.RequestPermissionRequest,
        '{"sessionId":"s","toolCall":{"toolCallId":"call_1","title":"Edit","kind":"edit","status":"pending"},'
        '"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}]}',
    ),
    (
        v1.PromptRequest,
        '{"sessionId":"s","prompt":[{"type":"text","text":"hi"},{"type":"resource_link","name":"a","uri":"file:///a"},'
        '{"type":"resource","resource":{"uri":"file:///b","text":"x"}},'
        '{"type":"resource","resource":{"uri":"file:///c","blob":"AAAA","mimeType":"image/png"}}]}',
    ),
    (
        v1.SessionNotification,
        '{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit a.py","kind":"edit",'
        '"status":"in_progress","content":[{"type":"diff","path":"/a.py","oldText":"a","newText":"b"},'
        '{"type":"terminal","terminalId":"t"},{"type":"content","content":{"type":"text","text":"x"}}],'
        '"locations":[{"path":"/a.py","line":3}],"rawInput":{"a":null}}}',
    ),
    (
        v1.NewSessionResponse,
        '{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"}]},'
        '"configOptions":[{"type":"select","id":"model","name":"Model","category":"model","currentValue":"a",'
        '"options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}]},'
        '{"type":"boolean","id":"web","name":"Web","currentValue":true}]}',
    ),
    (
        v2.RequestPermissionRequest,
        '{"sessionId":"s","title":"Run?","subject":{"type":"command","command":"ls","cwd":"/"},'
        '"options":[{"optionId":"once","name":"Allow","kind":"allow_once"}]}',
    ),
    (
        v2.UpdateSessionNotification,
        '{"sessionId":"s","update":{"sessionUpdate":"tool_call_content_chunk","toolCallId":"c","content":{"type":"diff",'
        '"changes":[{"operation":"move","oldPath":"/a","path":"/b","fileType":"text"},{"operation":"add","path":"/c"}],'
        '"patch":{"format":"git_patch","text":"…"}}}}',
    ),
    (
        v1.CreateElicitationRequest,
        '{"mode":"form","message":"Who?","sessionId":"s","requestedSchema":{"type":"object","properties":{'
        '"name":{"type":"string","minLength":1},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}},'
        '"kind":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}},"required":["name"]}}',
    ),
    (
        v2.CreateElicitationRequest,
        '{"mode":"url","message":"Log in","requestId":4,"elicitationId":"e","url":"https://x"}',
    ),
    (v1.CreateElicitationResponse, '{"action":"accept","content":{"name":"Ada","n":1,"x":1.5,"ok":true,"l":["a"]}}'),
    (v1.SetSessionConfigOptionRequest, '{"sessionId":"s","configId":"web","type":"boolean","value":false}'),
    (v1.SetSessionConfigOptionRequest, '{"sessionId":"s","configId":"model","value":"a"}'),
    (v2.SetSessionConfigOptionRequest, '{"sessionId":"s","configId":"model","type":"id","value":"a"}'),
]


@pytest.mark.parametrize(("message", "text"), LINES, ids=lambda each: getattr(each, "__name__", None))
def test_a_line_is_written_as_it_was_read(message: Any, text: str) -> None:
    value = decode(message, text.encode())
    assert isinstance(value, message)
    assert msgspec.json.decode(msgspec.json.encode(value)) == msgspec.json.decode(text)


@pytest.mark.parametrize("schema", [v1, v2])
def test_an_empty_object_is_every_capability(schema: Any) -> None:
    markers = [name for name in schema.__all__ if name.endswith("Capabilities")]
    assert len(markers) > 20
    for name in markers:
        assert msgspec.json.decode(msgspec.json.encode(decode(getattr(schema, name), b"{}"))) in (
            {},
            {"fs": {}, "auth": {}},
            {"promptCapabilities": {}, "mcpCapabilities": {}, "sessionCapabilities": {}, "auth": {}},
        )
