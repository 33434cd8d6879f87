"""A client finds out what its server speaks: probe, fallback, memory; and what it never does while it does."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import acprt
from acprt import mcp
from acprt.mcp.memory import LegacyCommands
from tests.mcp.scripted import LEGACY, MODERN, MODERN_META, PREFIX, client_endpoint, server_for, server_of
from tests.rawpeer import RawPeer, turns

HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "server", "version": "0"},
}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {PREFIX + "serverInfo": {"name": "server", "version": "0"}},
}


async def expect(peer: RawPeer, method: str) -> Any:
    """The next message, which must be of this method; the id of a request."""
    message = await peer.receive()
    assert message["method"] == method, message
    return message.get("id")


async def greet_as_legacy(peer: RawPeer, **members: Any) -> None:
    peer.respond(await expect(peer, "initialize"), HANDSHAKE | members)
    await expect(peer, "notifications/initialized")


class TestProbe:
    def test_modern_server_is_found_and_every_request_is_stamped(self, run):
        """Version, capabilities and identity; what a message says itself goes first."""
        client = client_endpoint(None, capabilities={"sampling": {}})

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                probe = await peer.receive()
                meta = MODERN_META | {PREFIX + "clientCapabilities": {"sampling": {}}}
                assert probe == {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "server/discover",
                    "params": {"_meta": meta},
                }
                peer.respond(1, DISCOVERED)
                found = await opening
                assert cx.peer is found
                assert (found.era, found.version) == (MODERN, "2026-07-28")
                assert found.info == mcp.Implementation(name="server", version="0")
                assert found.capabilities == {"tools": {}}
                cx.send_request(
                    "tools/list", {"cursor": "x", "_meta": {"a/b": 1.5, PREFIX + "logLevel": "info"}}
                ).detach()
                assert (await peer.receive())["params"] == {
                    "cursor": "x",
                    "_meta": meta | {"a/b": 1.5, PREFIX + "logLevel": "info"},
                }
                own = {PREFIX + "clientInfo": {"name": "other", "version": "9"}}
                cx.send_request(mcp.ListToolsRequest(meta=own)).detach()
                assert (await peer.receive())["params"] == {"_meta": meta | own}

        run(main())

    @pytest.mark.parametrize(("code", "message"), [(-32601, "Method not found"), (-32602, "Invalid"), (0, "odd")])
    def test_any_other_error_means_legacy(self, run, code, message):
        """It does not hinge on one code; the same process is asked again, by handshake."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                peer.respond_error(await expect(peer, "server/discover"), code, message)
                await greet_as_legacy(peer)
                found = await opening
                assert (found.era, found.version) == (LEGACY, "2025-11-25")
                cx.send_request("tools/list", {}).detach()
                assert (await peer.receive())["params"] == {}

        run(main())

    def test_silence_means_legacy_and_the_probe_is_not_cancelled(self, run):
        """A late answer to it changes nothing, whenever it comes."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx, probe_seconds=0.01))
                await expect(peer, "server/discover")
                initialize = await expect(peer, "initialize")
                peer.respond(1, DISCOVERED)
                peer.respond(initialize, HANDSHAKE)
                found = await opening
                await expect(peer, "notifications/initialized")
                assert found.era is LEGACY
                assert cx.dialect.name == "mcp 2025-11-25"
                assert peer.unread() == []

        run(main())

    def test_modern_server_that_is_slow_to_start_is_asked_again(self, run):
        """It says so when it reads the `initialize`, behind the probe that nobody waits for any more."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx, probe_seconds=0.02))
                probe, handshake = await expect(peer, "server/discover"), await expect(peer, "initialize")
                peer.respond(probe, DISCOVERED)
                peer.respond_error(handshake, -32022, "Unsupported protocol version")
                peer.respond(await expect(peer, "server/discover"), DISCOVERED)
                assert (await opening).era is MODERN
                sent = cx.send_request("any")
                assert MODERN_META.items() <= (await peer.receive())["params"]["_meta"].items()
                sent.detach()

        run(main())

    def test_unsupported_version_does_not_fall_back(self, run):
        """-32022 is a word of the modern era: the server has one, only not ours."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                data = {"supported": ["2027-01-01"], "requested": "2026-07-28"}
                peer.respond_error(await expect(peer, "server/discover"), -32022, "Unsupported", data=data)
                with pytest.raises(acprt.RpcError) as caught:
                    await opening
                assert (caught.value.code, caught.value.data) == (-32022, data)
                assert peer.unread() == []

        run(main())

    def test_who_serves_may_be_unreadable(self, run):
        """It is for people: nothing depends on it."""
        client = client_endpoint(MODERN)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                odd = DISCOVERED | {"_meta": {PREFIX + "serverInfo": 5}}
                peer.respond(await expect(peer, "server/discover"), odd)
                assert (await opening).info is None

        run(main())

    def test_no_common_version_is_told_by_name(self, run):
        """Neither in a discovery nor in a handshake."""
        for method, result in (
            ("server/discover", DISCOVERED | {"supportedVersions": ["2027-01-01"]}),
            ("initialize", HANDSHAKE | {"protocolVersion": "2023-01-01"}),
        ):
            client = client_endpoint(MODERN if method == "server/discover" else LEGACY)

            async def main(client=client, method=method, result=result):
                async with server_for(client) as (cx, peer):
                    opening = asyncio.create_task(mcp.negotiate(cx))
                    peer.respond(await expect(peer, method), result)
                    with pytest.raises(acprt.RpcError) as caught:
                        await opening
                    assert caught.value.code == mcp.McpErrorCode.UNSUPPORTED_PROTOCOL_VERSION

            run(main())

    def test_dead_server_is_not_asked_again(self, run):
        """There is nobody to fall back to."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                await expect(peer, "server/discover")
                peer.close_write()
                with pytest.raises(acprt.RpcError) as caught:
                    await opening
                assert acprt.is_incoming_transport_closed(caught.value)
                assert peer.unread() == []

        run(main())

    def test_initialize_that_is_not_answered_times_out_and_is_not_cancelled(self, run):
        """It is given up here; the peer is not told."""
        client = client_endpoint(LEGACY)

        async def main():
            async with server_for(client) as (cx, peer):
                with pytest.raises(TimeoutError):
                    await mcp.negotiate(cx, initialize_seconds=0.01)
                await expect(peer, "initialize")
                sent = cx.send_request("initialize", {})
                sent.cancel()
                del sent
                await expect(peer, "initialize")
                await turns()
                assert peer.unread() == []

        run(main())


PROGRAM = """
import sys
from pathlib import Path
import acprt
from acprt import mcp

era = mcp.ProtocolEra(Path(sys.argv[1]).read_text())
server = acprt.Endpoint("server", dialect=mcp.dialect(era, "server"))
mcp.answer_opening(server, info=mcp.Implementation(name="server", version="0"))
acprt.run(server)
"""


class TestMemory:
    def test_command_that_was_legacy_is_greeted_as_such(self, run, tmp_path):
        """No second probe of it, nor a missing one of another command; one that became modern is found all the same."""
        client = client_endpoint(None)
        (tmp_path / "server.py").write_text(PROGRAM)

        async def opened(name: str) -> tuple[mcp.ProtocolEra, int]:
            """The era, and how many requests it took to find it."""
            process = acprt.AgentProcess(sys.executable, str(tmp_path / "server.py"), str(tmp_path / name))
            async with client.connect(process) as cx:
                peer = await mcp.negotiate(cx, probe_seconds=20)
                return peer.era, cx.send_request("any").id - 1

        async def main():
            for name in ("one", "two"):
                (tmp_path / name).write_text(LEGACY.value)
                assert await opened(name) == (LEGACY, 2)
            assert await opened("one") == (LEGACY, 1)
            (tmp_path / "one").write_text(MODERN.value)
            assert await opened("one") == (MODERN, 2)
            assert await opened("one") == (MODERN, 1)

        run(main(), timeout=55)

    def test_servers_that_were_not_started_are_always_asked(self, run):
        """Behind two connections of one endpoint there may be two programs."""
        client = client_endpoint(None)
        legacy, either = server_of(LEGACY), server_of(None)

        async def main():
            async with client.connect(legacy) as one, client.connect(either) as other:
                assert (await mcp.negotiate(one)).era is LEGACY
                assert (await mcp.negotiate(other)).era is MODERN

        run(main())

    def test_memory_is_bounded(self):
        """Command lines may be made up for each start; the latest are kept."""
        commands = LegacyCommands()
        connections: list[Any] = [
            SimpleNamespace(transport=acprt.AgentProcess("server", str(number))) for number in range(100)
        ]
        for cx in connections:
            commands.learn(cx, LEGACY)
        known = [commands.knows(cx) for cx in connections]
        assert known == [False] * 36 + [True] * 64


class TestWithoutProbe:
    @pytest.mark.parametrize("era", [LEGACY, MODERN, None], ids=str)
    def test_client_and_server_of_acprt_find_each_other(self, run, era):
        """In every combination; what the server learns of its client, too."""
        seen: list[Any] = []

        async def main():
            for server_era in {era, None}:
                server = server_of(server_era)

                @server.method("who")
                async def who(params: Any, cx: acprt.Connection) -> dict[str, Any]:
                    seen.append(mcp.client_capabilities(cx))
                    return {}

                client = client_endpoint(era, capabilities={"roots": {}})
                async with client.connect(server) as cx:
                    found = await mcp.negotiate(cx)
                    assert found.era is (era or MODERN)
                    assert found.info is not None
                    assert found.info.name == "server"
                    await cx.send_request("who", {}).block_task()
                    assert seen.pop() == {"roots": {}}

        run(main())

    def test_era_that_is_chosen_stays_chosen(self, run):
        """Whatever is asked, and answered, later."""
        client = client_endpoint(None)

        async def main():
            async with server_for(client) as (cx, peer):
                opening = asyncio.create_task(mcp.negotiate(cx))
                peer.respond(await expect(peer, "server/discover"), DISCOVERED)
                await opening
                late = cx.send_request("initialize", {"protocolVersion": "2024-11-05"})
                peer.respond(await expect(peer, "initialize"), HANDSHAKE)
                await late.block_task()
                assert cx.dialect.name == "mcp 2026-07-28"

        run(main())

    def test_handshake_by_hand_tells_the_era_too(self, run):
        """A dialect reads it off the answer, whoever asked."""
        client = client_endpoint(None)

        async def main():
            async with client.connect(server_of(None)) as cx:
                request = mcp.InitializeRequest(
                    protocol_version="2024-11-05", client_info=mcp.Implementation(name="c", version="0")
                )
                await cx.send_request(request).block_task()
                assert cx.dialect.name == "mcp 2024-11-05"

        run(main())

    def test_misuse_is_named(self, run):
        async def main():
            async with acprt.Endpoint("plain").connect(acprt.Endpoint("other")) as cx:
                with pytest.raises(TypeError, match=r"mcp\.dialect"):
                    await mcp.negotiate(cx)
            far, near = acprt.memory_pair()
            async with server_of(MODERN).connect(near) as cx:
                with pytest.raises(TypeError, match="answer_opening"):
                    await mcp.negotiate(cx)
            await far.aclose()

        run(main())
