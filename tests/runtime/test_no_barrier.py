"""Ways of taking an answer that hold nothing, and callbacks that come too late to."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_server_for, turns
from tests.runtime.ordered import Held, Note, answer, note, noting


class TestNoBarrier:
    """Ways of taking an answer that hold nothing."""

    @pytest.mark.parametrize("way", ["block_task", "detach", "drop", "keep"])
    def test_next_message_is_dispatched_at_once(self, run, way):
        """OB-07: nobody holds the loop, neither a waiter that takes its time nor a handle that nobody consumed."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):

                async def wait() -> None:
                    await cx.send_request("work").block_task()
                    await asyncio.Event().wait()

                kept: list[Any] = []
                if way == "block_task":
                    kept.append(asyncio.create_task(wait()))
                elif way == "detach":
                    cx.send_request("work").detach()
                elif way == "keep":
                    kept.append(cx.send_request("work"))
                else:
                    cx.send_request("work")
                await turns()
                peer.send(answer(1), note("after"))
                await turns()
                assert log == ["after"]
                for task in kept:
                    task.cancel()

        run(main())

    def test_late_callback_runs_without_a_barrier(self, run):
        """OB-08: registered after routing, it still gets the stored response, while messages go on."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                sent = cx.send_request("work")
                peer.send(answer(1, 3), note("before"))
                await turns()
                assert log == ["before"]
                held = Held(log)
                sent.on_receiving_result(held)
                assert log == ["before"], "it starts as a task, never inline"
                await held.entered.wait()
                assert held.result == acprt.Ok(3)
                peer.send(note("meanwhile"))
                await turns()
                assert log == ["before", "callback starts", "meanwhile"]
                held.release.set()

        run(main())

    def test_late_callback_that_fails_ends_the_connection(self, run):
        """OB-08, SR-06: late or not, a failing callback is final."""

        async def main():
            async def callback(result: Any) -> None:
                raise ValueError("late")

            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await acprt.Endpoint().open(near)
            sent = cx.send_request("work")
            peer.send(answer(1))
            await turns()
            sent.on_receiving_result(callback)
            await turns()
            with pytest.raises(acprt.RpcError, match="late"):
                await cx.send_request("next").block_task()
            await cx.aclose()

        run(main())

    def test_callback_of_a_request_failed_by_eof_holds_nothing(self, run):
        """OB-09: it gets the EOF error as a task of its own; the close callbacks do not wait for it."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_close
            async def closed(cx: acprt.Connection) -> None:
                log.append("close callback")

            async with raw_server_for(endpoint) as (cx, peer):
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                peer.close_write()
                await cx.incoming_closed()
                await held.entered.wait()
                assert log == ["close callback", "callback starts"]
                assert acprt.is_incoming_transport_closed(held.result.error)
                held.release.set()
                await turns()

        run(main())

    def test_callback_of_a_request_that_was_never_sent_holds_nothing(self, run):
        """OB-09: scalar params fail the request here; the callback is told so."""

        async def main():
            log: list[str] = []
            async with raw_server_for(noting(log)) as (cx, peer):
                held = Held(log)
                cx.send_request("work", 5).on_receiving_result(held)
                await held.entered.wait()
                assert held.result.error.code == acprt.ErrorCode.INVALID_PARAMS
                peer.send(note("meanwhile"))
                await turns()
                assert log == ["callback starts", "meanwhile"]
                held.release.set()

        run(main())


class TestNothingSlipsBetween:
    """Sending and choosing a callback is one step as long as nothing is awaited in between."""

    def test_reply_of_a_fast_peer_finds_the_callback_chosen(self, run):
        """OB-16, OB-17: a peer in the same process that answers as fast as it can never overtakes the registration."""

        async def main():
            server = acprt.Endpoint("server")

            @server.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(None)
                cx.send_notification(Note(text="after"))

            log: list[str] = []
            async with noting(log).connect(server) as cx:

                async def callback(result: Any) -> None:
                    await asyncio.sleep(0)
                    log.append("callback")

                for _ in range(200):
                    cx.send_request("work").on_receiving_result(callback)
                    if random.random() < 0.5:
                        await asyncio.sleep(0)
                while len(log) < 400:
                    await asyncio.sleep(0)
                assert log == ["callback", "after"] * 200

        run(main())
