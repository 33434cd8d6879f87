"""Followed sessions on the wire: how they open, what reaches them, what they send, and how they end."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import pytest

import acprt
from acprt.acp import SessionClosed, SessionOverflow, sessions_v2, v2
from tests.acp.sessions_v2.wire import (
    V2Client,
    chunk,
    expect,
    idle,
    send_updates,
    serve_close,
    serve_opening,
    state,
    text,
    update,
)
from tests.rawpeer import raw_server_for, turns

OPTION = {"type": "boolean", "configId": "fast", "name": "Fast", "currentValue": True}


# -- opening ------------------------------------------------------------------------------------------------------


def test_new_session_sends_absolute_paths_and_gives_the_complete_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd=".", additional_directories=["x"])))
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
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd=".")))
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
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd=".")))
            request = await expect(peer, "session/new")
            peer.respond_error(request["id"], -32602, "no", data={"why": [1]})
            with pytest.raises(acprt.RpcError) as raised:
                await opening
            assert (raised.value.code, raised.value.message, raised.value.data) == (-32602, "no", {"why": [1]})
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd=".")))
            await serve_opening(peer)
            await opening

    run(main())


def test_resume_replays_into_the_projection_before_it_is_there(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.resume_session(cx, "s", cwd="/w", replay=True)))
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
            opening = asyncio.ensure_future(_opened(sessions_v2.resume_session(cx, "s", cwd="/w")))
            assert await serve_opening(peer, "session/resume") == {"sessionId": "s", "cwd": "/w"}
            await opening

    run(main())


def test_failed_resume_is_followed_no_more(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            for _ in range(2):  # the second would be refused here, were the first still followed
                opening = asyncio.ensure_future(_opened(sessions_v2.resume_session(cx, "s", cwd="/w")))
                request = await expect(peer, "session/resume")
                peer.respond_error(request["id"], -32002, "Resource not found", data={"sessionId": "s"})
                with pytest.raises(acprt.RpcError) as raised:
                    await opening
                assert raised.value.code == -32002

    run(main())


def test_session_that_is_open_cannot_be_resumed_beside_itself(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
            await serve_opening(peer)
            await opening
            with pytest.raises(acprt.RpcError, match="session_already_open"):
                await sessions_v2.resume_session(cx, "s", cwd="/w")
            again = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
            await serve_opening(peer)  # an agent that gives the same id twice
            with pytest.raises(acprt.RpcError, match="session_already_open"):
                await again
            assert await peer.settled() == []  # the one that was there stays open

    run(main())


def test_fork_uses_the_id_of_the_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.fork_session(cx, "old", cwd="/w")))
            request = await expect(peer, "session/fork")
            peer.respond(request["id"], {"sessionId": "new"})
            assert request["params"]["sessionId"] == "old"
            assert (await opening).id == "new"

    run(main())


def test_session_nobody_waits_for_any_more_is_closed(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
            request = await expect(peer, "session/new")
            opening.cancel()
            await asyncio.wait([opening])
            assert (await expect(peer, "$/cancel_request"))["params"] == {"requestId": request["id"]}
            peer.respond(request["id"], {"sessionId": "s"})
            assert (await expect(peer, "session/close"))["params"] == {"sessionId": "s"}

    run(main())


def test_session_whose_early_updates_were_too_many_is_closed_and_not_opened(run, caplog) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c", limits=acprt.Limits(session_bytes=300))) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
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


# -- updates ------------------------------------------------------------------------------------------------------


def test_updates_reach_sessions_by_id_and_the_handlers_of_the_user_too(run) -> None:
    """A handler of the user's that claims updates does not blind the session: a turn ends with an update."""
    seen: list[str] = []
    client = V2Client("c")

    @client.on_receive_notification
    async def see(note: v2.UpdateSessionNotification) -> None:
        seen.append(note.session_id)

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
            await serve_opening(peer)
            session = await opening
            send_updates(peer, chunk("mine"))
            send_updates(peer, chunk("another's"), session_id="t")
            await peer.settled()
            assert [message.text for message in session.projection.messages] == ["mine"]
            assert seen == ["s", "t"]

    run(main())


def test_update_that_cannot_be_decoded_does_not_end_anything(run, caplog) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
            await serve_opening(peer)
            session = await opening
            with caplog.at_level(logging.CRITICAL, "acprt.dispatch"):
                send_updates(peer, update("agent_message_chunk", messageId=7), chunk("still here"))
                await peer.settled()
            assert session.projection.messages[0].text == "still here"

    run(main())


# -- commands -----------------------------------------------------------------------------------------------------


def test_config_option_is_sent_by_type_and_the_answer_is_projected(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            for value, kind in ((True, "boolean"), ("opus", "id")):
                setting = asyncio.ensure_future(session.set_config_option("o", value))
                request = await expect(peer, "session/set_config_option")
                assert request["params"] == {"sessionId": "s", "configId": "o", "value": value, "type": kind}
                peer.respond(request["id"], {"configOptions": [OPTION]})
                assert len(await setting) == 1
                assert len(session.projection.config_options) == 1

    run(main())


def test_option_update_behind_the_answer_is_not_overwritten_by_it(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            setting = asyncio.ensure_future(session.set_config_option("o", "x"))
            request = await expect(peer, "session/set_config_option")
            later = {"sessionId": "s", "update": update("config_option_update", configOptions=[])}
            peer.send(
                {"jsonrpc": "2.0", "id": request["id"], "result": {"configOptions": [OPTION]}},
                {"jsonrpc": "2.0", "method": "session/update", "params": later},
            )
            await setting
            await peer.settled()
            assert session.projection.config_options == []

    run(main())


def test_tool_calls_and_terminals_are_cancelled_by_request(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            cancelling = asyncio.ensure_future(session.cancel_tool_call("c"))
            request = await expect(peer, "tool_call/cancel")
            assert request["params"] == {"sessionId": "s", "toolCallId": "c"}
            peer.respond(request["id"], {})
            await cancelling
            cancelling = asyncio.ensure_future(session.cancel_terminal("t"))
            request = await expect(peer, "terminal/cancel")
            assert request["params"] == {"sessionId": "s", "terminalId": "t"}
            peer.respond_error(request["id"], -32602, "Invalid params")
            with pytest.raises(acprt.RpcError):
                await cancelling

    run(main())


def test_cancel_answers_the_sessions_open_permission_requests_and_no_others(run) -> None:
    client = V2Client("c")
    asked = asyncio.Semaphore(0)

    @client.method
    async def permission(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse:
        asked.release()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            session = await _session(cx, peer)
            options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
            peer.request("p", "session/request_permission", {"sessionId": "s", "title": "?", "options": options})
            peer.request("q", "session/request_permission", {"sessionId": "t", "title": "?", "options": options})
            await asked.acquire()
            await asked.acquire()
            session.cancel()
            lines = await peer.settled()
            assert {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}} in lines
            answers = [line for line in lines if "result" in line]
            assert answers == [{"jsonrpc": "2.0", "id": "p", "result": {"outcome": {"outcome": "cancelled"}}}]

    run(main())


def test_until_idle_waits_for_the_end_of_work_whoever_began_it(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            await session.until_idle()
            send_updates(peer, state("running"))
            await peer.settled()
            waiting = asyncio.ensure_future(session.until_idle())
            send_updates(peer, state("requires_action"), state("_odd"))
            await peer.settled()
            assert not waiting.done()
            send_updates(peer, idle())
            await waiting

    run(main())


# -- the end ------------------------------------------------------------------------------------------------------


def test_leaving_the_block_closes_the_session(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):

            async def use() -> Any:
                async with sessions_v2.session(cx, cwd="/w") as session:
                    return session

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            await serve_close(peer)
            session = await using
            assert session.is_closed
            with pytest.raises(SessionClosed):
                session.prompt("more")
            await session.close()  # once is enough
            assert await peer.settled() == []

    run(main())


def test_unknown_session_counts_as_closed_and_other_errors_leave_it_open(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            closing = asyncio.ensure_future(session.close())
            peer.respond_error((await expect(peer, "session/close"))["id"], -32603, "?")
            with pytest.raises(acprt.RpcError):
                await closing
            assert not session.is_closed
            closing = asyncio.ensure_future(session.close())
            peer.respond_error((await expect(peer, "session/close"))["id"], -32002, "?")
            await closing
            assert session.is_closed

    run(main())


def test_block_that_is_left_waits_only_so_long_for_an_agent_that_does_not_close(run, caplog) -> None:
    client = V2Client("c", limits=acprt.Limits(cancel_grace_seconds=0.0))

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):

            async def use() -> None:
                async with sessions_v2.session(cx, cwd="/w"):
                    pass

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            with caplog.at_level(logging.WARNING, "acprt.acp"):
                await using
            assert "was not closed by the agent" in caplog.text

    run(main())


def test_block_left_by_a_cancellation_does_not_wait(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opened = asyncio.Event()

            async def use() -> None:
                async with sessions_v2.session(cx, cwd="/w"):
                    opened.set()
                    await asyncio.Event().wait()

            using = asyncio.ensure_future(use())
            await serve_opening(peer)
            await opened.wait()
            using.cancel()
            await asyncio.wait([using])
            assert using.cancelled()
            await expect(peer, "session/close")

    run(main())


def test_end_of_the_connection_fails_what_waits_and_closes_the_session(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            send_updates(peer, state("running"))
            await peer.settled()
            waiting = asyncio.ensure_future(session.until_idle())
            await turns()
            peer.close_write()
            with pytest.raises(acprt.RpcError) as raised:
                await waiting
            assert acprt.is_incoming_transport_closed(raised.value)
            assert session.is_closed
            await session.aclose()

    run(main())


def test_cancel_and_leaving_on_a_connection_that_is_over_are_no_errors(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            session = await _session(cx, peer)
            assert repr(session) == "<Session s idle>"
            await cx.aclose()
            session.cancel()
            session.abandon()
            await session.aclose()
            assert repr(session) == "<Session s closed>"

    run(main())


def test_waiting_in_the_dispatch_loop_is_refused(run) -> None:
    """Each of these waits for a message that the waiting task would have to bring."""
    client = V2Client("c")
    refused: list[str] = []

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            session = await _session(cx, peer)

            async def handler(note: v2.UpdateSessionNotification) -> None:
                turn = session.prompt("x")
                for wait in (
                    session.until_idle(),
                    session.close(),
                    turn.finished(),
                    turn.accepted(),
                    anext(aiter(turn)),
                ):
                    try:
                        await wait
                    except acprt.DispatchLoopBlocked as error:
                        refused.append(str(error))

            guard = cx.add_dynamic_handler(handler)
            send_updates(peer, state("running"))
            await peer.settled()
            guard.close()
            assert len(refused) == 5

    run(main())


# -- listing and deleting -----------------------------------------------------------------------------------------


def test_list_reads_every_page(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            listing = asyncio.ensure_future(sessions_v2.list_sessions(cx, cwd="/w"))
            first = await expect(peer, "session/list")
            assert first["params"] == {"cwd": "/w"}
            peer.respond(first["id"], {"sessions": [{"sessionId": "a", "cwd": "/w"}], "nextCursor": "2"})
            second = await expect(peer, "session/list")
            assert second["params"] == {"cwd": "/w", "cursor": "2"}
            peer.respond(second["id"], {"sessions": [{"sessionId": "b", "cwd": "/w"}]})
            assert [info.session_id for info in await listing] == ["a", "b"]

    run(main())


def test_list_that_goes_in_circles_is_an_error(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            listing = asyncio.ensure_future(sessions_v2.list_sessions(cx))
            for _ in range(2):
                page = await expect(peer, "session/list")
                peer.respond(page["id"], {"sessions": [], "nextCursor": "again"})
            with pytest.raises(acprt.RpcError, match="cursor_repeated"):
                await listing

    run(main())


def test_deleting_what_is_not_there_is_no_error(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            deleting = asyncio.ensure_future(sessions_v2.delete_session(cx, "x"))
            request = await expect(peer, "session/delete")
            assert request["params"] == {"sessionId": "x"}
            peer.respond_error(request["id"], -32002, "Resource not found")
            await deleting
            deleting = asyncio.ensure_future(sessions_v2.delete_session(cx, "x"))
            peer.respond_error((await expect(peer, "session/delete"))["id"], -32603, "disk")
            with pytest.raises(acprt.RpcError, match="disk"):
                await deleting

    run(main())


class _PeerOfVersion1:
    version = 1


async def _opened(opening: sessions_v2.SessionOpening) -> sessions_v2.Session:
    return await opening


async def _session(cx: acprt.Connection, peer: Any) -> sessions_v2.Session:
    """An open session `s`."""
    opening = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd="/w")))
    await serve_opening(peer)
    return await opening


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
            opening = asyncio.ensure_future(_opened(new if method == "session/new" else kept))
            request = await expect(peer, method)
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}}
            peer.send(answer, {"jsonrpc": "2.0", "method": "now"})
            with pytest.raises(asyncio.CancelledError):
                await opening
            await serve_close(peer)
            again = asyncio.ensure_future(_opened(sessions_v2.session(cx, cwd=".")))
            await serve_opening(peer)
            assert (await again).id == "s"

    run(main())


def test_resume_that_is_given_up_is_closed_when_it_succeeds_all_the_same(run) -> None:
    async def main() -> None:
        async with raw_server_for(V2Client("c")) as (cx, peer):
            opening = asyncio.ensure_future(_opened(sessions_v2.resume_session(cx, "s", cwd=".")))
            request = await expect(peer, "session/resume")
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            await expect(peer, "$/cancel_request")
            peer.respond(request["id"], {})
            await serve_close(peer)

    run(main())
