"""Sessions that were there before: loaded, resumed, forked, listed, deleted."""

from __future__ import annotations

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.sessions.scripted import (
    MODES,
    awaited,
    begin,
    chunk,
    connected,
    current_mode,
    in_session,
    received,
    stopped,
    texts,
    update,
)


class TestEarlier:
    """Sessions that exist already."""

    def test_load_replays_the_history_apart_from_what_follows(self, run):
        async def main():
            async with connected(capabilities={"loadSession": True}) as (cx, peer):
                opening = begin(awaited(acp.load_session(cx, "old", cwd="/w")))
                request = await received(peer, "session/load")
                assert request["params"] == {"sessionId": "old", "cwd": "/w", "mcpServers": []}
                said = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}}
                peer.send(update(said, "old"), chunk("hello", "old"))
                peer.send({"jsonrpc": "2.0", "id": request["id"], "result": None}, chunk("new", "old"))
                session = await opening
                assert (session.id, texts(session.replay)) == ("old", ["hi", "hello"])
                assert isinstance(session.replay[0], v1.UserMessageChunk)
                reading = begin(session.prompt("go").text())
                peer.send(stopped(await received(peer, "session/prompt")))
                assert await reading == "new"

        run(main())

    def test_resume_takes_modes_from_the_response(self, run):
        async def main():
            async with connected() as (cx, peer):
                opening = begin(awaited(acp.resume_session(cx, "old", cwd="/w")))
                request = await received(peer, "session/resume")
                assert request["params"] == {"sessionId": "old", "cwd": "/w"}
                peer.respond(request["id"], {"modes": MODES})
                session = await opening
                assert session.id == "old"
                assert current_mode(session) == "ask"
                assert session.replay == ()

        run(main())

    def test_fork_is_another_session(self, run):
        async def main():
            async with in_session(unstable=True) as (session, peer):
                opening = begin(awaited(acp.fork_session(session.cx, "s", cwd="/w")))
                request = await received(peer, "session/fork")
                assert request["params"] == {"sessionId": "s", "cwd": "/w"}
                peer.respond(request["id"], {"sessionId": "forked"})
                forked = await opening
                assert forked.id == "forked"
                reading = begin(forked.prompt("go").text())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("mine", "forked"), chunk("not mine"), stopped(prompt))
                assert await reading == "mine"

        run(main())

    def test_fork_needs_unstable(self, run):
        async def main():
            async with in_session() as (session, peer):
                with pytest.raises(acprt.RpcError, match="unstable"):
                    await acp.fork_session(session.cx, "s")
                assert await peer.settled() == []

        run(main())

    def test_list_reads_every_page(self, run):
        async def main():
            async with connected() as (cx, peer):
                listing = begin(acp.list_sessions(cx, cwd="/w"))
                request = await received(peer, "session/list")
                assert request["params"] == {"cwd": "/w"}
                page = {"sessions": [{"sessionId": "a", "cwd": "/w"}], "nextCursor": "2"}
                peer.respond(request["id"], page)
                request = await received(peer, "session/list")
                assert request["params"] == {"cwd": "/w", "cursor": "2"}
                peer.respond(request["id"], {"sessions": [{"sessionId": "b", "cwd": "/w", "title": "B"}]})
                assert [(each.session_id, each.title) for each in await listing] == [("a", None), ("b", "B")]

        run(main())

    def test_pages_that_go_in_circles_are_an_error(self, run):
        async def main():
            async with connected() as (cx, peer):
                listing = begin(acp.list_sessions(cx))
                for _ in range(2):
                    request = await received(peer, "session/list")
                    peer.respond(request["id"], {"sessions": [], "nextCursor": "same"})
                with pytest.raises(acprt.RpcError, match="cursor_repeated"):
                    await listing

        run(main())

    def test_delete_asks_and_waits(self, run):
        async def main():
            async with connected() as (cx, peer):
                deleting = begin(acp.delete_session(cx, "old"))
                request = await received(peer, "session/delete")
                assert request["params"] == {"sessionId": "old"}
                peer.respond(request["id"], {})
                assert await deleting is None

        run(main())
