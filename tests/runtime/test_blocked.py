"""Waits inside the dispatch loop for what only the loop can bring: refused at once, with the way out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for
from tests.runtime.ordered import Note, answer, note

Blocking = Callable[[acprt.Connection], Any]


BLOCKING: dict[str, Blocking] = {
    "block_task": lambda cx: cx.send_request("inner").block_task(),
    "block_task with a timeout": lambda cx: cx.send_request("inner").block_task(timeout=5),
    "mapped": lambda cx: cx.send_request("inner").map(str).block_task(),
    "drain": lambda cx: cx.drain(),
    "incoming_closed": lambda cx: cx.incoming_closed(),
}


class TestDispatchLoopBlocked:
    """A wait inside the loop for what only the loop can bring is refused at once (DEC-17, DEC-18)."""

    @pytest.mark.parametrize("wait", BLOCKING)
    @pytest.mark.parametrize("place", ["request", "notification", "dispatch", "dynamic"])
    def test_it_is_raised_where_the_wait_is(self, run, place, wait):
        """DL-09 diverges (PY-21): no deadlock; the error names the wait, the handler and the way out."""

        async def main():
            endpoint = acprt.Endpoint()
            caught: list[str] = []

            async def block(cx: acprt.Connection) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked) as blocked:
                    await BLOCKING[wait](cx)
                caught.append(str(blocked.value))

            async def any_message(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
                if dispatch.method != "work":
                    return acprt.Handled.no(dispatch)
                await block(cx)
                return None

            if place == "request":

                @endpoint.on_receive_request("work")
                async def work(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                    await block(cx)
                    responder.respond(None)

            elif place == "notification":

                @endpoint.on_receive_notification("work")
                async def work_note(params: Any, cx: acprt.Connection) -> None:
                    await block(cx)

            elif place == "dispatch":
                endpoint.on_receive_dispatch(any_message)

            async with raw_server_for(endpoint) as (cx, peer):
                if place == "dynamic":
                    cx.add_dynamic_handler(any_message).detach()
                if place == "request":
                    peer.request(1, "work")
                else:
                    peer.notify("work")
                await peer.settled()
                assert len(caught) == 1
                name = "any_message" if place in ("dispatch", "dynamic") else "work"
                assert name in caught[0], "the handler is named"
                assert "cx.spawn(…)" in caught[0], "the way out is named"
                if "block" in wait or wait == "mapped":
                    assert "inner (id 1)" in caught[0]

        run(main())

    def test_handler_that_lets_it_out_answers_and_cancels(self, run, caplog):
        """DL-09, DEC-17: the request is answered -32603, its text stays here, the inner request is cancelled."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(await cx.send_request("inner").block_task())

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                lines = [await peer.receive() for _ in range(3)]
                assert [line.get("method") for line in lines] == ["inner", "$/cancel_request", None]
                assert lines[2]["error"] == {"code": -32603, "message": "Internal error"}
                await peer.settled()

        run(main())
        assert "DispatchLoopBlocked" in caplog.text

    @pytest.mark.parametrize("wait", ["drain", "incoming_closed"])
    def test_close_callback_is_in_the_loop_too(self, run, wait):
        """DEC-18: it would wait for its own end."""

        async def main():
            endpoint = acprt.Endpoint()
            caught: list[str] = []

            @endpoint.on_close
            async def closed(cx: acprt.Connection) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked) as blocked:
                    await BLOCKING[wait](cx)
                caught.append(str(blocked.value))

            async with raw_client_of(endpoint) as peer:
                peer.close_write()
                await peer.at_eof.wait()
            assert "a close callback" in caught[0]

        run(main())

    def test_answer_that_is_there_may_be_taken(self, run):
        """DEC-17: nothing is waited for, so nothing is refused; a request that failed at once tells why."""

        async def main():
            endpoint = acprt.Endpoint()
            got: list[Any] = []
            kept: list[acprt.SentRequest[Any]] = []

            @endpoint.on_receive_notification
            async def take(note: Note, cx: acprt.Connection) -> None:
                got.append(await kept.pop().block_task())
                with pytest.raises(acprt.RpcError, match="JSON-RPC params must be an object or array"):
                    await cx.send_request("work", 5).block_task()

            async with raw_server_for(endpoint) as (cx, peer):
                kept.append(cx.send_request("work"))
                peer.send(answer(1, "there"), note(""))
                await peer.settled()
                assert got == ["there"]

        run(main())

    def test_other_connection_may_be_waited_for(self, run):
        """DEC-17: only the own loop is the problem; a proxy's handler may wait on the connection behind it."""

        async def main():
            behind = acprt.Endpoint("behind")

            @behind.method("inner")
            async def inner(params: Any) -> str:
                return "from behind"

            async with acprt.Endpoint("near").connect(behind) as behind_cx:
                endpoint = acprt.Endpoint()

                @endpoint.on_receive_request("work")
                async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                    responder.respond(await behind_cx.send_request("inner").block_task())

                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "work")
                    assert (await peer.receive())["result"] == "from behind"

        run(main())

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="wait_for runs its awaitable in a task of its own there")
    def test_wait_for_is_seen_where_it_runs_in_the_same_task(self, run):
        """DEC-17: on 3.12 and later `asyncio.wait_for` is no hiding place."""

        async def main():
            endpoint = acprt.Endpoint()
            caught: list[Any] = []

            @endpoint.on_receive_notification
            async def wait(note: Note, cx: acprt.Connection) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked) as blocked:
                    await asyncio.wait_for(cx.send_request("inner").block_task(), 5)
                caught.append(blocked.value)

            async with raw_client_of(endpoint) as peer:
                peer.send(note(""))
                await peer.settled()
                assert len(caught) == 1

        run(main())

    def test_timeout_block_is_seen(self, run):
        """DEC-17: `asyncio.timeout` stays in the task, so the wait is refused at once instead of timing out."""

        async def main():
            endpoint = acprt.Endpoint()
            caught: list[Any] = []

            @endpoint.on_receive_notification
            async def wait(note: Note, cx: acprt.Connection) -> None:
                with pytest.raises(acprt.DispatchLoopBlocked) as blocked:
                    async with asyncio.timeout(5):
                        await cx.send_request("inner").block_task()
                caught.append(blocked.value)

            async with raw_client_of(endpoint) as peer:
                peer.send(note(""))
                await peer.settled()
                assert len(caught) == 1

        run(main())

    def test_the_ways_out_work(self, run):
        """DL-09: a callback, a spawned task and a `method` handler all may wait for the peer."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("callback")
            async def by_callback(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                async def callback(result: Any) -> None:
                    responder.respond_with_result(result)

                cx.send_request("inner").on_receiving_result(callback)

            @endpoint.on_receive_request("spawn")
            async def by_spawn(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                async def wait() -> None:
                    responder.respond(await cx.send_request("inner").block_task())

                cx.spawn(wait())

            @endpoint.method("method")
            async def by_method(params: Any, cx: acprt.Connection) -> Any:
                return await cx.send_request("inner").block_task()

            async with raw_client_of(endpoint) as peer:
                for way in ("callback", "spawn", "method"):
                    peer.request(way, way)
                    inner = await peer.receive()
                    assert inner["method"] == "inner"
                    peer.send(answer(inner["id"], f"by {way}"))
                    assert await peer.receive() == {"jsonrpc": "2.0", "id": way, "result": f"by {way}"}

        run(main())

    @pytest.mark.parametrize("place", ["ordered", "method", "spawned", "callback", "close callback"])
    def test_aclose_from_inside_starts_closing_and_returns(self, run, place):
        """DEC-18: a task of the connection does not wait for its own end."""

        async def main():
            endpoint = acprt.Endpoint()
            returned = asyncio.Event()

            async def close(cx: acprt.Connection) -> None:
                await cx.aclose()
                returned.set()

            @endpoint.on_receive_notification
            async def ordered(note: Note, cx: acprt.Connection) -> None:
                await close(cx)

            @endpoint.method("method")
            async def method(params: Any, cx: acprt.Connection) -> None:
                await close(cx)

            @endpoint.on_close
            async def closed(cx: acprt.Connection) -> None:
                if place == "close callback":
                    await close(cx)

            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await endpoint.open(near)
            if place == "ordered":
                peer.send(note(""))
            elif place == "method":
                peer.request(1, "method")
            elif place == "spawned":
                cx.spawn(close(cx))
            elif place == "callback":

                async def callback(result: Any) -> None:
                    await close(cx)

                cx.send_request("work").on_receiving_result(callback)
                peer.send(answer(1))
            else:
                peer.close_write()
            await returned.wait()
            await cx.aclose()
            assert cx.status().state == "ended"
            await peer.aclose()

        run(main())
