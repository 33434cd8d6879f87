"""Followed sessions on the wire: what reaches them, and what they send."""

from __future__ import annotations

import asyncio
import logging

import pytest

import acprt
from acprt.acp import sessions_v2, v2
from tests.acp.sessions_v2.wire import (
    OPTION,
    V2Client,
    begin,
    chunk,
    expect,
    idle,
    open_session,
    send_updates,
    serve_opening,
    state,
    update,
)
from tests.rawpeer import raw_server_for

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
            opening = begin(sessions_v2.session(cx, cwd="/w"))
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
            opening = begin(sessions_v2.session(cx, cwd="/w"))
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
            session = await open_session(cx, peer)
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
            session = await open_session(cx, peer)
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
            session = await open_session(cx, peer)
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
            session = await open_session(cx, peer)
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
            session = await open_session(cx, peer)
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


def test_waiting_in_the_dispatch_loop_is_refused(run) -> None:
    """Each of these waits for a message that the waiting task would have to bring."""
    client = V2Client("c")
    refused: list[str] = []

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            session = await open_session(cx, peer)

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
