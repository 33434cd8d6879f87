"""The opening of a server: which era a connection gets, and what does not belong to it afterwards."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, LEGACY, MODERN, MODERN_META, PREFIX, Client, client_of, server_of
from tests.rawpeer import RawPeer, raw_client_of

HANDSHAKE = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "client", "version": "0"}}


async def answer_to(peer: RawPeer, id: Any, method: str, params: Any = msgspec.UNSET) -> Any:
    """The result of one request, or its error."""
    peer.request(id, method, params)
    answer = await peer.receive()
    assert answer["id"] == id
    return answer.get("result", answer.get("error"))


class TestChoice:
    def test_initialize_selects_legacy(self, run):
        """The asked version is echoed, the rest of the handshake says who serves."""
        server = server_of(None)

        async def main():
            async with raw_client_of(server) as peer:
                result = await answer_to(peer, 1, "initialize", HANDSHAKE)
                assert result == {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "server", "version": "0"},
                }
                peer.notify("notifications/initialized")
                assert await answer_to(peer, 2, "ping") == {}

        run(main())

    def test_unknown_version_is_answered_with_another(self, run):
        """The newest that is offered."""
        server = server_of(LEGACY)

        async def main():
            async with raw_client_of(server) as peer:
                result = await answer_to(peer, 1, "initialize", HANDSHAKE | {"protocolVersion": "1900-01-01"})
                assert result["protocolVersion"] == "2025-11-25"

        run(main())

    def test_modern_request_selects_modern(self, run):
        """`server/discover` tells who serves; results are completed with what the era requires."""
        server = server_of(None, info=mcp.Implementation(name="stamped", version="1"))

        @server.method("tools/list")
        async def tools(params: Any) -> dict[str, Any]:
            return {"tools": [], "resultType": "own"}

        async def main():
            async with raw_client_of(server) as peer:
                assert await answer_to(peer, "d", "server/discover", {"_meta": MODERN_META}) == {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "resultType": "complete",
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {PREFIX + "serverInfo": {"name": "server", "version": "0"}},
                }
                assert await answer_to(peer, 1.0, "tools/list", {"_meta": MODERN_META}) == {
                    "tools": [],
                    "resultType": "own",
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {PREFIX + "serverInfo": {"name": "stamped", "version": "1"}},
                }

        run(main())

    def test_result_that_is_no_object_is_left_alone(self, run):
        """There is no place in it for what the era requires; errors are left alone as well."""
        server = server_of(MODERN)

        @server.method("odd")
        async def odd(params: Any) -> Any:
            return [1]

        async def main():
            async with raw_client_of(server) as peer:
                assert await answer_to(peer, 1, "odd", {"_meta": MODERN_META}) == [1]

        run(main())

    def test_request_without_either_is_legacy(self, run):
        """Both official servers serve it so; without the option it selects nothing."""
        for implicit in (True, False):
            server = server_of(None, implicit_legacy=implicit)

            async def main(server=server, implicit=implicit):
                async with raw_client_of(server) as peer:
                    answer = await answer_to(peer, 1, "ping")
                    if implicit:
                        assert answer == {}
                    else:
                        assert answer["code"] == -32600
                        assert answer["data"]["reason"] == "missing_modern_metadata"
                        assert "protocolVersion" in await answer_to(peer, 2, "initialize", HANDSHAKE)

            run(main())

    @pytest.mark.parametrize("version", ["1900-01-01", "2025-11-25", "2024-11-05"])
    def test_unsupported_version_locks_modern_all_the_same(self, run, version):
        """The error lists what is supported; a handshake is too late then."""
        server = server_of(None)
        meta = MODERN_META | {PREFIX + "protocolVersion": version}

        async def main():
            async with raw_client_of(server) as peer:
                for method in ("server/discover", "tools/list", "initialize"):
                    error = await answer_to(peer, method, method, HANDSHAKE | {"_meta": meta})
                    expected = "2024-11-05" if method == "initialize" else version
                    assert error["code"] == -32022
                    assert error["data"] == {"supported": ["2026-07-28"], "requested": expected}

        run(main())

    def test_mixed_opening_is_refused_and_may_be_mended(self, run):
        """An `initialize` with modern metadata is of no era; the next request may be of either."""
        for era in ERAS:
            server = server_of(None)

            async def main(era=era, server=server):
                async with raw_client_of(server) as peer:
                    error = await answer_to(peer, 1, "initialize", HANDSHAKE | {"_meta": MODERN_META})
                    assert (error["code"], error["data"]["reason"]) == (-32600, "mixed_era_markers")
                    assert error["data"]["supported"] == ["2024-11-05", "2026-07-28"]
                    if era is LEGACY:
                        assert "serverInfo" in await answer_to(peer, 2, "initialize", HANDSHAKE)
                    else:
                        assert "ttlMs" in await answer_to(peer, 2, "server/discover", {"_meta": MODERN_META})

            run(main())


class TestAfterTheChoice:
    def test_modern_connection_refuses_what_is_not_modern(self, run):
        """Each in the way that clients know."""
        server = server_of(None)
        no_capabilities = {PREFIX + "protocolVersion": "2026-07-28"}
        no_version: dict[str, Any] = {PREFIX + "clientCapabilities": {}}

        async def main():
            async with raw_client_of(server) as peer:
                await answer_to(peer, 1, "server/discover", {"_meta": MODERN_META})
                for params in (msgspec.UNSET, {}, {"_meta": no_capabilities}, {"_meta": no_version}):
                    assert (await answer_to(peer, 2, "tools/list", params))["code"] == -32602
                assert (await answer_to(peer, 3, "initialize", HANDSHAKE))["data"]["requested"] == "2024-11-05"
                assert (await answer_to(peer, 4, "initialize", {"_meta": MODERN_META}))["code"] == -32022
                for method in ("ping", "logging/setLevel", "resources/subscribe"):
                    error = await answer_to(peer, 5, method, {"_meta": MODERN_META})
                    assert (error["code"], error["data"]) == (-32601, method)
                assert "ttlMs" in await answer_to(peer, 6, "server/discover", {"_meta": MODERN_META})

        run(main())

    def test_legacy_connection_refuses_what_is_modern(self, run):
        """A modern envelope is -32600, a modern method unknown; the connection stays."""
        server = server_of(None)

        async def main():
            async with raw_client_of(server) as peer:
                await answer_to(peer, 1, "initialize", HANDSHAKE)
                error = await answer_to(peer, 2, "tools/list", {"_meta": MODERN_META})
                assert (error["code"], error["data"]) == (
                    -32600,
                    {"reason": "cross_era_traffic", "supported": ["2024-11-05"]},
                )
                for method in ("server/discover", "subscriptions/listen"):
                    assert (await answer_to(peer, 3, method))["code"] == -32601
                assert await answer_to(peer, 4, "ping") == {}

        run(main())

    def test_fixed_era_needs_no_opening(self, run):
        """A modern server serves any modern request first, a strict legacy one only `initialize`."""

        async def main():
            async with client_of(server_of(MODERN), MODERN) as client:
                client.send(client.call(1, "nobody"))
                assert (await client.peer.receive())["error"]["code"] == -32601
            async with client_of(server_of(LEGACY, implicit_legacy=False), LEGACY) as client:
                client.send(client.call(1, "ping"))
                error = (await client.peer.receive())["error"]
                assert error["data"]["reason"] == "legacy_initialize_required"

        run(main())

    @pytest.mark.parametrize(("version", "array"), [("2025-03-26", True), ("2024-11-05", False), ("2025-06-18", False)])
    def test_arrays_are_of_one_version_only(self, run, version, array):
        """2025-03-26 had them; everywhere else they are answered once, -32600."""
        server = server_of(None)

        async def main():
            async with raw_client_of(server) as peer:
                await answer_to(peer, 1, "initialize", HANDSHAKE | {"protocolVersion": version})
                call = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
                peer.send([call, call | {"id": 3}])
                answer = await peer.receive()
                if array:
                    assert [each["id"] for each in answer] == [2, 3]
                else:
                    assert (answer["id"], answer["error"]["code"]) == (None, -32600)

        run(main())


class TestEarlyNotifications:
    def test_notifications_before_the_first_request_are_kept(self, run):
        """Up to eight; then they are handled in front of it. A cancel among them is stale."""
        server = server_of(None)
        heard: list[Any] = []

        @server.on_receive_notification("note")
        async def note(params: Any) -> None:
            heard.append(params["n"])

        @server.on_receive_notification
        async def cancelled(note: mcp.CancelledNotification) -> None:
            heard.append("cancel")

        async def main():
            async with raw_client_of(server) as peer:
                client = Client(peer, LEGACY)
                client.send(client.cancelled(1))
                for number in range(10):
                    peer.notify("note", {"n": number})
                assert await answer_to(peer, 1, "ping") == {}
            assert heard == list(range(8))

        run(main())

    def test_strict_opening_ends_the_connection(self, run):
        """For a notification, and for a request of no era, which is told why first."""
        for line, answered in (
            ({"jsonrpc": "2.0", "method": "notifications/initialized"}, False),
            ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"_meta": MODERN_META}}, True),
        ):
            server = server_of(None, strict_opening=True)

            async def main(server=server, line=line, answered=answered):
                with pytest.raises(acprt.RpcError) as caught:
                    async with raw_client_of(server) as peer:
                        peer.send(line)
                        await peer.at_eof.wait()
                        assert [each["error"]["code"] for each in peer.unread()] == ([-32600] if answered else [])
                assert caught.value.code == -32600

            run(main())

    def test_strict_opening_serves_nothing_behind_the_wrong_one(self, run):
        """What came in the same chunk is refused, too."""
        server = server_of(None, strict_opening=True)

        async def main():
            with pytest.raises(acprt.RpcError):
                async with raw_client_of(server) as peer:
                    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                    peer.send({"jsonrpc": "2.0", "method": "early"}, ping)
                    await peer.at_eof.wait()
                    assert [each["error"]["code"] for each in peer.unread()] == [-32600]

        run(main())

    def test_strict_opening_lets_a_proper_one_pass(self, run):
        server = server_of(None, strict_opening=True)

        async def main():
            async with raw_client_of(server) as peer:
                await answer_to(peer, 1, "initialize", HANDSHAKE)
                peer.notify("notifications/initialized")
                assert await answer_to(peer, 2, "ping") == {}

        run(main())


class TestStrictAdmission:
    def test_line_that_two_readers_could_see_differently_is_refused(self, run, caplog):
        """A member that stands twice, say; without the option the last one counts."""
        caplog.set_level(logging.CRITICAL, "acprt")
        line = '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'
        for strict in (True, False):
            server = server_of(LEGACY, strict_admission=strict)

            async def main(server=server, strict=strict):
                async with raw_client_of(server) as peer:
                    peer.send(line)
                    first = await peer.receive()
                    peer.send("nonsense")
                    second = await peer.receive()
                    assert first["id"] == 2
                    assert first.get("error", {}).get("code") == (-32600 if strict else None)
                    assert second["error"]["code"] == -32700
                    assert await answer_to(peer, 3, "ping") == {}

            run(main())

    def test_own_answers_are_not_looked_at(self, run):
        """They are completed, whatever a strict reader would say to them."""
        server = server_of(MODERN, strict_admission=True)

        @server.method("odd")
        async def odd(params: Any) -> dict[str, Any]:
            return {"text": "\ufeff"}

        async def main():
            async with client_of(server, MODERN) as client:
                client.send(client.call(1, "odd"))
                assert (await client.peer.receive())["result"]["resultType"] == "complete"

        run(main())


class TestManyConnections:
    def test_connections_of_one_endpoint_choose_for_themselves(self, run):
        """And other protocols beside them keep their own rules."""
        server = server_of(None)
        plain = acprt.Endpoint("plain")

        @server.method("slow")
        @plain.method("slow")
        async def slow(params: Any, cx: acprt.Connection) -> None:
            cx.send_notification("started")
            await asyncio.Event().wait()

        async def main():
            async with (
                raw_client_of(server) as old,
                raw_client_of(server) as new,
                raw_client_of(plain) as other,
            ):
                await answer_to(old, 1, "initialize", HANDSHAKE)
                await answer_to(new, 1, "server/discover", {"_meta": MODERN_META})
                assert (await answer_to(old, 2, "tools/list", {"_meta": MODERN_META}))["code"] == -32600
                assert (await answer_to(new, 2, "initialize", HANDSHAKE))["code"] == -32022
                old.request(3, "slow")
                new.request(3, "slow", {"_meta": MODERN_META})
                other.request(3, "slow")
                for peer in (old, new, other):
                    assert (await peer.receive())["method"] == "started"
                    peer.notify("notifications/cancelled", {"requestId": 3})
                assert await other.settled() == []
                other.cancel(3)
                assert (await other.receive())["error"]["code"] == -32800
                assert await old.settled() == []
                assert await new.settled() == []

        run(main())

    def test_era_of_a_dialect_is_named(self):
        """In status and logs."""
        assert mcp.dialect(LEGACY, "server").name == "mcp 2024-11-05"
        assert mcp.negotiated("client").name == "mcp"

    def test_misuse_is_named(self):
        with pytest.raises(TypeError, match="ProtocolEra"):
            mcp.dialect("2024-11-05", "server")  # type: ignore[arg-type]
        for make in (lambda: mcp.dialect(LEGACY, "agent"), lambda: mcp.negotiated("agent")):  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="side"):
                make()
