"""Order around `method` handlers: their first steps, what they send on the way, what follows their answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for, turns
from tests.runtime.ordered import Held, answer, note, noting, request


class TestStartOrder:
    """First steps of `method` tasks: in wire order, and before any later ordered handler (DEC-7)."""

    @staticmethod
    def logging(log: list[str]) -> acprt.Endpoint:
        endpoint = noting(log)

        @endpoint.method("a", "b", "c")
        async def step(params: Any) -> None:
            log.append(f"task {params['text']}")
            await asyncio.sleep(0)
            log.append(f"task {params['text']} goes on")

        @endpoint.on_receive_request("ordered")
        async def ordered(params: Any, responder: acprt.Responder[Any]) -> None:
            log.append("ordered")
            responder.respond(None)

        @endpoint.on_close
        async def closed(cx: acprt.Connection) -> None:
            log.append("close callback")

        return endpoint

    @staticmethod
    def call(id: int, method: str, text: str) -> dict[str, Any]:
        return request(id, method) | {"params": {"text": text}}

    def test_notification_comes_after_first_steps(self, run):
        """DEC-7: tasks start in wire order, before the ordered handler behind them."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.logging(log)) as (_cx, peer):
                peer.send(*(self.call(i, "abc"[i], str(i)) for i in range(3)), note("note"))
                await turns()
            assert log[:4] == ["task 0", "task 1", "task 2", "note"]

        run(main())

    def test_batch_members_keep_that_order(self, run):
        """DEC-7 inside one batch, BA-01."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.logging(log)) as (_cx, peer):
                peer.send([self.call(1, "a", "1"), note("note"), self.call(2, "b", "2"), note("again")])
                await turns()
            assert [entry for entry in log if "goes on" not in entry] == ["task 1", "note", "task 2", "again"]

        run(main())

    def test_ordered_request_handler_comes_after_first_steps(self, run):
        """DEC-7 for `on_receive_request`."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.logging(log)) as (_cx, peer):
                peer.send(self.call(1, "a", "1"), request(2, "ordered"))
                await turns()
            assert log[:2] == ["task 1", "ordered"]

        run(main())

    def test_ordered_callback_comes_after_first_steps(self, run):
        """DEC-7 for callbacks."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.logging(log)) as (cx, peer):
                held = Held(log)
                held.release.set()
                cx.send_request("work").on_receiving_result(held)
                peer.send(self.call(1, "a", "1"), answer(1))
                await held.entered.wait()
                assert log[:2] == ["task 1", "callback starts"]

        run(main())

    def test_dynamic_handler_comes_after_first_steps(self, run):
        """DEC-7 for dynamic handlers."""

        async def main():
            log: list[str] = []
            async with raw_server_for(self.logging(log)) as (cx, peer):

                async def other(dispatch: acprt.Dispatch) -> None:
                    log.append(dispatch.method)

                cx.add_dynamic_handler(other).detach()
                peer.send(self.call(1, "a", "1"), {"jsonrpc": "2.0", "method": "other"})
                await turns()
            assert log[:2] == ["task 1", "other"]

        run(main())

    def test_close_callback_comes_after_first_steps(self, run):
        """DEC-7 at EOF."""

        async def main():
            log: list[str] = []
            async with raw_client_of(self.logging(log)) as peer:
                peer.send(self.call(1, "a", "1"))
                peer.close_write()
                await turns()
            assert [entry for entry in log if "goes on" not in entry] == ["task 1", "close callback"]

        run(main())


class TestAfterResponse:
    """`cx.after_response`: what a handler wants to do once its answer is on its way."""

    def test_response_is_always_first(self, run):
        """OU-10: over 1,000 requests with random scheduling, no announcement overtakes the response it follows."""

        async def main():
            chance = random.Random(12)
            endpoint = acprt.Endpoint()

            async def think() -> None:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)

            def announcing(cx: acprt.Connection, params: Any) -> Callable[[], Any]:
                async def later() -> None:
                    await think()
                    cx.send_notification("announced", params)

                def now() -> None:
                    cx.send_notification("announced", params)

                return chance.choice([later, now])

            @endpoint.method("task")
            async def task(params: Any, cx: acprt.Connection) -> Any:
                await think()
                cx.after_response(announcing(cx, params))
                await think()
                return params

            @endpoint.method("thread")
            def thread(params: Any, cx: acprt.Connection) -> Any:
                cx.after_response(announcing(cx, params))
                return params

            @endpoint.on_receive_request("ordered")
            async def ordered(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                async def respond() -> None:
                    await think()
                    responder.respond(params)

                cx.after_response(announcing(cx, params))
                cx.spawn(respond())

            answered: set[int] = set()
            announced: set[int] = set()
            async with raw_client_of(endpoint) as peer:
                for i in range(1000):
                    peer.request(i, chance.choice(["task", "task", "thread", "ordered"]), {"i": i})
                    if chance.random() < 0.3:
                        await asyncio.sleep(0)
                while len(announced) < 1000:
                    line = await peer.receive()
                    if "method" in line:
                        assert line["params"]["i"] in answered
                        announced.add(line["params"]["i"])
                    else:
                        answered.add(line["id"])

        run(main())

    def test_it_runs_at_once_when_the_answer_is_queued(self, run):
        """A handler that has answered already may still ask for it."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("new")
            async def new(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond("answer")
                cx.after_response(lambda: cx.send_notification("after"))
                cx.send_notification("last")

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "new")
                lines = [await peer.receive() for _ in range(3)]
                assert lines[0]["result"] == "answer"
                assert [line["method"] for line in lines[1:]] == ["after", "last"]

        run(main())

    def test_outside_a_request_it_is_an_error(self, run):
        """There is nothing to come after."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                with pytest.raises(RuntimeError, match="no request is being served here"):
                    cx.after_response(lambda: None)

        run(main())


class TestProgressOfAPlainFunction:
    """Order of what a synchronous `method` handler sends from its thread."""

    def test_notifications_leave_before_the_answer(self, run):
        """OU-10: a plain `def` may call `cx.send_notification`; it leaves before the answer, 200 times."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("work")
            def work(params: Any, cx: acprt.Connection) -> str:
                for step in range(3):
                    cx.send_notification("progress", {"step": step})
                return "done"

            async with raw_client_of(endpoint) as peer:
                for i in range(200):
                    peer.request(i, "work")
                    steps = [(await peer.receive())["params"]["step"] for _ in range(3)]
                    assert steps == [0, 1, 2]
                    assert (await peer.receive())["id"] == i

        run(main())
