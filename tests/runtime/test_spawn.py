"""Work beside the dispatch loop: `cx.spawn` and `with_spawned`."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import ScriptedTransport, notification, scripted, until_idle


class TestSpawn:
    def test_work_starts_later_never_inline(self, run):
        """SP-01, PY-18: what the caller does next comes first."""
        order: list[str] = []

        async def work() -> None:
            order.append("work")

        async def main():
            async with scripted(acprt.Endpoint("x")) as (cx, _transport):
                cx.spawn(work())
                order.append("caller")
                await until_idle()
                assert order == ["caller", "work"]

        run(main())

    def test_work_runs_beside_a_handler_that_holds_the_loop(self, run):
        """SP-01: it is no part of the dispatch loop, so it may wait for what comes through it."""
        endpoint = acprt.Endpoint("x")
        done = asyncio.Event()

        @endpoint.on_receive_notification("hold")
        async def hold(_params: Any, cx: acprt.Connection) -> None:
            async def work() -> None:
                done.set()

            cx.spawn(work())
            await done.wait()

        async def main():
            async with scripted(endpoint) as (_cx, transport):
                transport.deliver(notification("hold"))
                await asyncio.wait_for(done.wait(), 5)

        run(main())

    def test_finished_work_is_forgotten(self, run):
        """SP-03: its value is its own; the task that is returned is an extra (PY-82)."""

        class Value:
            pass

        async def main():
            async with scripted(acprt.Endpoint("x")) as (cx, _transport):

                async def work() -> Value:
                    return Value()

                task = cx.spawn(work())
                value = weakref.ref(await task)
                assert value() is not None
                del task
                await until_idle()
                gc.collect()
                assert value() is None

        run(main())

    def test_work_is_held_although_nobody_keeps_its_task(self, run):
        """PY-17: the event loop alone would let it be collected."""

        async def main():
            async with scripted(acprt.Endpoint("x")) as (cx, _transport):
                done = asyncio.Event()
                waiting: list[weakref.ref[asyncio.Future[None]]] = []

                async def work() -> None:
                    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    waiting.append(weakref.ref(future))
                    await future
                    done.set()

                cx.spawn(work())
                await until_idle()
                gc.collect()
                future = waiting[0]()
                assert future is not None, "the task was collected with what it waits for"
                future.set_result(None)
                del future
                await asyncio.wait_for(done.wait(), 5)

        run(main())

    def test_failure_ends_the_connection_with_that_error(self, run):
        """SP-02, SP-05, PY-15: the exception itself, with its traceback; nothing is wrapped around it."""
        error = acprt.RpcError(-7, "from the task", {"k": 1})

        async def main():
            async def work() -> None:
                raise error

            async def block() -> None:
                async with acprt.Endpoint("x").connect(ScriptedTransport()) as cx:
                    cx.spawn(work())
                    await asyncio.Event().wait()

            with pytest.raises(acprt.RpcError) as caught:
                await block()
            assert caught.value is error
            assert caught.value.data == {"k": 1}
            names = []
            frame = caught.value.__traceback__
            while frame is not None:
                names.append(frame.tb_frame.f_code.co_name)
                frame = frame.tb_next
            assert "work" in names

        run(main())

    def test_failure_of_work_whose_task_was_cancelled_by_its_owner_is_none(self, run):
        """SP-02: cancelling the returned task is a way to stop it."""

        async def main():
            async with scripted(acprt.Endpoint("x")) as (cx, _transport):
                task = cx.spawn(asyncio.Event().wait())
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                await until_idle()
                assert cx.status().state == "open"

        run(main())

    def test_on_a_dead_connection_it_is_refused_and_the_coroutine_closed(self, run):
        """SP-04, PY-82: no warning about a coroutine that was never awaited."""

        async def work() -> None:
            raise AssertionError("started")

        async def main():
            async with scripted(acprt.Endpoint("x")) as (cx, _transport):
                await cx.aclose()
                with pytest.raises(acprt.RpcError, match="Connection closed"):
                    cx.spawn(work())

        run(main())

    def test_system_exit_in_work_leaves_the_loop(self):
        """SP-08, PY-14: what ends a Python program ends it from here, too."""
        code = """
import asyncio, acprt
async def main():
    near, far = acprt.memory_pair()
    async with acprt.Endpoint().connect(near) as cx:
        async def leave(): raise SystemExit(7)
        cx.spawn(leave())
        await asyncio.Event().wait()
asyncio.run(main())
"""
        done = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True, check=False)
        assert done.returncode == 7


class TestWithSpawned:
    def test_it_runs_beside_each_connection_from_its_start(self, run):
        """SP-06: in parallel with everything; finishing is fine."""
        endpoint = acprt.Endpoint("x")
        started: list[str] = []

        @endpoint.with_spawned
        async def first(cx: acprt.Connection) -> None:
            started.append("first")
            cx.send_notification("hello")

        @endpoint.with_spawned
        async def second(_cx: acprt.Connection) -> None:
            started.append("second")
            await asyncio.Event().wait()

        async def main():
            async with scripted(endpoint) as (cx, transport):
                await until_idle()
                assert started == ["first", "second"]
                assert transport.written == [notification("hello")]
                assert cx.status().state == "open"
            async with scripted(endpoint):
                await until_idle()
                assert started == ["first", "second"] * 2

        run(main())

    def test_failure_ends_the_connection(self, run):
        """SP-06."""
        endpoint = acprt.Endpoint("x")

        @endpoint.with_spawned
        async def broken(_cx: acprt.Connection) -> None:
            raise ValueError("from the background")

        async def main():
            with pytest.raises(ValueError, match="from the background"):
                await endpoint.serve(ScriptedTransport())

        run(main())

    def test_included_endpoint_brings_its_work_along(self, run):
        """HC-13, SP-06."""
        host, other = acprt.Endpoint("host"), acprt.Endpoint("other")
        started: list[str] = []

        @other.with_spawned
        async def background(_cx: acprt.Connection) -> None:
            started.append("background")

        host.include(other)

        async def main():
            async with scripted(host):
                await until_idle()
                assert started == ["background"]

        run(main())

    def test_it_must_be_a_coroutine_function(self):
        """A wrong shape fails when it is registered."""
        with pytest.raises(TypeError, match="async def"):
            acprt.Endpoint("x").with_spawned(lambda cx: None)
        with pytest.raises(TypeError, match=r"\(cx\)"):
            acprt.Endpoint("x").on_close(lambda: None)


class TestChildConnection:
    """A connection inside another one is spawned work like any other (SP-07)."""

    @staticmethod
    def _parent() -> tuple[acprt.Endpoint, ScriptedTransport]:
        child_transport = ScriptedTransport()
        parent = acprt.Endpoint("parent")

        @parent.with_spawned
        async def child(_cx: acprt.Connection) -> None:
            await acprt.Endpoint("child").serve(child_transport)

        return parent, child_transport

    def test_its_end_of_input_ends_only_itself(self, run):
        """SP-07."""

        async def main():
            parent, child = self._parent()
            async with scripted(parent) as (cx, _transport):
                await until_idle()
                child.end()
                await until_idle()
                assert child.closed
                assert cx.status().state == "open"

        run(main())

    def test_its_failure_ends_the_parent(self, run):
        """SP-07."""

        async def main():
            parent, child = self._parent()
            serving = asyncio.create_task(parent.serve(ScriptedTransport()))
            await until_idle()
            child.lose(OSError("child broke"))
            with pytest.raises(OSError, match="child broke"):
                await asyncio.wait_for(serving, 5)

        run(main())

    def test_it_ends_with_the_parent(self, run):
        """SP-07, M-02."""

        async def main():
            parent, child = self._parent()
            async with scripted(parent):
                await until_idle()
                assert not child.closed
            assert child.closed

        run(main())
