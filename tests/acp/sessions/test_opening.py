"""Opening a new session: what is sent, what comes too early, what goes wrong."""

from __future__ import annotations

import asyncio
import os

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.sessions.scripted import (
    CLOSES,
    FAST,
    MODES,
    awaited,
    begin,
    chunk,
    connected,
    failed,
    in_session,
    opened,
    read,
    received,
    stopped,
    texts,
)
from tests.rawpeer import raw_server_for


class TestNew:
    """`acp.session`."""

    def test_folders_are_made_absolute(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx, cwd=".", additional_directories=["../x"])))
                request = await received(peer, "session/new")
                assert request["params"] == {
                    "cwd": os.getcwd(),
                    "mcpServers": [],
                    "additionalDirectories": [os.path.abspath("../x")],
                }
                peer.respond(request["id"], {"sessionId": "s"})
                assert (await opening).id == "s"

        run(main())

    def test_modes_and_options_come_from_the_response(self, run):
        async def main():
            async with in_session(result={"modes": MODES, "configOptions": [FAST], "_meta": {"x": 1}}) as (session, _):
                assert session.modes == v1.SessionModeState(
                    current_mode_id="ask",
                    available_modes=[v1.SessionMode(id="ask", name="Ask"), v1.SessionMode(id="code", name="Code")],
                )
                assert [option.id for option in session.config_options or ()] == ["fast"]
                assert session.response.meta == {"x": 1}

        run(main())

    def test_updates_before_the_response_are_read_first(self, run):
        """Agents announce commands of a session before they have named it."""

        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                peer.send(chunk("early"), chunk("nobody's", "other"), chunk("too"))
                peer.send({"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}, chunk("behind"))
                session = await opening
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("answer"), stopped(prompt))
                assert texts(await reading) == ["early", "too", "behind", "answer"]

        run(main())

    def test_updates_in_the_batch_of_the_response_are_not_lost(self, run):
        """The route is in force before the next entry is looked at."""

        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                response = {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}
                peer.send([chunk("before"), response, chunk("behind")])
                session = await opening
                reading = begin(read(session.prompt("go")))
                peer.send(stopped(await received(peer, "session/prompt")))
                assert texts(await reading) == ["before", "behind"]

        run(main())

    def test_two_openings_at_once_keep_their_updates_apart(self, run):
        async def main():
            async with connected() as (cx, peer):
                openings = [begin(awaited(acp.session(cx))), begin(awaited(acp.session(cx)))]
                requests = [await received(peer, "session/new"), await received(peer, "session/new")]
                peer.send(chunk("for b", "b"), chunk("for a", "a"))
                peer.respond(requests[0]["id"], {"sessionId": "a"})
                first = await openings[0]
                peer.send(chunk("b again", "b"))
                peer.respond(requests[1]["id"], {"sessionId": "b"})
                for session, said in ((first, ["for a"]), (await openings[1], ["for b", "b again"])):
                    reading = begin(read(session.prompt("go")))
                    peer.send(stopped(await received(peer, "session/prompt")))
                    assert texts(await reading) == said

        run(main())

    def test_more_early_updates_than_may_be_kept_fail_the_opening_by_name(self, run):
        async def main():
            async with connected(limits=acprt.Limits(session_bytes=1_000), capabilities=CLOSES) as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                peer.send(*(chunk("flood") for _ in range(50)))
                peer.respond(request["id"], {"sessionId": "s"})
                with pytest.raises(acp.SessionOverflow, match=r"Limits\.session_bytes"):
                    await opening
                assert (await received(peer, "session/close"))["params"] == {"sessionId": "s"}  # nobody has it
                await opened(cx, peer, "t")

        run(main())

    def test_early_updates_of_many_unknown_sessions_are_bounded_together(self, run):
        async def main():
            async with connected(limits=acprt.Limits(session_bytes=1_000)) as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                peer.send(*(chunk("flood", f"s{n}") for n in range(50)))
                peer.respond(request["id"], {"sessionId": "s49"})
                with pytest.raises(acp.SessionOverflow):
                    await opening

        run(main())

    def test_updates_of_a_session_nobody_opens_are_forgotten(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                peer.send(chunk("stray", "later"))
                peer.respond(request["id"], {"sessionId": "s"})
                await opening
                later = await opened(cx, peer, "later")
                reading = begin(read(later.prompt("go")))
                peer.send(stopped(await received(peer, "session/prompt")))
                assert await reading == []

        run(main())

    def test_an_error_is_raised_and_the_connection_lives(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                peer.send(failed(await received(peer, "session/new"), -32000, "sign in"))
                with pytest.raises(acprt.RpcError) as raised:
                    await opening
                assert raised.value.code == -32000
                assert (await opened(cx, peer, "s")).id == "s"

        run(main())

    def test_end_of_input_while_it_opens_is_raised(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                await received(peer, "session/new")
                peer.close_write()
                with pytest.raises(acprt.RpcError) as raised:
                    await opening
                assert acprt.is_incoming_transport_closed(raised.value)

        run(main())

    def test_closing_the_connection_while_it_opens_is_raised(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                await received(peer, "session/new")
                await cx.aclose()
                with pytest.raises(acprt.RpcError):
                    await opening
                with pytest.raises(acprt.RpcError):
                    await acp.session(cx)

        run(main())

    def test_an_id_that_is_open_already_is_refused(self, run):
        """Two sessions under one id could not be told apart; the one that was there stays open."""

        async def main():
            async with in_session(capabilities=CLOSES) as (session, peer):
                with pytest.raises(acprt.RpcError, match="session_already_open"):
                    await opened(session.cx, peer, "s")
                with pytest.raises(acprt.RpcError, match="session_already_open"):
                    await acp.load_session(session.cx, "s")
                assert await peer.settled() == []

        run(main())

    def test_a_timeout_cancels_the_request_and_says_so(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.session(cx, timeout=0.01)))
                request = await received(peer, "session/new")
                with pytest.raises(TimeoutError, match="no answer to session/new"):
                    await opening
                assert (await received(peer, "$/cancel_request"))["params"] == {"requestId": request["id"]}

        run(main())

    def test_a_session_that_opens_too_late_is_closed(self, run):
        """Most agents ignore the cancel: what they opened for nobody is given back, where they know how."""

        async def main():
            async with connected(capabilities=CLOSES) as (cx, peer):
                opening = begin(awaited(acp.session(cx)))
                request = await received(peer, "session/new")
                opening.cancel()
                await received(peer, "$/cancel_request")
                peer.respond(request["id"], {"sessionId": "late"})
                assert (await received(peer, "session/close"))["params"] == {"sessionId": "late"}

        run(main())

    @pytest.mark.parametrize("method", ["session/new", "session/load"])
    def test_who_is_cancelled_in_the_moment_of_the_answer_leaves_no_session_behind(self, run, method):
        """The answer was applied, and its reader never hears of it: the agent is told to close, and the id is free."""

        async def main():
            client = acp.Client("tester")

            @client.on_receive_notification("now")
            async def now(_params, _cx: acprt.Connection) -> None:
                opening.cancel()

            async with connected(client, capabilities={**CLOSES, "loadSession": True}) as (cx, peer):
                opening = begin(awaited(acp.session(cx) if method == "session/new" else acp.load_session(cx, "s")))
                request = await received(peer, method)
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}
                peer.send(answer, {"jsonrpc": "2.0", "method": "now"})
                with pytest.raises(asyncio.CancelledError):
                    await opening
                closing = await received(peer, "session/close")
                assert closing["params"] == {"sessionId": "s"}
                peer.respond(closing["id"], {})
                assert (await opened(cx, peer, "s")).id == "s"

        run(main())

    def test_a_whole_request_may_be_given(self, run):
        async def main():
            async with connected() as (cx, peer):
                request = v1.NewSessionRequest(cwd="/w", mcp_servers=[], meta={"x": 1})
                opening = begin(awaited(acp.open_session(cx, request)))
                line = await received(peer, "session/new")
                assert line["params"] == {"cwd": "/w", "mcpServers": [], "_meta": {"x": 1}}
                peer.respond(line["id"], {"sessionId": "s"})
                assert (await opening).id == "s"

        run(main())

    def test_a_connection_of_version_2_is_refused(self, run):
        async def main():
            client = acp.Client.v2("tester")
            async with raw_server_for(client) as (cx, peer):
                handshake = begin(acp.initialize(cx))
                hello = await peer.receive()
                info = {"name": "a", "version": "1"}
                peer.respond(hello["id"], {"protocolVersion": 2, "info": info, "capabilities": {}})
                await handshake
                with pytest.raises(acprt.RpcError, match="sessions_v2"):
                    await acp.session(cx)
                assert await peer.settled() == []

        run(main())

    def test_a_connection_of_no_client_is_refused(self, run):
        """Its updates would go nowhere."""

        async def main():
            async with raw_server_for(acprt.Endpoint("plain")) as (cx, _peer):
                with pytest.raises(TypeError, match=r"acp\.Client"):
                    await acp.session(cx)

        run(main())
