"""Updates of a session and handlers of the client for the same notification."""

from __future__ import annotations

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.sessions.scripted import (
    begin,
    chunk,
    in_session,
    read,
    received,
    stopped,
    texts,
)


class TestOrder:
    """A client's own handlers come before its sessions."""

    def test_a_handler_that_passes_updates_on_sees_all_and_takes_none(self, run):
        async def main():
            client = acp.Client("tester")
            seen: list[str] = []

            @client.on_receive_notification
            async def watch(note: v1.SessionNotification, cx: acprt.Connection) -> acprt.Handled:
                seen.append(note.session_id)
                return acprt.Handled.no(note)

            async with in_session(client) as (session, peer):
                reading = begin(session.prompt("go").text())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("b", "other"), stopped(prompt))
                assert await reading == "a"
                assert seen == ["s", "other"]

        run(main())

    def test_a_handler_that_claims_updates_keeps_them_from_the_session(self, run):
        async def main():
            client = acp.Client("tester")
            claimed: list[str] = []

            @client.on_receive_notification
            async def claim(note: v1.SessionNotification, cx: acprt.Connection) -> None:
                claimed.extend(texts([note.update]))

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("b"), stopped(prompt))
                assert await reading == []
                assert claimed == ["a", "b"]

        run(main())
