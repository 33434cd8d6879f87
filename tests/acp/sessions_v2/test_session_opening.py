"""How followed sessions open on the wire: new, resumed, forked; and openings that fail or are given up."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import pytest

import acprt
from acprt.acp import SessionOverflow, sessions_v2, v2
from tests.acp.sessions_v2.wire import (
    OPTION,
    V2Client,
    begin,
    chunk,
    expect,
    send_updates,
    serve_close,
    serve_opening,
    state,
    text,
    update,
)
from tests.rawpeer import raw_server_for


def test_new_session_sends_absolute_paths_and_gives_the_complete_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd=".", additional_directories=["x"]))
            params = await serve_opening(peer, configOptions=[OPTION], _meta={"k": 1})
            session = await opening
            assert params == {"cwd": os.getcwd(), "additionalDirectories": [os.path.abspath("x")]}
            assert session.id == "s"
            assert isinstance(session.response, v2.NewSessionResponse)
            assert session.response.meta == {"k": 1}
            assert len(session.projection.config_options) == 1

    run(main())


def test_opening_sends_nothing_before_it_is_used(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            sessions_v2.session(cx, cwd=".")
            assert await peer.settled() == []

    run(main())


def test_updates_before_and_right_behind_the_answer_are_applied_in_order(run) -> None:
    """New sessions are announced while they are set up; nothing is parked and nothing is overwritten by the answer."""

    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd="."))
            request = await expect(peer, "session/new")
            send_updates(peer, state("running"), chunk("one"))
            peer.send(
                {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}},
                {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": chunk(" two")}},
            )
            session = await opening
            await peer.settled()
            assert session.projection.messages[0].text == "one two"
            assert session.projection.state == "running"

    run(main())


def test_failed_opening_raises_the_agents_error_and_the_connection_lives(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd="."))
            request = await expect(peer, "session/new")
            peer.respond_error(request["id"], -32602, "no", data={"why": [1]})
            with pytest.raises(acprt.RpcError) as raised:
                await opening
            assert (raised.value.code, raised.value.message, raised.value.data) == (-32602, "no", {"why": [1]})
            opening = begin(sessions_v2.session(cx, cwd="."))
            await serve_opening(peer)
            await opening

    run(main())


def test_resume_replays_into_the_projection_before_it_is_there(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.resume_session(cx, "s", cwd="/w", replay=True))
            request = await expect(peer, "session/resume")
            assert request["params"] == {"sessionId": "s", "cwd": "/w", "replayFrom": {"type": "start"}}
            send_updates(
                peer, update("user_message", messageId="u", content=[text("hi")]), chunk("ho"), state("running")
            )
            peer.respond(request["id"], {"configOptions": [OPTION]})
            session = await opening
            assert [message.text for message in session.projection.messages] == ["hi", "ho"]
            assert session.projection.is_busy
            assert isinstance(session.response, v2.ResumeSessionResponse)
            assert len(session.projection.config_options) == 1

    run(main())


def test_resume_without_replay_sends_no_cursor(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.resume_session(cx, "s", cwd="/w"))
            assert await serve_opening(peer, "session/resume") == {"sessionId": "s", "cwd": "/w"}
            await opening

    run(main())


def test_failed_resume_is_followed_no_more(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            for _ in range(2):  # the second would be refused here, were the first still followed
                opening = begin(sessions_v2.resume_session(cx, "s", cwd="/w"))
                request = await expect(peer, "session/resume")
                peer.respond_error(request["id"], -32002, "Resource not found", data={"sessionId": "s"})
                with pytest.raises(acprt.RpcError) as raised:
                    await opening
                assert raised.value.code == -32002

    run(main())


def test_session_that_is_open_cannot_be_resumed_beside_itself(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd="/w"))
            await serve_opening(peer)
            await opening
            with pytest.raises(acprt.RpcError, match="session_already_open"):
                await sessions_v2.resume_session(cx, "s", cwd="/w")
            again = begin(sessions_v2.session(cx, cwd="/w"))
            await serve_opening(peer)  # an agent that gives the same id twice
            with pytest.raises(acprt.RpcError, match="session_already_open"):
                await again
            assert await peer.settled() == []  # the one that was there stays open

    run(main())


def test_fork_uses_the_id_of_the_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.fork_session(cx, "old", cwd="/w"))
            request = await expect(peer, "session/fork")
            peer.respond(request["id"], {"sessionId": "new"})
            assert request["params"]["sessionId"] == "old"
            assert (await opening).id == "new"

    run(main())


def test_session_nobody_waits_for_any_more_is_closed(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd="/w"))
            request = await expect(peer, "session/new")
            opening.cancel()
            await asyncio.wait([opening])
            assert (await expect(peer, "$/cancel_request"))["params"] == {"requestId": request["id"]}
            peer.respond(request["id"], {"sessionId": "s"})
            assert (await expect(peer, "session/close"))["params"] == {"sessionId": "s"}

    run(main())


@pytest.mark.parametrize("method", ["session/new", "session/resume"])
def test_who_is_cancelled_in_the_moment_of_the_answer_leaves_no_session_behind(run, method: str) -> None:
    """The answer was applied, and its reader never hears of it: the agent is told to close, and the id is free."""

    async def main() -> None:
        client = V2Client("c")

        @client.on_receive_notification("now")
        async def now(_params: Any, _cx: acprt.Connection) -> None:
            opening.cancel()

        async with raw_server_for(client) as (cx, peer):
            new, kept = sessions_v2.session(cx, cwd="."), sessions_v2.resume_session(cx, "s", cwd=".")
            opening = begin(new if method == "session/new" else kept)
            request = await expect(peer, method)
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}
            peer.send(answer, {"jsonrpc": "2.0", "method": "now"})
            with pytest.raises(asyncio.CancelledError):
                await opening
            await serve_close(peer)
            again = begin(sessions_v2.session(cx, cwd="."))
            await serve_opening(peer)
            assert (await again).id == "s"

    run(main())


def test_resume_that_is_given_up_is_closed_when_it_succeeds_all_the_same(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = begin(sessions_v2.resume_session(cx, "s", cwd="."))
            request = await expect(peer, "session/resume")
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            await expect(peer, "$/cancel_request")
            peer.respond(request["id"], {})
            await serve_close(peer)

    run(main())


def test_session_whose_early_updates_were_too_many_is_closed_and_not_opened(run, caplog) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c", limits=acprt.Limits(session_bytes=300))) as (cx, peer):
            opening = begin(sessions_v2.session(cx, cwd="/w"))
            request = await expect(peer, "session/new")
            with caplog.at_level(logging.CRITICAL, "acprt.acp"):
                send_updates(peer, *(chunk("x" * 50) for _ in range(9)))
                peer.respond(request["id"], {"sessionId": "s"})
                with pytest.raises(SessionOverflow):
                    await opening
            assert (await expect(peer, "session/close"))["params"] == {"sessionId": "s"}

    run(main())


def test_opening_on_a_connection_of_version_1_names_the_right_door(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            cx.peer = _PeerOfVersion1()
            with pytest.raises(acprt.RpcError, match=r"use acp\.session\(\)"):
                await sessions_v2.session(cx, cwd="/w")
            assert await peer.settled() == []

    run(main())


class _PeerOfVersion1:
    version = 1
