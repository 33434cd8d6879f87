"""Failing handlers: the request is answered, the failure is logged, and the dispatch loop goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for
from tests.runtime.ordered import Note, answer, note, noting


class Restless(acprt.Request[str], method="restless"):
    """A message whose own code fails while it is decoded, in a way that is no ValueError."""

    def __post_init__(self) -> None:
        raise KeyError("restless")


class TestFailures:
    """Whatever a handler does, the loop goes on (DL-06, DL-10)."""

    @staticmethod
    async def lives(peer: RawPeer, log: list[str]) -> None:
        log.clear()
        peer.send(note("still there"))
        await peer.settled()
        assert log == ["still there"]

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (ValueError("secret text"), {"code": -32603, "message": "Internal error"}),
            (acprt.RpcError(5, "mine", [1]), {"code": 5, "message": "mine", "data": [1]}),
            (asyncio.CancelledError(), {"code": -32603, "message": "Internal error"}),
        ],
        ids=["exception", "RpcError", "stray cancellation"],
    )
    @pytest.mark.parametrize("kind", ["request", "dispatch", "method", "dynamic"])
    def test_failing_request_handler_answers(self, run, kind, error, told, caplog):
        """DL-06, DL-10, PY-11, PY-13: an RpcError as it is, anything else as a bare -32603, and the text stays here."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            if kind == "request":

                @endpoint.on_receive_request("work")
                async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                    raise error

            elif kind == "method":

                @endpoint.method("work")
                async def work_in_task(params: Any) -> None:
                    raise error

            async def fail(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method == "work":
                    raise error
                return acprt.Handled.no(dispatch)

            if kind == "dispatch":
                endpoint.on_receive_dispatch(fail)

            async with raw_server_for(endpoint) as (cx, peer):
                if kind == "dynamic":
                    cx.add_dynamic_handler(fail).detach()
                peer.request(1, "work")
                assert await peer.receive() == {"jsonrpc": "2.0", "id": 1, "error": told}
                await self.lives(peer, log)

        run(main())
        if isinstance(error, ValueError):
            assert "secret text" in caplog.text
            assert "Traceback" in caplog.text

    @pytest.mark.parametrize("error", [ValueError("mine"), acprt.RpcError(5, "mine"), asyncio.CancelledError()])
    @pytest.mark.parametrize("kind", ["notification", "dispatch"])
    def test_failing_notification_handler_is_logged_once(self, run, kind, error, caplog):
        """DL-06: logged once, by the name of the method; nobody is answered."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_receive_notification("work")
            async def work(params: Any) -> None:
                if kind == "notification":
                    raise error

            async def fail(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method == "work":
                    raise error
                return acprt.Handled.no(dispatch)

            if kind == "dispatch":
                early = acprt.Endpoint()
                early.on_receive_dispatch(fail)
                endpoint = early.include(endpoint)

            async with raw_client_of(endpoint) as peer:
                peer.notify("work")
                assert await peer.settled() == []
                await self.lives(peer, log)

        run(main())
        told = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(told) == 1
        assert "work" in told[0].getMessage()
        assert told[0].levelno == (logging.WARNING if isinstance(error, acprt.RpcError) else logging.ERROR)

    def test_cancelled_dispatch_task_ends_the_connection(self, run):
        """PY-11: a handler that cancels the very task it runs in cannot be told from the end of the event loop: the
        connection ends, with that cause, and its requests are answered.
        """

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)

            near, far = acprt.memory_pair()
            serving = asyncio.create_task(endpoint.serve(far))
            peer = RawPeer(near)
            peer.request(1, "work")
            assert (await peer.receive())["error"]["code"] == acprt.ErrorCode.INTERNAL_ERROR
            with pytest.raises(acprt.RpcError, match="the dispatch loop was cancelled"):
                await serving
            await peer.aclose()

        run(main())

    @pytest.mark.parametrize("kind", ["method", "request", "dispatch"])
    def test_message_class_that_fails_by_itself(self, run, kind):
        """DL-06: a `__post_init__` that raises what is no ValueError is a failure of the handler, not of the loop."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            if kind == "method":

                @endpoint.method
                async def restless(request: Restless) -> str:
                    return "never"

            elif kind == "request":

                @endpoint.on_receive_request
                async def restless_ordered(request: Restless, responder: acprt.Responder[str]) -> None: ...

            else:

                @endpoint.on_receive_dispatch
                async def restless_dispatch(dispatch: acprt.Dispatch[Restless]) -> None: ...

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "restless", {})
                assert (await peer.receive())["error"] == {"code": -32603, "message": "Internal error"}
                await self.lives(peer, log)

        run(main())

    @pytest.mark.parametrize(
        "returned",
        [True, 0, "text", acprt.Handled.no(42), acprt.Handled.no(object()), acprt.Handled.no(acprt.Handled)],
        ids=["True", "0", "text", "Handled of 42", "Handled of an object", "Handled of a type"],
    )
    def test_handler_that_returns_nonsense(self, run, returned, caplog):
        """DL-06, HC-02: what is neither None nor Handled, or passes on no message, is the handler's failure."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any]) -> Any:
                return returned

            @endpoint.on_receive_notification("heard")
            async def heard(params: Any) -> Any:
                return returned

            async with raw_client_of(endpoint) as peer:
                peer.notify("heard")
                peer.request(1, "work")
                assert (await peer.receive())["error"] == {"code": -32603, "message": "Internal error"}
                await self.lives(peer, log)

        run(main())
        assert "heard" in caplog.text

    def test_message_that_cannot_be_passed_on(self, run):
        """DL-06, HC-08: a changed message that is no JSON stops the walk with -32603."""

        async def main():
            log: list[str] = []
            endpoint = noting(log)

            @endpoint.on_receive_dispatch
            async def change(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method == "work":
                    return acprt.Handled.no(dispatch.replace({"text": "\ud800"}))
                return acprt.Handled.no(dispatch)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"] == {"code": -32603, "message": "Internal error"}
                log.clear()

        run(main())

    @pytest.mark.parametrize("kind", ["method", "thread", "request", "callback"])
    def test_more_than_an_exception_ends_the_connection(self, run, kind):
        """DL-10 diverges (PY-13): exceptions are contained; SystemExit and its like end the connection (PY-14)."""

        class Stop(BaseException):
            """Neither an Exception nor a cancellation."""

        endpoint = acprt.Endpoint()

        if kind == "method":

            @endpoint.method("work")
            async def work(params: Any) -> None:
                raise Stop

        elif kind == "thread":

            @endpoint.method("work")
            def work_in_thread(params: Any) -> Any:
                async def stop() -> None:
                    raise Stop

                return stop()

        else:

            @endpoint.on_receive_request("work")
            async def work_ordered(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                if kind == "request":
                    raise Stop

                async def callback(result: Any) -> None:
                    raise Stop

                cx.send_request("inner").on_receiving_result(callback)
                responder.respond(None)

        async def main():
            near, far = acprt.memory_pair()
            serving = asyncio.create_task(endpoint.serve(far))
            peer = RawPeer(near)
            peer.request(1, "work")
            if kind == "callback":
                await peer.receive()
                await peer.receive()
                peer.send(answer(1))
            await asyncio.wait([serving])
            assert isinstance(serving.exception(), Stop)
            await peer.aclose()

        run(main())


class TestTearingDown:
    """What is still dispatched when the connection ends: nothing."""

    @pytest.mark.parametrize("as_batch", [False, True])
    def test_nothing_runs_behind_a_handler_that_swallows_its_cancellation(self, run, as_batch):
        """DEC-18, DL-01: neither the next message nor the next member of a batch."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()
            entered = asyncio.Event()

            @endpoint.on_receive_notification
            async def swallow(note: Note) -> None:
                log.append(note.text)
                entered.set()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await endpoint.open(near)
            notes = [note("1"), note("2")]
            peer.send(*([notes] if as_batch else notes))
            await entered.wait()
            await cx.aclose()
            assert log == ["1"]
            await peer.aclose()

        run(main())
