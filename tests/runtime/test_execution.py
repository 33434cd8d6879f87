"""One connection is one unit: where its code runs, what bounds it, in which order it starts, and that it ends whole."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from tests.rawpeer import RawPeer, raw_server_for
from tests.runtime.golden import call, endpoint
from tests.runtime.scripted import ScriptedTransport, notification, scripted, until_idle


def tasks_now() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if not task.done()}


class TestOneUnit:
    """Handlers, callbacks, spawned work and the foreground share one loop and one thread."""

    def test_everything_runs_on_the_thread_of_the_loop(self, run):
        """M-01: except plain `def` handlers, which must not hold the loop."""

        async def main():
            threads: dict[str, int] = {}
            everywhere = acprt.Endpoint("everywhere")

            def here(where: str) -> None:
                threads[where] = threading.get_ident()

            @everywhere.on_receive_notification("n")
            async def n(_params: Any, cx: acprt.Connection) -> None:
                here("ordered handler")

            @everywhere.method("task")
            async def task(_params: Any) -> None:
                here("method task")

            @everywhere.method("plain")
            def plain(_params: Any) -> None:
                here("plain handler")

            @everywhere.on_close
            async def closed(cx: acprt.Connection) -> None:
                here("close callback")

            @everywhere.with_spawned
            async def beside(cx: acprt.Connection) -> None:
                here("spawned")

            async def take(_result: acprt.Result[Any]) -> None:
                here("callback")

            async with raw_server_for(everywhere) as (cx, peer):
                sent = cx.send_request("ask")
                sent.on_receiving_result(take)
                peer.respond(sent.id, None)
                peer.notify("n")
                peer.request(1, "task")
                peer.request(2, "plain")
                while {1, 2} - {line.get("id") for line in [await peer.receive()] if "method" not in line} == {1, 2}:
                    pass
                await peer.receive()
                peer.close_write()
                await cx.incoming_closed()
            plain_thread = threads.pop("plain handler")
            assert len(threads) == 5
            assert set(threads.values()) == {threading.get_ident()}
            assert plain_thread != threading.get_ident()

        run(main())

    def test_serving_takes_one_dispatch_task_however_many_messages(self, run):
        """M-01, M-05: ordered messages cost no tasks."""

        async def main():
            before = tasks_now()
            async with scripted(endpoint()) as (_, transport):
                transport.deliver(*(notification("heard", {"text": "x"}) for _ in range(1_000)))
                transport.deliver(*(call(str(number)) for number in range(1_000)))
                await until_idle()
                assert len(tasks_now() - before) == 1

        run(main())


class TestNothingOutlivesTheEnd:
    """When the connection is over, so is everything that belongs to it."""

    def test_no_task_of_a_connection_is_left(self, run):
        """M-02: handlers, spawned work, callbacks and the transport stop with it."""

        async def main():
            before = tasks_now()
            stopped: list[str] = []
            served = acprt.Endpoint("served")

            async def forever(what: str) -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.append(what)

            @served.on_receive_notification("hold")
            async def hold(_params: Any, cx: acprt.Connection) -> None:
                await forever("ordered handler")

            @served.method("task")
            async def task(_params: Any) -> None:
                await forever("method task")

            @served.with_spawned
            async def beside(cx: acprt.Connection) -> None:
                await forever("with_spawned")

            transport = ScriptedTransport()
            async with served.connect(transport) as cx:
                cx.spawn(forever("spawned"))
                transport.deliver(call("1", "task"), notification("hold"))
                await until_idle()
            assert sorted(stopped) == ["method task", "ordered handler", "spawned", "with_spawned"]
            assert tasks_now() == before
            assert transport.closed

        run(main())

    def test_nothing_is_dispatched_after_the_end(self, run):
        """M-02: what still arrives is discarded."""

        async def main():
            heard: list[Any] = []
            served = acprt.Endpoint("served")

            @served.on_receive_notification("n")
            async def n(params: Any, cx: acprt.Connection) -> None:
                heard.append(params)

            async with scripted(served) as (_, transport):
                transport.deliver(notification("n", [1]))
                await until_idle()
            transport.deliver(notification("n", [2]))
            await until_idle()
            assert heard == [[1]]

        run(main())

    def test_both_ends_close_at_once(self, run):
        """M-02: one end's close is the other's EOF, and that must not hold up its own close."""

        async def main():
            patient = endpoint(Limits(drain_seconds=60))  # so long a close that waits for nothing would take
            for turns in range(6):
                near, far = acprt.memory_pair()
                left, right = await patient.open(near), await patient.open(far)
                assert await left.send_request("echo", [1]).block_task() == [1]
                await left.aclose()
                for _ in range(turns):
                    await asyncio.sleep(0)
                await right.aclose()
                assert right.status().state == "ended"

        run(main())

    def test_a_kept_handle_keeps_neither_the_transport_nor_the_waiters(self, run):
        """M-08: a connection that ended without EOF fails its handles; the peer sees the end."""

        async def main():
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            async with acprt.Endpoint("a").connect(near) as cx:
                sent = cx.send_request("ask")
            await asyncio.wait_for(peer.at_eof.wait(), 5)
            with pytest.raises(acprt.RpcError) as caught:
                await sent.block_task(timeout=5)
            assert caught.value.data["reason"] == "connection_closed"
            assert cx.status().pending == []

        run(main())

    def test_an_ended_connection_is_freed_with_its_last_handle(self, run):
        """M-08, PY-07: no table, task or callback of the loop holds it."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                sent = cx.send_request("ask")
                peer.respond(sent.id, None)
                await sent.block_task()
                peer.request(1, "echo", [])
                await peer.receive_raw()
                await peer.receive_raw()
            gone = weakref.ref(cx)
            del cx, sent
            await until_idle()
            gc.collect()
            assert gone() is None

        run(main())


class TestStart:
    """What runs first."""

    def test_the_foreground_begins_before_what_was_waiting(self, run):
        """M-03: then the frames in order."""

        async def main():
            order: list[str] = []
            served = acprt.Endpoint("served")

            @served.on_receive_notification("n")
            async def n(params: Any, cx: acprt.Connection) -> None:
                order.append(params[0])

            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            for name in ("m0", "m1", "m2"):
                peer.notify("n", [name])
            async with served.connect(near):
                order.append("foreground")
                await peer.settled()
            assert order == ["foreground", "m0", "m1", "m2"]

        run(main())

    def test_the_transport_is_open_before_anything_is_written(self, run):
        """M-04: also by work that starts with the connection."""

        class Recording(ScriptedTransport):
            def open(self, sink: Any, limits: Limits) -> None:
                self.calls.append("open")
                super().open(sink, limits)

            def write(self, data: bytes) -> None:
                self.calls.append("write")
                super().write(data)

        async def main():
            eager = acprt.Endpoint("eager")

            @eager.with_spawned
            async def beside(cx: acprt.Connection) -> None:
                cx.send_notification("early")

            transport = Recording()
            async with eager.connect(transport) as cx:
                cx.send_notification("first")
                await until_idle()
            assert transport.calls[:3] == ["open", "write", "write"]

        run(main())

    def test_a_transport_that_cannot_open_leaves_nothing_behind(self, run):
        """M-04: the error is raised where the connection was asked for."""

        class Broken(ScriptedTransport):
            def open(self, sink: Any, limits: Limits) -> None:
                raise FileNotFoundError("no such program")

        async def main():
            before = tasks_now()
            ran: list[str] = []
            eager = endpoint()

            @eager.with_spawned
            async def beside(cx: acprt.Connection) -> None:
                ran.append("spawned")

            with pytest.raises(FileNotFoundError):
                async with eager.connect(Broken()):
                    ran.append("foreground")
            with pytest.raises(FileNotFoundError):
                await eager.open(Broken())
            with pytest.raises(FileNotFoundError):
                await eager.serve(Broken())
            await until_idle()
            assert tasks_now() == before
            assert ran == []

        run(main())

    def test_a_dynamic_handler_is_in_force_for_the_very_next_frame(self, run):
        """M-07: there is one stream of events, and registering is part of it."""

        async def main():
            heard: list[Any] = []
            served = acprt.Endpoint("served")

            async def late(dispatch: acprt.Dispatch[Any], cx: acprt.Connection) -> None:
                heard.append(dispatch.params)

            @served.on_receive_notification("register")
            async def register(_params: Any, cx: acprt.Connection) -> None:
                cx.add_dynamic_handler(late).detach()

            async with scripted(served) as (_, transport):
                transport.deliver(notification("n", [1]), notification("register"), notification("n", [2]))
                await until_idle()
            assert heard == [[2]]

        run(main())
