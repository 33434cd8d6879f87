"""Leniency where the runtime decodes: params of handlers, results of requests; and `Unknown` where it encodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from acprt.acp import v1, v2
from tests.rawpeer import RawPeer

UPDATE = {"sessionUpdate": "mood_update", "mood": [1, None]}


@asynccontextmanager
async def joined(endpoint: acprt.Endpoint) -> AsyncIterator[tuple[acprt.Connection, RawPeer]]:
    ours, theirs = acprt.memory_pair()
    peer = RawPeer(theirs)
    async with endpoint.connect(ours) as cx:
        yield cx, peer
    await peer.aclose()


def test_handler_gets_an_unknown_update_between_known_ones(run) -> None:
    endpoint = acprt.Endpoint("client")
    seen: list[Any] = []

    @endpoint.on_receive_notification
    async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
        seen.append(note.update)

    async def main() -> None:
        async with joined(endpoint) as (_, peer):
            text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}, "messageId": 5}
            peer.notify("session/update", {"sessionId": "s", "update": text})
            peer.notify("session/update", {"sessionId": "s", "update": UPDATE})
            peer.notify("session/update", {"sessionId": "s", "update": {**text, "content": 5}})
            peer.notify("session/update", {"sessionId": "s", "update": text})
            assert await peer.settled() == []

    run(main())
    chunk = v1.AgentMessageChunk(content=v1.TextContent(text="a"))
    assert seen == [chunk, v1.Unknown("sessionUpdate", UPDATE), chunk]


def test_request_that_only_leniency_reads_is_served(run) -> None:
    endpoint = acprt.Endpoint("agent")

    @endpoint.method
    async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        assert request.mcp_servers == []
        return v1.NewSessionResponse(session_id=request.cwd)

    async def main() -> None:
        async with joined(endpoint) as (_, peer):
            peer.request(1, "session/new", {"cwd": "/a", "mcpServers": None})
            assert (await peer.receive())["result"] == {"sessionId": "/a"}
            peer.request(2, "session/new", {"cwd": 5, "mcpServers": None})
            error = (await peer.receive())["error"]
            assert error["code"] == -32602
            assert "cwd" in error["data"]["error"]

    run(main())


def test_result_is_read_with_leniency(run) -> None:
    async def main() -> None:
        async with joined(acprt.Endpoint("client")) as (cx, peer):
            opening = cx.send_request(v1.NewSessionRequest(cwd="/", mcp_servers=[]))
            written = cx.send_request(v1.WriteTextFileRequest(session_id="s", path="/a", content=""))
            first, second = await peer.receive(), await peer.receive()
            peer.respond(first["id"], {"sessionId": "s", "modes": 5, "configOptions": [{}, 1]})
            peer.respond(second["id"], None)
            assert await opening.block_task() == v1.NewSessionResponse(session_id="s", config_options=[])
            assert await written.block_task() == v1.WriteTextFileResponse()

    run(main())


@pytest.mark.parametrize("reply_type", [v1.ContentBlock, list[v2.ContentBlock]], ids=["union", "list"])
def test_leniency_reaches_into_unions_and_lists(run, reply_type: Any) -> None:
    block = {"type": "resource", "resource": {"uri": "u", "text": "t"}, "annotations": 5}

    async def main() -> Any:
        async with joined(acprt.Endpoint("client")) as (cx, peer):
            sent = cx.send_request("_blocks", {}, reply_type=reply_type)
            request = await peer.receive()
            peer.respond(request["id"], block if reply_type is v1.ContentBlock else [block, {"type": "_x"}])
            return await sent.block_task()

    value = run(main())
    if reply_type is v1.ContentBlock:
        assert value == v1.EmbeddedResource(resource=v1.TextResourceContents(uri="u", text="t"))
    else:
        known = v2.EmbeddedResource(resource=v2.TextResourceContents(uri="u", text="t"))
        assert value == [known, v2.Unknown("type", {"type": "_x"})]


def test_unknown_is_forwarded_as_it_came(run) -> None:
    endpoint = acprt.Endpoint("proxy")

    @endpoint.on_receive_notification
    async def update(note: v2.UpdateSessionNotification, cx: acprt.Connection) -> None:
        cx.send_notification(note)

    @endpoint.method("_echo")
    async def echo(params: Any) -> Any:
        return v2.Unknown("type", params)

    async def main() -> None:
        async with joined(endpoint) as (_, peer):
            params = {"sessionId": "s", "update": UPDATE, "_meta": {"a": None}}
            peer.notify("session/update", params)
            assert (await peer.receive())["params"] == params
            peer.request(1, "_echo", {"type": "_x", "n": [1.5]})
            assert (await peer.receive())["result"] == {"type": "_x", "n": [1.5]}

    run(main())


def test_mended_text_is_read_with_leniency_too(run) -> None:
    endpoint = acprt.Endpoint("client")
    seen: list[Any] = []

    @endpoint.on_receive_notification
    async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
        seen.append(note.update)

    async def main() -> None:
        async with joined(endpoint) as (_, peer):
            peer.send(
                r'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
                r'{"sessionUpdate":"agent_message_chunk","messageId":5,"content":{"type":"text","text":"\ud83d"}}}}'
            )
            await peer.settled()

    run(main())
    assert seen == [v1.AgentMessageChunk(content=v1.TextContent(text="\ufffd"))]
