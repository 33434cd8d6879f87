"""Endpoints joined in process: one connects to the other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import acprt
from tests.runtime.scripted import fail_with, until_idle


class TestInProcess:
    """An endpoint is a transport (LC-13)."""

    def test_what_keeps_the_other_side_from_being_served_is_raised_here(self, run, caplog) -> None:
        """DEC-5: a message that cannot be decoded fails by its name where the connection is opened, on either side."""

        class Unreadable(acprt.Request[Any], method="unreadable"):
            at: complex | range

        served = acprt.Endpoint("served")

        @served.method
        async def unreadable(request: Unreadable) -> None: ...

        async def main() -> None:
            with pytest.raises(TypeError, match="Unreadable"):
                async with acprt.Endpoint("caller").connect(served):
                    pass
            assert caplog.records == []

        run(main())

    @staticmethod
    def _server() -> acprt.Endpoint:
        server = acprt.Endpoint("server")

        @server.method("double")
        async def double(params: Any, cx: acprt.Connection) -> int:
            cx.send_notification("working")
            return params["n"] * 2

        return server

    def test_request_and_notification_pass(self, run):
        """LC-13."""
        client = acprt.Endpoint("client")
        heard = asyncio.Event()

        @client.on_receive_notification("working")
        async def working(_params: Any) -> None:
            heard.set()

        async def main():
            async with client.connect(self._server()) as cx:
                assert await cx.send_request("double", {"n": 21}).block_task(timeout=5) == 42
                assert heard.is_set()

        run(main())

    def test_one_endpoint_serves_many_connections(self, run):
        """LC-13: it holds no state of a connection."""

        async def main():
            server, client = self._server(), acprt.Endpoint("client")
            async with client.connect(server) as first, client.connect(server) as second:
                answers = await asyncio.gather(
                    *(cx.send_request("double", {"n": n}).block_task(timeout=5) for n, cx in enumerate((first, second)))
                )
                assert answers == [0, 2]

        run(main())

    def test_leaving_the_block_ends_the_served_side(self, run):
        """LC-13: it sees EOF, runs its close callbacks, drains, and is gone when the block is left."""
        server = self._server()
        ended: list[str] = []

        @server.on_close
        async def bye(_cx: acprt.Connection) -> None:
            ended.append("closed")

        async def main():
            before = asyncio.all_tasks()
            async with acprt.Endpoint("client").connect(server) as cx:
                cx.send_notification("last words")
            assert ended == ["closed"]
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == before

        run(main())

    def test_served_side_that_fails_is_an_eof_here_and_logged_there(self, run, caplog):
        """LC-13, TF-01: the error belongs to the side that failed."""
        server = self._server()

        @server.method("break")
        async def break_it(_params: Any, cx: acprt.Connection) -> None:
            cx.spawn(fail_with(ValueError("of the server")))
            await asyncio.Event().wait()

        async def main():
            async with acprt.Endpoint("client").connect(server) as cx:
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request("break").block_task(timeout=5)
                assert caught.value.data == {"reason": "shutting_down"}
                await asyncio.wait_for(cx.incoming_closed(), 5)

        run(main())
        assert "of the server" in caplog.text

    def test_served_side_that_does_not_end_is_ended(self, run):
        """LC-13 with a bound: its drain first, then cancellation."""
        server = acprt.Endpoint("server", limits=acprt.Limits(drain_seconds=0.05))
        ended: list[str] = []

        @server.method("for ever")
        async def for_ever(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            async with acprt.Endpoint("client").connect(server) as cx:
                cx.send_request("for ever").detach()
                await until_idle()
            assert ended == ["cancelled"]

        run(main())

    def test_served_side_that_takes_too_long_is_cancelled(self, run):
        """LC-13 with a bound: this side's, when the served one's own drain is longer."""
        server = acprt.Endpoint("server", limits=acprt.Limits(drain_seconds=3600))
        client = acprt.Endpoint("client", limits=acprt.Limits(drain_seconds=0.05, exit_grace_seconds=0))
        ended: list[str] = []

        @server.method("for ever")
        async def for_ever(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            before = asyncio.all_tasks()
            async with client.connect(server) as cx:
                cx.send_request("for ever").detach()
                await until_idle()
            assert ended == ["cancelled"]
            assert asyncio.all_tasks() == before

        run(main())

    def test_endpoint_given_as_a_transport_may_call_back(self, run):
        """LC-13, DL-08: both ends are client and server."""
        server, client = acprt.Endpoint("server"), acprt.Endpoint("client")

        @server.method("ask back")
        async def ask_back(_params: Any, cx: acprt.Connection) -> Any:
            return await cx.send_request("name").block_task(timeout=5)

        @client.method("name")
        async def name(_params: Any) -> str:
            return "client"

        async def main():
            async with client.connect(server) as cx:
                assert await cx.send_request("ask back").block_task(timeout=5) == "client"

        run(main())
