"""One prompt: its updates in order, its stop reason, its failures."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from tests.acp.sessions.scripted import (
    asks_permission,
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
    update,
)
from tests.rawpeer import turns


class TestReading:
    """What the reader of a turn sees."""

    def test_updates_are_yielded_in_wire_order_and_the_stop_reason_follows(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("hello")))
                prompt = await received(peer, "session/prompt")
                assert prompt["params"] == {"sessionId": "s", "prompt": [{"type": "text", "text": "hello"}]}
                peer.send(chunk("a"), chunk("b"), chunk("c"), stopped(prompt, "max_tokens"))
                assert texts(await reading) == ["a", "b", "c"]
                assert session.stop_reason == "max_tokens"

        run(main())

    def test_the_reader_meets_the_end_only_behind_all_updates_read_in_one_go(self, run):
        """The response is read from the same bytes as the updates before it, and still comes last."""

        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                first = begin(anext(turn))
                prompt = await received(peer, "session/prompt")
                peer.send(*(chunk(str(n)) for n in range(500)), stopped(prompt))
                await first
                await turns()
                assert turn.stop_reason == "end_turn"  # the answer is here
                assert session.stop_reason is None  # and its reader is not
                assert texts(await read(turn)) == [str(n) for n in range(1, 500)]
                assert session.stop_reason == "end_turn"

        run(main())

    def test_an_update_behind_the_response_belongs_to_the_next_prompt(self, run):
        """The stream belongs to the session: agents send titles and usage after the response."""

        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("one")))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), stopped(prompt), chunk("late"))
                assert texts(await reading) == ["a"]
                reading = begin(read(session.prompt("two")))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("b"), stopped(prompt))
                assert texts(await reading) == ["late", "b"]

        run(main())

    def test_an_unknown_kind_of_update_reaches_the_reader(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(update({"sessionUpdate": "_vendor", "x": 1}), chunk("a"), stopped(prompt))
                unknown, known = await reading
                assert isinstance(unknown, v1.Unknown)
                assert unknown == {"sessionUpdate": "_vendor", "x": 1}
                assert texts([known]) == ["a"]

        run(main())

    def test_text_joins_what_the_agent_says_and_nothing_else(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(session.prompt("go").text())
                prompt = await received(peer, "session/prompt")
                thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
                peer.send(chunk("He"), update(thought), chunk("llo"), stopped(prompt))
                assert await reading == "Hello"
                assert session.stop_reason == "end_turn"

        run(main())

    def test_finished_gives_the_whole_response(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(session.prompt("go").finished())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"))
                peer.respond(prompt["id"], {"stopReason": "refusal", "_meta": {"quota": 1}})
                response = await reading
                assert response.stop_reason == "refusal"
                assert response.meta == {"quota": 1}

        run(main())

    def test_blocks_and_texts_may_be_mixed(self, run):
        async def main():
            async with in_session() as (session, peer):
                link = v1.ResourceLink(name="n", uri="file:///n")
                reading = begin(read(session.prompt(["look:", link])))
                prompt = await received(peer, "session/prompt")
                assert [block["type"] for block in prompt["params"]["prompt"]] == ["text", "resource_link"]
                peer.send(stopped(prompt))
                await reading
                reading = begin(read(session.prompt(link)))
                prompt = await received(peer, "session/prompt")
                assert [block["type"] for block in prompt["params"]["prompt"]] == ["resource_link"]
                peer.send(stopped(prompt))
                await reading

        run(main())

    def test_block_that_no_class_stands_for_is_sent_as_it_is(self, run):
        """An `Unknown` is a dict, and iterating over one would send its keys."""

        async def main():
            async with in_session() as (session, peer):
                hologram: Any = v1.Unknown("type", {"type": "_hologram", "depth": 3})
                for given in (hologram, [hologram]):
                    reading = begin(read(session.prompt(given)))
                    prompt = await received(peer, "session/prompt")
                    assert prompt["params"]["prompt"] == [{"type": "_hologram", "depth": 3}]
                    peer.send(stopped(prompt))
                    await reading

        run(main())

    def test_requests_of_the_session_are_served_by_the_clients_handlers_meanwhile(self, run):
        async def main():
            client = acp.Client("tester")

            @client.method
            async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
                return acp.allow_first(request)

            async with in_session(client) as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(asks_permission("p"))
                assert (await peer.receive())["result"] == {"outcome": {"outcome": "selected", "optionId": "yes"}}
                peer.send(stopped(prompt))
                await reading

        run(main())

    def test_a_request_that_no_handler_serves_is_answered(self, run):
        """Never left: the agent would wait for ever."""

        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(asks_permission("p"), asks_permission("q", "unknown"))
                errors = [await peer.receive(), await peer.receive()]
                assert [(error["id"], error["error"]["code"]) for error in errors] == [("p", -32601), ("q", -32601)]
                peer.send(stopped(prompt))
                await reading

        run(main())

    def test_two_tasks_may_not_read_one_session(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                first = begin(anext(turn))
                prompt = await received(peer, "session/prompt")
                with pytest.raises(RuntimeError, match="two tasks read"):
                    await anext(turn)
                peer.send(chunk("a"), stopped(prompt))
                assert texts([await first]) == ["a"]
                assert await read(turn) == []

        run(main())

    def test_a_turn_that_is_over_stays_over(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                reading = begin(read(turn))
                peer.send(stopped(await received(peer, "session/prompt")))
                await reading
                assert await read(turn) == []
                assert await turn.finished() == v1.PromptResponse(stop_reason="end_turn")

        run(main())

    def test_a_turn_that_is_dropped_unused_says_so(self, run):
        async def main():
            async with in_session() as (session, peer):
                with pytest.warns(RuntimeWarning, match="nothing was sent"):
                    session.prompt("go")  # and forgotten
                assert await peer.settled() == []

        run(main())

    def test_reading_inside_the_dispatch_loop_is_refused(self, run):
        async def main():
            client = acp.Client("tester")
            refused = asyncio.Event()
            sessions: list[acp.Session] = []

            @client.on_receive_notification("_test/go")
            async def go(_params) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked, match="session"):
                    await sessions[0].prompt("x").text()
                with pytest.raises(acprt.DispatchLoopBlocked, match="session/new"):
                    await acp.session(sessions[0].cx)
                refused.set()

            async with in_session(client) as (session, peer):
                sessions.append(session)
                peer.notify("_test/go", {})
                await refused.wait()

        run(main())


class TestFailure:
    """A prompt that fails fails alone."""

    def test_an_error_is_raised_behind_the_updates_and_the_session_goes_on(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                first = begin(anext(turn))
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("a"), failed(prompt, 400, "no credit"))
                assert texts([await first]) == ["a"]
                with pytest.raises(acprt.RpcError) as raised:
                    await anext(turn)
                assert raised.value.code == 400
                assert session.stop_reason is None
                reading = begin(session.prompt("again").text())
                prompt = await received(peer, "session/prompt")
                peer.send(chunk("b"), stopped(prompt))
                assert await reading == "b"

        run(main())

    def test_a_response_that_cannot_be_read_fails_the_prompt_by_name(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(session.prompt("go").text())
                prompt = await received(peer, "session/prompt")
                peer.respond(prompt["id"], {"stop": "here"})
                with pytest.raises(acprt.RpcError, match="stopReason"):
                    await reading
                assert await peer.settled() == []

        run(main())

    def test_end_of_input_in_mid_turn_is_raised_behind_the_updates(self, run):
        async def main():
            async with in_session() as (session, peer):
                turn = session.prompt("go")
                first = begin(anext(turn))
                await received(peer, "session/prompt")
                peer.send(chunk("a"), chunk("b"))
                peer.close_write()
                assert texts([await first, await anext(turn)]) == ["a", "b"]
                with pytest.raises(acprt.RpcError) as raised:
                    await anext(turn)
                assert acprt.is_incoming_transport_closed(raised.value)
                with pytest.raises(acprt.RpcError) as raised:
                    await session.prompt("again").text()
                assert acprt.is_incoming_transport_closed(raised.value)

        run(main())

    def test_closing_the_connection_in_mid_turn_ends_the_reader(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                await received(peer, "session/prompt")
                await session.cx.aclose()
                with pytest.raises(acprt.RpcError) as raised:
                    await reading
                assert raised.value.data["reason"] == "connection_closed"
                with pytest.raises(acprt.RpcError):
                    await session.prompt("again").text()

        run(main())

    def test_a_malformed_update_costs_itself_only(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("go")))
                prompt = await received(peer, "session/prompt")
                peer.send(update({"sessionUpdate": "agent_message_chunk"}))  # without content
                peer.notify("session/update", {"update": {}})
                peer.send(chunk("a"), stopped(prompt))
                assert texts(await reading) == ["a"]

        run(main())


class TestAwaiting:
    def test_a_turn_that_is_awaited_names_the_ways_and_sends_nothing(self, run):
        async def main():
            async with in_session() as (session, peer):
                with pytest.raises(TypeError, match=re.escape("choose what to wait for — `await turn.text()`")):
                    await session.prompt("one")  # type: ignore[misc]  # for who checks no types
                reading = begin(read(session.prompt("two")))
                prompt = await received(peer, "session/prompt")
                assert prompt["params"]["prompt"] == [{"type": "text", "text": "two"}]
                peer.send(stopped(prompt))
                assert await reading == []

        run(main())


class TestOneAtATime:
    """A session works on one prompt; agents disagree about a second one."""

    def test_a_second_prompt_is_refused_and_not_sent(self, run):
        async def main():
            async with in_session() as (session, peer):
                reading = begin(read(session.prompt("one")))
                prompt = await received(peer, "session/prompt")
                with pytest.raises(acp.PromptInFlight, match="session s still works on a prompt"):
                    await session.prompt("two").text()
                assert await peer.settled() == []
                peer.send(chunk("a"), stopped(prompt))
                assert texts(await reading) == ["a"]

        run(main())

    def test_two_sessions_work_side_by_side(self, run):
        """A reader that stands still holds nobody else."""

        async def main():
            async with connected() as (cx, peer):
                one, two = await opened(cx, peer, "one"), await opened(cx, peer, "two")
                slow = one.prompt("x")
                begun = begin(anext(slow))
                first = await received(peer, "session/prompt")
                reading = begin(two.prompt("y").text())
                second = await received(peer, "session/prompt")
                peer.send(chunk("1", "one"), chunk("2", "two"), chunk("3", "one"), stopped(second), chunk("4", "one"))
                assert await reading == "2"
                peer.send(stopped(first))
                assert texts([await begun, *await read(slow)]) == ["1", "3", "4"]

        run(main())
