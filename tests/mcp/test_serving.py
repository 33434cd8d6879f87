"""What a handler may say while it serves a request, and what it may know of its client."""

from __future__ import annotations

from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, LEGACY, MODERN, PREFIX, client_of, server_of, until

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


def reporting_server(era: mcp.ProtocolEra) -> tuple[acprt.Endpoint, list[Any]]:
    server = server_of(era)
    said: list[Any] = []

    @server.method("report")
    async def report(params: Any, cx: acprt.Connection) -> Any:
        said.append(mcp.report_progress(cx, 1, 2, "half"))
        said.extend(mcp.log(cx, level, {"n": 1}, "part") for level in ("debug", "warning", "emergency"))
        return {}

    return server, said


@both_eras
class TestProgress:
    @pytest.mark.parametrize("token", ["p", "", 0, 7])
    def test_it_goes_under_the_token_of_the_request(self, run, era, token):
        """Whatever kind of token that is."""
        server, said = reporting_server(era)

        async def main():
            async with client_of(server, era) as client:
                client.send(client.call(1, "report", progressToken=token))
                assert await client.peer.receive() == {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"},
                }
                await client.settled()
            assert said[0] is True

        run(main())

    @pytest.mark.parametrize("meta", [{}, {"progressToken": None}, {"progressToken": True}, {"progressToken": [1]}])
    def test_without_a_token_nothing_is_sent(self, run, era, meta):
        server, said = reporting_server(era)

        async def main():
            async with client_of(server, era) as client:
                client.send(client.call(1, "report", **meta))
                methods = [line.get("method") for line in await client.settled()]
                assert "notifications/progress" not in methods
            assert said[0] is False

        run(main())


class TestLog:
    @pytest.mark.parametrize(
        ("asked", "sent"),
        [(None, []), ("debug", ["debug", "warning", "emergency"]), ("error", ["emergency"]), ("loud", []), (5, [])],
    )
    def test_modern_client_opts_in_by_request(self, run, asked, sent):
        """At that level and above."""
        server, said = reporting_server(MODERN)

        async def main():
            async with client_of(server, MODERN) as client:
                meta = {} if asked is None else {PREFIX + "logLevel": asked}
                client.send(client.call(1, "report", **meta))
                lines = [line["params"] for line in await client.settled() if "method" in line]
                assert lines == [{"level": level, "data": {"n": 1}, "logger": "part"} for level in sent]
            assert sum(said[1:]) == len(sent)

        run(main())

    def test_legacy_client_is_told_without_asking(self, run):
        """Its level is between it and the server's own handler of `logging/setLevel`."""
        server, _said = reporting_server(LEGACY)

        async def main():
            async with client_of(server, LEGACY) as client:
                client.send(client.call(1, "report"))
                assert len([line for line in await client.settled() if "method" in line]) == 3

        run(main())


def test_request_of_another_connection_asks_for_nothing_here(run):
    """Neither for progress nor for logs, and its capabilities are those of another client."""
    one, other = server_of(MODERN), server_of(MODERN)
    connections: list[acprt.Connection] = []

    @other.with_spawned
    async def connected(cx: acprt.Connection) -> None:
        connections.append(cx)

    @one.method("tell")
    async def tell(params: Any) -> dict[str, Any]:
        (cx,) = connections
        said = [mcp.log(cx, "error", "x"), mcp.report_progress(cx, 1)]
        return {"said": said, "capabilities": mcp.client_capabilities(cx)}

    async def main():
        async with client_of(one, MODERN) as client, client_of(other, MODERN) as stranger:
            await until(lambda: connections)
            meta: dict[str, Any] = {
                "progressToken": 1,
                PREFIX + "logLevel": "debug",
                PREFIX + "clientCapabilities": {"roots": {}},
            }
            client.send(client.call(1, "tell", **meta))
            result = (await client.peer.receive())["result"]
            assert (result["said"], result["capabilities"]) == ([False, False], {})
            assert await stranger.settled() == []

    run(main())


class TestClient:
    def test_capabilities_of_a_modern_client_are_those_of_the_request(self, run):
        """No earlier request counts; outside of one nothing is known."""
        server = server_of(MODERN)
        seen: list[Any] = []

        @server.method("who")
        async def who(params: Any, cx: acprt.Connection) -> Any:
            seen.append(mcp.client_capabilities(cx))
            return {}

        @server.on_receive_notification("note")
        async def note(params: Any, cx: acprt.Connection) -> None:
            seen.append(mcp.client_capabilities(cx))

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call(1, "who", **{PREFIX + "clientCapabilities": {"roots": {}}}))
                await client.settled()
                client.send(client.call(2, "who"))
                client.peer.notify("note", {})
                await client.settled()
            assert seen == [{"roots": {}}, {}, {}]

        run(main())

    def test_legacy_client_without_a_handshake_has_none(self, run):
        server = server_of(LEGACY)
        seen: list[Any] = []

        @server.method("who")
        async def who(params: Any, cx: acprt.Connection) -> Any:
            seen.append((mcp.client_capabilities(cx), mcp.request_meta()))
            return {}

        async def main():
            async with client_of(server, LEGACY) as client:
                client.send(client.call(1, "who"), {"jsonrpc": "2.0", "id": 2, "method": "who", "params": {"_meta": 5}})
                await client.settled()
            assert seen == [({}, {}), ({}, {})]

        run(main())
