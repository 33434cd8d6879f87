"""A turn that is cancelled: the agent is told once, and open permission requests are answered."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.sessions.scripted import (
    asks_permission,
    begin,
    chunk,
    in_session,
    read,
    received,
    stopped,
    texts,
)


class TestCancelling:
    """`cancel()` while somebody reads."""

    def test_cancel_is_sent_once_and_the_turn_is_read_to_its_stop_reason(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                session.cancel()
                session.cancel()
                assert (await received(peer, "session/cancel"))["params"] == {"sessionId": "s"}
                assert await peer.settled() == []
                peer.send(chunk("last words"), stopped(prompt, "cancelled"))
                assert texts(await reading) == ["last words"]
                assert session.stop_reason == "cancelled"
                session.cancel()  # nothing runs
                assert await peer.settled() == []

        run(main())

    def test_open_permission_requests_are_answered_as_cancelled(self, run):
        """Those of other sessions stay open."""

        async def main():
            client = acp.Client("tester")
            stopped_handlers: list[str] = []

            @client.method
            async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                try:
                    return await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    stopped_handlers.append(request.session_id)
                    raise

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(asks_permission("mine"), asks_permission("other's", "t"))
                await peer.settled()
                session.cancel()
                lines = [await peer.receive(), await peer.receive()]
                assert [line["method"] for line in lines if "method" in line] == ["session/cancel"]
                assert [line for line in lines if "id" in line] == [
                    {"jsonrpc": "2.0", "id": "mine", "result": {"outcome": {"outcome": "cancelled"}}}
                ]
                peer.send(stopped(prompt, "cancelled"))
                await reading
                assert stopped_handlers == ["s"]

        run(main())

    def test_a_permission_request_kept_by_its_handler_is_answered_too(self, run):
        async def main():
            client = acp.Client("tester")
            kept: list[acprt.Responder] = []

            @client.on_receive_request
            async def permission(request: v1.RequestPermissionRequest, responder, cx) -> None:
                kept.append(responder)

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(asks_permission("p"))
                await peer.settled()
                session.cancel()
                await received(peer, "session/cancel")
                assert (await peer.receive())["result"] == {"outcome": {"outcome": "cancelled"}}
                assert kept[0].cancellation.is_cancelled
                kept[0].respond({"outcome": {"outcome": "selected", "optionId": "yes"}})  # too late
                assert await peer.settled() == []
                peer.send(stopped(prompt, "cancelled"))
                await reading

        run(main())

    def test_a_permission_request_that_meets_its_cancel_is_answered_too(self, run):
        """The agent asked before it saw the cancel; nobody is bothered with it."""

        async def main():
            client = acp.Client("tester")
            asked: list[str] = []

            @client.method
            async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                asked.append(request.session_id)
                return acp.allow_first(request)

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                session.cancel()
                await received(peer, "session/cancel")
                peer.send(asks_permission("late"), asks_permission("other's", "t"))
                answers = {line["id"]: line["result"]["outcome"] for line in (await peer.settled())}
                assert answers["late"] == {"outcome": "cancelled"}
                assert answers["other's"]["outcome"] == "selected"
                peer.send(stopped(prompt, "cancelled"))
                await reading
                peer.send(asks_permission("next"))
                await peer.receive()
                assert asked == ["t", "s"]

        run(main())

    def test_a_permission_request_that_meets_the_end_of_its_session_is_answered_too(self, run):
        """The reader is gone and with it the session; the agent does not know yet. A later life of the session asks."""

        async def main():
            client = acp.Client("tester")
            asked: list[str] = []

            @client.method
            async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                asked.append(request.session_id)
                return acp.allow_first(request)

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                session.abandon()
                await received(peer, "session/cancel")
                peer.send(asks_permission("p"), stopped(prompt, "cancelled"), asks_permission("q"))
                assert (await peer.receive())["result"] == {"outcome": {"outcome": "cancelled"}}
                assert (await peer.receive())["result"]["outcome"]["optionId"] == "yes"
                assert asked == ["s"]
                with pytest.raises(acp.SessionClosed):
                    await reading

        run(main())

    def test_a_turn_cancelled_before_it_is_sent_is_not_sent(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                turn.cancel()
                turn.cancel()
                assert await read(turn) == []
                with pytest.raises(RuntimeError, match="before it was sent"):
                    await turn.finished()
                assert await peer.settled() == []

        run(main())
