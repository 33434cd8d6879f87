"""The stateless handle: what it sends, and that it keeps nothing."""

from __future__ import annotations

import asyncio

import pytest

import acprt
from acprt.acp import v2
from acprt.acp.sessions_v2 import OpenedSession, SessionHandle, open_session
from tests.acp.sessions_v2.wire import expect, send_updates, state, text
from tests.rawpeer import raw_server_for


def test_new_session_gives_handle_and_complete_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(acprt.Endpoint("c")) as (cx, peer):
            opening = asyncio.ensure_future(open_session(cx, v2.NewSessionRequest(cwd="/w")).block_task())
            request = await expect(peer, "session/new")
            peer.respond(request["id"], {"sessionId": "s", "_meta": {"k": 1}})
            opened: OpenedSession = await opening
            assert opened.session == SessionHandle(cx, "s")
            assert opened.response.meta == {"k": 1}

    run(main())


def test_resumed_session_has_the_id_of_the_request_and_a_forked_one_that_of_the_answer(run) -> None:
    async def main() -> None:
        async with raw_server_for(acprt.Endpoint("c")) as (cx, peer):
            sent = open_session(cx, v2.ResumeSessionRequest(session_id="s", cwd="/w"))
            peer.respond((await expect(peer, "session/resume"))["id"], {})
            assert (await sent.block_task()).session.id == "s"
            sent = open_session(cx, v2.ForkSessionRequest(session_id="s", cwd="/w"))
            peer.respond((await expect(peer, "session/fork"))["id"], {"sessionId": "f"})
            assert (await sent.block_task()).session.id == "f"

    run(main())


def test_failed_opening_keeps_the_error_as_it_is(run) -> None:
    async def main() -> None:
        async with raw_server_for(acprt.Endpoint("c")) as (cx, peer):
            sent = open_session(cx, v2.NewSessionRequest(cwd="/w"))
            peer.respond_error((await expect(peer, "session/new"))["id"], -32000, "Log in", data=[1])
            with pytest.raises(acprt.RpcError) as raised:
                await sent.block_task()
            assert (raised.value.code, raised.value.data) == (-32000, [1])
            assert not cx.is_ending

    run(main())


def test_every_command_is_one_message(run) -> None:
    async def main() -> None:
        async with raw_server_for(acprt.Endpoint("c")) as (cx, peer):
            handle = SessionHandle(cx, "s")
            handle.send_prompt("hi", meta={"k": 1}).detach()
            handle.set_config_option("o", True).detach()
            handle.set_config_option("o", "v").detach()
            handle.cancel_tool_call("c").detach()
            handle.cancel_terminal("t").detach()
            handle.cancel()
            handle.close().detach()
            lines = await peer.settled()
            assert [(line["method"], line["params"]) for line in lines] == [
                ("session/prompt", {"sessionId": "s", "prompt": [text("hi")], "_meta": {"k": 1}}),
                ("session/set_config_option", {"sessionId": "s", "configId": "o", "type": "boolean", "value": True}),
                ("session/set_config_option", {"sessionId": "s", "configId": "o", "type": "id", "value": "v"}),
                ("tool_call/cancel", {"sessionId": "s", "toolCallId": "c"}),
                ("terminal/cancel", {"sessionId": "s", "terminalId": "t"}),
                ("session/cancel", {"sessionId": "s"}),
                ("session/close", {"sessionId": "s"}),
            ]

    run(main())


def test_dropping_a_handle_does_not_touch_the_updates(run) -> None:
    client = acprt.Endpoint("c")
    seen: list[str] = []

    @client.on_receive_notification
    async def see(note: v2.UpdateSessionNotification) -> None:
        assert isinstance(note.update, v2.StateUpdate)
        seen.append(note.update.state)

    async def main() -> None:
        async with raw_server_for(client) as (cx, peer):
            handle = SessionHandle(cx, "s")
            copy = SessionHandle(cx, "s")
            assert handle == copy
            del handle
            send_updates(peer, state("running"))
            copy.send_prompt("x").detach()
            await peer.settled()
            assert seen == ["running"]

    run(main())
