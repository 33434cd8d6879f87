"""Mistakes of a newcomer are refused where they are made, in words that say what to write instead."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import acprt


class Hello(acprt.Request[str], method="hello"):
    name: str


class Note(acprt.Notification, method="note"):
    text: str


def test_wrong_transport_is_named(run):
    """A command line, a class, nothing: none of them is a transport."""

    async def main():
        wrongs: list[Any] = ["python agent.py", acprt.AgentProcess, None, ["agent"], 3]
        for wrong in wrongs:
            with pytest.raises(TypeError, match=r"no transport: give acprt\.AgentProcess"):
                await acprt.Endpoint("caller").open(wrong)

    run(main())


def test_typed_message_takes_no_second_params(run):
    """Params or a reply type beside a typed message would be dropped silently."""

    async def main():
        server = acprt.Endpoint("server")
        async with acprt.Endpoint("caller").connect(server) as cx:
            with pytest.raises(TypeError, match="brings its own params"):
                cx.send_request(Hello(name="a"), {"name": "b"})  # type: ignore[call-overload]  # the mistake itself
            with pytest.raises(TypeError, match="brings its own params"):
                cx.send_request(Hello(name="a"), reply_type=int)  # type: ignore[call-overload]  # as above
            with pytest.raises(TypeError, match="brings its own params"):
                cx.send_notification(Note(text="a"), {"text": "b"})

    run(main())


def test_params_may_be_named(run):
    """`params=` and a union as reply type are what people write."""

    async def main():
        server = acprt.Endpoint("server")

        @server.method("add")
        async def add(numbers):
            return sum(numbers)

        async with acprt.Endpoint("caller").connect(server) as cx:
            assert await cx.send_request("add", params=[1, 2], reply_type=int | str).block_task() == 3
            cx.send_notification("note", params={"text": "x"})

    run(main())


def test_run_inside_a_loop_says_what_to_await(run):
    """`acprt.run` owns the loop; nothing is begun and left behind."""

    async def main():
        with pytest.raises(RuntimeError, match=r"await endpoint\.serve"):
            acprt.run(acprt.Endpoint("server"))

    run(main())


def test_status_of_an_ended_connection_holds_nothing(run):
    """No phantom frame is left in its queues."""

    async def main():
        async with acprt.Endpoint("caller").connect(acprt.Endpoint("server")) as cx:
            pass
        status = cx.status()
        assert (status.state, status.inbox.count, status.outbox.count) == ("ended", 0, 0)

    run(main())


def test_a_cause_that_cannot_be_shown_still_fails_the_waiters(run):
    """PY-60: no exception of the user's keeps a request pending."""

    class Unshowable(Exception):
        def __str__(self):
            raise ValueError("not even this")

    async def main():
        near, _far = acprt.memory_pair()
        cx = await acprt.Endpoint("caller", limits=acprt.Limits(drain_seconds=0.1)).open(near)
        waiting = asyncio.ensure_future(cx.send_request("never/answered").block_task())
        await asyncio.sleep(0)

        async def fail():
            raise Unshowable

        cx.spawn(fail())
        with pytest.raises(acprt.RpcError, match="Unshowable"):
            await asyncio.wait_for(waiting, 10)
        await cx.aclose()

    run(main())


def test_responder_may_be_used_from_a_thread(run):
    """RS-03: answered from anywhere, another thread included."""

    async def main():
        server = acprt.Endpoint("server")

        @server.on_receive_request("ask")
        async def ask(params, responder, cx):
            threading.Thread(target=responder.respond, args=("from a thread",)).start()

        async with acprt.Endpoint("caller").connect(server) as cx:
            assert await cx.send_request("ask").block_task(timeout=10) == "from a thread"

    run(main())


def test_timeout_that_is_no_number(run):
    """Refused at once, the same on every loop."""

    async def main():
        async with acprt.Endpoint("caller").connect(acprt.Endpoint("server")) as cx:
            with pytest.raises(ValueError, match="not a number"):
                await cx.send_request("x").block_task(timeout=float("nan"))

    run(main())
