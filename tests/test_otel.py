"""Spans of requests, their parents across connections and processes, and that nothing else changes."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import acprt
from acprt import acp, mcp
from acprt.acp import v1
from acprt.testing import ScriptedPeer, testy

pytest.importorskip("opentelemetry.sdk", reason="the extra acprt[otel] and opentelemetry-sdk are not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from acprt import otel

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"


class Spans:
    """A tracer provider of one test, and what it saw."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def instrument(self, *endpoints: acprt.Endpoint, **options: Any) -> None:
        for endpoint in endpoints:
            otel.instrument(endpoint, tracer_provider=self.provider, **options)

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def one(self, name: str, kind: trace.SpanKind) -> ReadableSpan:
        (found,) = [span for span in self.ended if span.name == name and span.kind is kind]
        return found


@pytest.fixture
def spans() -> Spans:
    return Spans()


SERVER, CLIENT = trace.SpanKind.SERVER, trace.SpanKind.CLIENT


def greeter() -> acprt.Endpoint:
    endpoint = acprt.Endpoint("greeter")

    @endpoint.method("greet")
    async def greet(params: Any) -> str:
        return "hello"

    @endpoint.method("refuse")
    async def refuse(params: Any) -> None:
        raise acprt.RpcError(7, "no", {"why": "private"})

    @endpoint.method("wait")
    async def wait(params: Any) -> None:
        await asyncio.Event().wait()

    return endpoint


class TestSpans:
    def test_a_request_is_one_span_on_each_side_and_one_trace(self, run, spans):
        client, server = acprt.Endpoint("client"), greeter()
        spans.instrument(client, server)

        async def main() -> None:
            async with client.connect(server) as cx:
                assert await cx.send_request("greet", {"a": 1}).block_task() == "hello"

        run(main())
        asked, served = spans.one("greet", CLIENT), spans.one("greet", SERVER)
        assert served.parent is not None
        assert served.parent.span_id == asked.context.span_id
        assert served.context.trace_id == asked.context.trace_id
        assert dict(asked.attributes or {}) == {
            "rpc.system": "jsonrpc",
            "rpc.jsonrpc.version": "2.0",
            "rpc.jsonrpc.request_id": "1",
            "rpc.method": "greet",
        }
        assert asked.status.is_ok or asked.status.is_unset

    def test_an_error_is_told_by_code_and_message_and_not_by_its_data(self, run, spans):
        client, server = acprt.Endpoint("client"), greeter()
        spans.instrument(client, server)

        async def main() -> None:
            async with client.connect(server) as cx:
                with pytest.raises(acprt.RpcError):
                    await cx.send_request("refuse").block_task()

        run(main())
        for kind in (SERVER, CLIENT):
            span = spans.one("refuse", kind)
            assert span.status.status_code is trace.StatusCode.ERROR
            assert (span.attributes or {})["rpc.jsonrpc.error_code"] == 7
            assert (span.attributes or {})["rpc.jsonrpc.error_message"] == "no"
            assert "private" not in span.to_json()

    def test_a_cancelled_request_and_one_that_lost_its_connection_end_too(self, run, spans):
        client, server = acprt.Endpoint("client"), greeter()
        spans.instrument(client, server)

        async def main() -> None:
            async with client.connect(server) as cx:
                sent = cx.send_request("wait", {})
                sent.cancel()
                with pytest.raises(acprt.RpcError, match="-32800"):
                    await sent.block_task()
            async with ScriptedPeer.as_agent_of(client) as peer:
                assert peer.cx is not None
                lost = peer.cx.send_request("wait", {})
                await peer.expect("wait")
                peer.close()
                with pytest.raises(acprt.RpcError):
                    await lost.block_task()

        run(main())
        codes = [(span.kind, (span.attributes or {}).get("rpc.jsonrpc.error_code")) for span in spans.ended]
        assert sorted(codes, key=str) == sorted([(SERVER, -32800), (CLIENT, -32800), (CLIENT, -32603)], key=str)

    def test_what_a_handler_asks_is_a_child_of_what_it_serves(self, run, spans):
        """Also across connections: a proxy is one trace."""
        proxy, client, upstream = acprt.Endpoint("proxy"), acprt.Endpoint("client"), greeter()
        spans.instrument(proxy, client, upstream)

        async def main() -> None:
            onward = acprt.Endpoint("onward")
            spans.instrument(onward)
            async with onward.connect(upstream) as up:

                @proxy.method("relay")
                async def relay(params: Any) -> Any:
                    return await up.send_request("greet", params).block_task()

                async with client.connect(proxy) as cx:
                    assert await cx.send_request("relay", {}).block_task() == "hello"

        run(main())
        chain = [
            spans.one("relay", CLIENT),
            spans.one("relay", SERVER),
            spans.one("greet", CLIENT),
            spans.one("greet", SERVER),
        ]
        for parent, child in itertools.pairwise(chain):
            assert child.parent is not None
            assert child.parent.span_id == parent.context.span_id

    def test_the_span_that_is_current_where_a_request_is_sent_goes_first(self, run, spans):
        client = acprt.Endpoint("client")
        spans.instrument(client)

        async def main() -> None:
            async with client.connect(greeter()) as cx:
                with spans.provider.get_tracer("app").start_as_current_span("work"):
                    await cx.send_request("greet", {}).block_task()

        run(main())
        parent = spans.one("greet", CLIENT).parent
        assert parent is not None
        assert parent.span_id == spans.one("work", trace.SpanKind.INTERNAL).context.span_id

    def test_the_current_span_is_that_of_the_request_being_served(self, run, spans):
        server, seen = acprt.Endpoint("server"), []

        @server.on_receive_request("look")
        async def look(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            seen.append(otel.current_span().get_span_context().span_id)
            responder.respond(None)

        spans.instrument(server)

        async def main() -> None:
            assert not otel.current_span().get_span_context().is_valid
            async with acprt.Endpoint("client").connect(server) as cx:
                await cx.send_request("look", {}).block_task()

        run(main())
        assert seen == [spans.one("look", SERVER).context.span_id]


class TestTraceContext:
    def test_it_stands_in_meta_beside_what_is_there(self, run, spans):
        client = acprt.Endpoint("client")
        spans.instrument(client)

        async def main() -> list[dict[str, Any]]:
            async with ScriptedPeer.as_agent_of(client) as peer:
                assert peer.cx is not None
                got = []
                for params in (
                    {"a": 1, "_meta": {"mine": [1]}},
                    {"_meta": None},
                    {"_meta": {"traceparent": TRACEPARENT}},
                ):
                    peer.cx.send_request("m", params).detach()
                    got.append((await peer.expect("m"))["params"])
                for odd in ([1], None, {"_meta": 5}):
                    peer.cx.send_request("m", odd).detach()
                    got.append((await peer.expect("m")).get("params"))
                return got

        first, null, given, *odd = run(main())
        assert first["a"] == 1
        assert first["_meta"]["mine"] == [1]
        assert first["_meta"]["traceparent"].startswith("00-")
        assert null["_meta"]["traceparent"].startswith("00-")
        assert given["_meta"]["traceparent"] not in (TRACEPARENT, None)
        assert odd == [[1], None, {"_meta": 5}]

    def test_it_is_read_from_whoever_sends_it(self, run, spans):
        server = greeter()
        spans.instrument(server)

        async def main() -> None:
            async with ScriptedPeer.as_client_of(server) as peer:
                await peer.expect_result(peer.request("greet", {"_meta": {"traceparent": TRACEPARENT}}))
                for odd in ({"_meta": {"traceparent": 5}}, {"_meta": 5}, [1], None):
                    await peer.expect_result(peer.request("greet", odd))

        run(main())
        first, *others = [span for span in spans.ended if span.kind is SERVER]
        assert first.parent is not None
        assert (f"{first.parent.trace_id:032x}", f"{first.parent.span_id:016x}") == (TRACE_ID, SPAN_ID)
        assert [span.parent for span in others] == [None] * 4

    def test_it_is_not_sent_when_that_is_not_wanted(self, run, spans):
        client = acprt.Endpoint("client")
        spans.instrument(client, propagates=False)

        async def main() -> None:
            async with ScriptedPeer.as_agent_of(client) as peer:
                assert peer.cx is not None
                peer.cx.send_request("m", {"a": 1}).detach()
                assert (await peer.expect("m"))["params"] == {"a": 1}

        run(main())


class TestProtocols:
    @pytest.mark.parametrize("version", [1, 2])
    def test_a_turn_of_acp_is_a_trace_and_goes_as_ever(self, run, spans, version):
        agent = testy.agent_v1() if version == 1 else testy.agent_v2()
        client = acp.Client("c", version="1") if version == 1 else acp.Client.v2("c", version="1")
        spans.instrument(agent, client)

        async def main() -> None:
            async with client.connect(agent) as cx:
                await acp.initialize(cx)
                if version == 1:
                    async with acp.session(cx, cwd=".") as session:
                        assert await session.prompt("echo hi").text() == "hi"
                        async with session.prompt("wait_for_cancel"):
                            session.cancel()
                        assert session.stop_reason == "cancelled"

        run(main())
        names = [span.name for span in spans.ended if span.kind is SERVER]
        assert names[0] == "initialize"
        if version == 1:
            assert names[1:] == ["session/new", "session/prompt", "session/prompt", "session/close"]
            served = [span for span in spans.ended if span.kind is SERVER]
            assert all(span.parent is not None for span in served)

    def test_a_typed_request_arrives_as_it_was_sent(self, run, spans):
        agent, client = acp.Agent("a", version="1"), acp.Client("c", version="1")
        got: list[v1.NewSessionRequest] = []

        @agent.method
        async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
            got.append(request)
            return v1.NewSessionResponse(session_id="s")

        spans.instrument(agent, client)

        async def main() -> None:
            async with client.connect(agent) as cx:
                await acp.initialize(cx)
                await cx.send_request(v1.NewSessionRequest(cwd="/x", mcp_servers=[])).block_task()

        run(main())
        assert got[0].cwd == "/x"

    def test_mcp_keeps_its_own_rules(self, run, spans):
        server = acprt.Endpoint("server", dialect=mcp.dialect(mcp.ProtocolEra.LEGACY_2024, side="server"))
        client = acprt.Endpoint("client", dialect=mcp.dialect(mcp.ProtocolEra.LEGACY_2024, side="client"))

        @server.method("initialize")
        async def initialize(params: Any) -> Any:
            return {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}

        @server.method("tools/call")
        async def call(params: Any) -> Any:
            await asyncio.Event().wait()

        spans.instrument(server, client)

        async def main() -> None:
            async with client.connect(server) as cx:
                info = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {},
                    "clientInfo": {"name": "c", "version": "1"},
                }
                await cx.send_request("initialize", info).block_task()
                cx.send_notification("notifications/initialized")
                sent = cx.send_request("tools/call", {"name": "x"})
                sent.cancel()
                with pytest.raises(acprt.RpcError, match="-32800"):
                    await sent.block_task()

        run(main())
        assert {span.name for span in spans.ended if span.kind is CLIENT} == {"initialize", "tools/call"}

    def test_two_connections_of_one_endpoint_do_not_mix(self, run, spans):
        server = greeter()
        spans.instrument(server)

        async def main() -> None:
            a, b = acprt.Endpoint("a"), acprt.Endpoint("b")
            async with a.connect(server) as first, b.connect(server) as second:
                waiting = first.send_request("wait", {})
                await second.send_request("greet", {}).block_task()
                waiting.cancel()
                with pytest.raises(acprt.RpcError):
                    await waiting.block_task()

        run(main())
        assert [span.name for span in spans.ended] == ["greet", "wait"]

    def test_instrumenting_twice_is_instrumenting_once(self, run, spans):
        server = greeter()
        spans.instrument(server)
        spans.instrument(server)

        async def main() -> None:
            async with acprt.Endpoint("client").connect(server) as cx:
                await cx.send_request("greet", {}).block_task()

        run(main())
        assert [span.name for span in spans.ended] == ["greet"]
