"""Plain `def` handlers run on daemon threads of our own, and busy handlers hold up nobody else."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of, raw_server_for, turns

BOUND = 10.0  # seconds a thread of a test waits at most, should the test fail


CANCELLED = {"code": -32800, "message": "Request cancelled"}


INTERNAL = {"code": -32603, "message": "Internal error"}


class TestThreads:
    """Plain `def` handlers (DEC-15)."""

    def test_they_run_on_daemon_threads_beside_the_loop(self, run):
        """DEC-15: never on the loop's thread, and never on one that holds the process at its exit."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("where")
            def where(params: Any) -> Any:
                thread = threading.current_thread()
                return [thread is threading.main_thread(), thread.daemon]

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "where")
                assert (await peer.receive())["result"] == [False, True]

        run(main())

    def test_answer_of_a_cancelled_one_goes_out_at_once(self, run):
        """DEC-15: the thread cannot be stopped; its value, when it comes, is discarded."""

        async def main():
            endpoint = acprt.Endpoint()
            entered, release, returned = asyncio.Event(), threading.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            @endpoint.method("work")
            def work(params: Any) -> str:
                loop.call_soon_threadsafe(entered.set)
                assert release.wait(BOUND)
                loop.call_soon_threadsafe(returned.set)
                return "too late"

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await entered.wait()
                peer.cancel(1)
                assert (await peer.receive())["error"] == CANCELLED
                release.set()
                await returned.wait()
                await turns()
                assert await peer.settled() == []

        run(main())

    def test_one_that_waits_for_a_thread_never_starts_when_cancelled(self, run):
        """DEC-15: with one thread, the second call waits its turn; cancelled, it is skipped and forgotten."""

        async def main():
            endpoint = acprt.Endpoint(limits=acprt.Limits(sync_threads=1))
            entered, release = asyncio.Event(), threading.Event()
            began: list[Any] = []
            loop = asyncio.get_running_loop()

            @endpoint.method("work")
            def work(params: Any) -> Any:
                began.append(params["n"])
                loop.call_soon_threadsafe(entered.set)
                assert release.wait(BOUND)
                return params["n"]

            async with raw_client_of(endpoint) as peer:
                for n in range(3):
                    peer.request(n, "work", {"n": n})
                await entered.wait()
                peer.cancel(1)
                line = await peer.receive()
                assert (line["id"], line["error"]) == (1, CANCELLED)
                release.set()
                assert [(await peer.receive())["id"] for _ in range(2)] == [0, 2]
                assert began == [0, 2]

        run(main())

    def test_limit_of_threads_holds(self, run):
        """DEC-15: further calls wait, and all of them are answered."""

        async def main():
            endpoint = acprt.Endpoint(limits=acprt.Limits(sync_threads=3))
            names: set[str] = set()
            lock = threading.Lock()

            @endpoint.method("work")
            def work(params: Any) -> Any:
                with lock:
                    names.add(threading.current_thread().name)
                return params["n"]

            async with raw_client_of(endpoint) as peer:
                for n in range(200):
                    peer.request(n, "work", {"n": n})
                results = [(await peer.receive())["result"] for _ in range(200)]
                assert sorted(results) == list(range(200))
                assert 1 <= len(names) <= 3

        run(main())

    @pytest.mark.parametrize("raised", [StopIteration(1), SystemExit(3), KeyboardInterrupt()], ids=repr)
    def test_odd_exceptions_are_answered(self, run, raised):
        """DEC-15: what cannot cross into a future, or ends only a thread, is still an answer -32603."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("work")
            def work(params: Any) -> None:
                raise raised

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"] == INTERNAL

        run(main())

    def test_thread_that_never_returns_does_not_hold_the_end(self, run):
        """DEC-15, DEC-25: at EOF the request is answered for it after the drain, and serving ends."""

        async def main():
            endpoint = acprt.Endpoint(limits=acprt.Limits(drain_seconds=0.05))
            entered, release = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            @endpoint.method("work")
            def work(params: Any) -> None:
                loop.call_soon_threadsafe(entered.set)
                release.wait(BOUND)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await entered.wait()
                peer.close_write()
                assert (await peer.receive())["error"]["data"] == {"reason": "shutting_down"}
            release.set()

        run(main())


class TestBusy:
    """Busy handlers hold up nobody else."""

    def test_ping_is_answered_while_handlers_are_busy(self, run):
        """DEC-15, M-06: one plain function that blocks, one coroutine that waits; the ping does not wait for them."""

        async def main():
            endpoint = acprt.Endpoint()
            release, go_on = threading.Event(), asyncio.Event()

            @endpoint.method("block")
            def block(params: Any) -> str:
                assert release.wait(BOUND)
                return "blocked"

            @endpoint.method("wait")
            async def wait(params: Any) -> str:
                await go_on.wait()
                return "waited"

            @endpoint.method("ping")
            async def ping(params: Any) -> str:
                return "pong"

            async with raw_client_of(endpoint) as peer:
                peer.request("b", "block")
                peer.request("w", "wait")
                for n in range(20):
                    peer.request(n, "ping")
                    assert await peer.receive() == {"jsonrpc": "2.0", "id": n, "result": "pong"}
                release.set()
                go_on.set()
                lines = [await peer.receive(), await peer.receive()]
                assert {line["id"]: line["result"] for line in lines} == {"b": "blocked", "w": "waited"}

        run(main())

    def test_a_hundred_requests_share_one_connection(self, run):
        """DL-07, DL-08: all in flight at once, each handler calling its caller back; every answer finds its waiter."""

        async def main():
            near, far = acprt.Endpoint("near"), acprt.Endpoint("far")
            together = 0
            most = 0

            @far.method("outer")
            async def outer(params: Any, cx: acprt.Connection) -> Any:
                nonlocal together, most
                together += 1
                most = max(most, together)
                reply = await cx.send_request("inner", params).block_task()
                together -= 1
                return reply

            @near.method("inner")
            async def inner(params: Any) -> Any:
                for _ in range(params["n"] % 7):
                    await asyncio.sleep(0)
                return params["n"] * 2

            async with near.connect(far) as cx:
                sent = [cx.send_request("outer", {"n": n}).block_task() for n in range(100)]
                assert await asyncio.gather(*sent) == [n * 2 for n in range(100)]
                assert most > 50

        run(main())

    def test_ordered_handler_holds_the_loop_while_tasks_go_on(self, run):
        """M-06, DL-01: tasks that were started keep running behind an ordered handler that waits."""

        async def main():
            endpoint = acprt.Endpoint()
            started, release = asyncio.Event(), asyncio.Event()

            @endpoint.method("work")
            async def work(params: Any) -> str:
                started.set()
                await turns()
                return "done"

            @endpoint.on_receive_notification("hold")
            async def hold(params: Any) -> None:
                await release.wait()

            async with raw_server_for(endpoint) as (_cx, peer):
                peer.request(1, "work")
                peer.notify("hold")
                await started.wait()
                assert (await peer.receive())["result"] == "done"
                release.set()

        run(main())


class TestShortage:
    """No thread to be had."""

    def test_request_is_answered_when_no_thread_can_be_started(self, run, monkeypatch):
        """DEC-15: -32603 at once, and the next request gets its thread."""

        async def main():
            endpoint = acprt.Endpoint(limits=Limits(sync_threads=1))

            @endpoint.method("work")
            def work(params: Any) -> str:
                return "done"

            def refuse(_thread: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            async with raw_client_of(endpoint) as peer:
                with monkeypatch.context() as patch:
                    patch.setattr(threading.Thread, "start", refuse)
                    peer.request(1, "work")
                    assert (await peer.receive())["error"] == INTERNAL
                peer.request(2, "work")
                assert (await peer.receive())["result"] == "done"

        run(main())

    def test_threads_lost_to_abandoned_calls_are_reported_once(self, run, caplog):
        """DEC-15: cancelled functions that do not return keep their threads; the first call that waits is told of."""

        async def main():
            endpoint = acprt.Endpoint(limits=Limits(sync_threads=2))
            release = threading.Event()
            entered: asyncio.Queue[None] = asyncio.Queue()
            loop = asyncio.get_running_loop()

            @endpoint.method("work")
            def work(params: Any) -> None:
                loop.call_soon_threadsafe(entered.put_nowait, None)
                assert release.wait(BOUND)

            async with raw_client_of(endpoint) as peer:
                for id in (1, 2):
                    peer.request(id, "work")
                    await entered.get()
                for id in (1, 2):
                    peer.cancel(id)
                    assert (await peer.receive())["error"] == CANCELLED
                    await turns()
                assert "handler threads are busy" not in caplog.text
                for id in (3, 4):
                    peer.request(id, "work")
                    await peer.settled()
                    peer.cancel(id)
                    assert (await peer.receive())["error"] == CANCELLED
                assert caplog.text.count("all 2 handler threads are busy") == 1
                release.set()

        run(main())
