"""The barrier: an ordered callback holds the next message until it is done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for, turns
from tests.runtime.ordered import Held, Note, answer, note, noting, until_it_ends, upstream_responder


class TestBarrier:
    """A callback chosen before its response is dispatched holds the next message."""

    def test_next_message_waits_for_the_callback(self, run):
        """OB-01, OB-03: nothing behind the response is dispatched before the callback is done."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1, 7), note("after"))
                await held.entered.wait()
                await turns()
                assert log == ["callback starts"]
                assert cx.status().inbox.count > 0, "the note was read and waits"
                held.release.set()
                await turns()
                assert log == ["callback starts", "callback ends", "after"]
                assert held.result == acprt.Ok(7)

        run(main())

    def test_members_of_the_same_batch_wait_too(self, run):
        """OB-03: the barrier holds between two members of one batch."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send([note("before"), answer(1), note("after")])
                await held.entered.wait()
                await turns()
                assert log == ["before", "callback starts"]
                held.release.set()
                await turns()
                assert log == ["before", "callback starts", "callback ends", "after"]

        run(main())

    def test_error_response_is_a_result_under_the_barrier(self, run):
        """OB-01: an error answer is no exception."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                error = {"code": 7, "message": "no"}
                peer.send({"jsonrpc": "2.0", "id": 1, "error": error}, note("after"))
                await held.entered.wait()
                await turns()
                assert log == ["callback starts"]
                assert held.result == acprt.Err(acprt.RpcError(7, "no"))
                held.release.set()

        run(main())

    def test_ok_callback_is_ordered(self, run):
        """OB-02: `on_receiving_ok_result` is one of the ordered ways."""

        async def main():
            log: list[str] = []
            async with (
                upstream_responder(acprt.Endpoint("upstream")) as (responder, up),
                raw_server_for(noting(log)) as (cx, peer),
            ):
                held = Held(log)

                async def callback(value: Any, responder: acprt.Responder[Any]) -> None:
                    await held(acprt.Ok(value))
                    responder.respond(value)

                cx.send_request("work").on_receiving_ok_result(responder, callback)
                del responder
                peer.send(answer(1, 5), note("after"))
                await held.entered.wait()
                await turns()
                assert log == ["callback starts"]
                held.release.set()
                assert (await up.receive())["result"] == 5
                await turns()
                assert log == ["callback starts", "callback ends", "after"]

        run(main())

    @pytest.mark.parametrize("outcome", [{"result": 5}, {"error": {"code": 1, "message": "m"}}])
    def test_forwarding_is_ordered(self, run, outcome):
        """OB-02: `forward_response_to` has answered upstream before the next message is dispatched."""

        async def main():
            upstream = acprt.Endpoint("upstream")
            upstream_cx: list[acprt.Connection] = []

            @upstream.with_spawned
            async def started(cx: acprt.Connection) -> None:
                upstream_cx.append(cx)

            downstream = acprt.Endpoint("downstream")

            @downstream.on_receive_notification
            async def on_note(note: Note) -> None:
                upstream_cx[0].send_notification("marker")

            async with upstream_responder(upstream) as (responder, up), raw_server_for(downstream) as (cx, peer):
                cx.send_request("work").forward_response_to(responder)
                peer.send({"jsonrpc": "2.0", "id": 1} | outcome, note("after"))
                first, second = await up.receive(), await up.receive()
                assert first["id"] == "up-1"
                assert second["method"] == "marker"

        run(main())

    def test_callback_runs_after_the_walk_that_routed(self, run):
        """OB-04 diverges by DEC-8: the callback does not overlap with the interceptor, it follows it."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_receive_dispatch
            async def intercept(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled | None:
                if dispatch.router is None:
                    return acprt.Handled.no(dispatch)
                log.append("routed")
                dispatch.router.route("mine")
                await turns()
                log.append("intercept ends")
                return None

            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                held.release.set()
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1), note("after"))
                await held.entered.wait()
                await turns()
                assert log == ["routed", "intercept ends", "callback starts", "callback ends", "after"]
                assert held.result == acprt.Ok("mine")

        run(main())

    def test_barrier_ends_with_a_callback_that_succeeds(self, run):
        """OB-05: two ordered callbacks in a row, each one a barrier of its own, and the connection goes on."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                first, second = Held(log), Held(log)
                first.release.set()
                cx.send_request("a").on_receiving_result(first)
                cx.send_request("b").on_receiving_result(second)
                peer.send(answer(1), note("between"), answer(2), note("after"))
                await second.entered.wait()
                await turns()
                assert log == ["callback starts", "callback ends", "between", "callback starts"]
                second.release.set()
                await turns()
                assert log[-2:] == ["callback ends", "after"]

        run(main())

    def test_failing_callback_ends_the_connection_before_the_next_message(self, run):
        """OB-05, OB-06, SR-06 and PY-16: zero later messages, and the block raises the callback's error (DEC-16)."""

        async def main():
            log: list[str] = []

            async def callback(result: Any) -> None:
                log.append("fails")
                raise ValueError("from the callback")

            def script(cx: acprt.Connection, peer: RawPeer) -> None:
                cx.send_request("work").on_receiving_result(callback)
                peer.send(answer(1), note("after"), note("later"))

            with pytest.raises(ValueError, match="from the callback"):
                await until_it_ends(noting(log), script)
            assert log == ["fails"]

        run(main())

    def test_failing_callback_without_a_block_fails_the_waiters(self, run):
        """OB-06 with `open()`: waiters fail with the cause and `aclose()` does not raise (DEC-16)."""

        async def main():
            log: list[str] = []
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await noting(log).open(near)

            async def callback(result: Any) -> None:
                raise ValueError("from the callback")

            cx.send_request("work").on_receiving_result(callback)
            other = asyncio.create_task(cx.send_request("other").block_task())
            peer.send(answer(1), note("after"))
            with pytest.raises(acprt.RpcError) as caught:
                await other
            assert caught.value.data["reason"] == "connection_failed"
            assert "from the callback" in str(caught.value)
            await cx.aclose()
            assert log == []

        run(main())

    def test_callback_that_is_cancelled_from_inside_ends_the_connection(self, run):
        """OB-06: a cancellation that leaks out of a callback is a failure, never silence (PY-11)."""

        async def main():
            log: list[str] = []

            async def callback(result: Any) -> None:
                raise asyncio.CancelledError

            def script(cx: acprt.Connection, peer: RawPeer) -> None:
                cx.send_request("work").on_receiving_result(callback)
                peer.send(answer(1), note("after"))

            with pytest.raises(acprt.RpcError) as caught:
                await until_it_ends(noting(log), script)
            assert "the callback of work was cancelled from inside" in caught.value.data
            assert log == []

        run(main())

    def test_eof_waits_behind_the_barrier(self, run):
        """OB-14: other waiters fail and close callbacks run only after the callback is done."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_close
            async def closed(cx: acprt.Connection) -> None:
                log.append("close callback")

            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)

                async def wait() -> None:
                    with pytest.raises(acprt.RpcError) as caught:
                        await cx.send_request("other").block_task()
                    assert acprt.is_incoming_transport_closed(caught.value)
                    log.append("other waiter")

                other = asyncio.create_task(wait())
                await turns()
                peer.send(answer(1))
                peer.close_write()
                await held.entered.wait()
                await turns()
                assert log == ["callback starts"]
                assert not cx.is_incoming_closed
                held.release.set()
                await other
                await cx.incoming_closed()
                assert log == ["callback starts", "callback ends", "close callback", "other waiter"]

        run(main())

    def test_callback_that_never_ends_holds_everything_but_not_aclose(self, run):
        """OB-19: EOF stays unseen, there is no timeout; a local close ends it, in bounded time."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.send(answer(1), note("after"))
                peer.close_write()
                await held.entered.wait()
                await turns()
                assert not cx.is_incoming_closed
                assert cx.status().running_handler == "Held"
                await cx.aclose()
                assert log == ["callback starts"]

        run(main())

    def test_callback_that_waits_for_its_own_connection_is_refused(self, run):
        """OB-15, PY-21: `block_task` in an ordered callback raises instead of waiting for ever; the callback fails."""

        async def main():
            log: list[str] = []

            def script(cx: acprt.Connection, peer: RawPeer) -> None:
                async def callback(result: Any) -> None:
                    await cx.send_request("inner").block_task()

                cx.send_request("work").on_receiving_result(callback)
                peer.send(answer(1), note("after"))

            with pytest.raises(acprt.DispatchLoopBlocked, match=r"inner \(id 2\).*callback"):
                await until_it_ends(noting(log), script)
            assert log == []

        run(main())

    def test_callback_may_start_work_that_waits(self, run):
        """OB-18: set-up runs under the barrier, the work it spawns may wait for traffic."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()
            done = asyncio.Event()

            async with raw_server_for(endpoint) as (cx, peer):

                async def session_note(note: Note) -> None:
                    log.append(note.text)

                async def user_code() -> None:
                    log.append(await cx.send_request("inner").block_task())
                    done.set()

                async def set_up(result: Any) -> None:
                    cx.add_dynamic_handler(session_note).detach()
                    cx.spawn(user_code())

                cx.send_request("session/new").on_receiving_result(set_up)
                peer.send([answer(1), note("first of the session")])
                assert (await peer.receive())["method"] == "session/new"
                assert (await peer.receive())["method"] == "inner"
                peer.send(answer(2, "reply"))
                await done.wait()
                assert log == ["first of the session", "reply"]

        run(main())

    def test_callback_serves_the_request_in_whose_handler_it_was_chosen(self, run):
        """DEC-13: `cx.after_response` in an ordered callback means the answer of the request that sent ours."""

        async def main():
            endpoint = acprt.Endpoint()
            hooks: list[str] = []

            @endpoint.on_receive_request("outer")
            async def outer(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                async def callback(result: Any) -> None:
                    cx.after_response(lambda: hooks.append("answered"))
                    responder.respond(result.unwrap())

                cx.send_request("inner").on_receiving_result(callback)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "outer")
                inner = await peer.receive()
                peer.respond(inner["id"], "x")
                assert (await peer.receive())["result"] == "x"
                assert hooks == ["answered"]

        run(main())
