"""`method` handlers and the peer's cancel: the task is cancelled, and answered in any case."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of

CANCELLED = {"code": -32800, "message": "Request cancelled"}


INTERNAL = {"code": -32603, "message": "Internal error"}


class TestCancel:
    """The peer's cancel (DEC-9)."""

    @staticmethod
    def waiting(on_cancel: Callable[[], Any]) -> tuple[acprt.Endpoint, asyncio.Event]:
        """An endpoint whose handler waits; `on_cancel` says what it does when it is cancelled."""
        endpoint, entered = acprt.Endpoint(), asyncio.Event()

        @endpoint.method("work")
        async def work(params: Any) -> Any:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return on_cancel()

        return endpoint, entered

    @staticmethod
    def _reraise() -> None:
        raise asyncio.CancelledError

    @staticmethod
    def _fail() -> None:
        raise ValueError("while cancelled")

    @staticmethod
    def _refuse() -> None:
        raise acprt.RpcError(7, "mine")

    async def _cancelled(self, on_cancel: Callable[[], Any]) -> Any:
        endpoint, entered = self.waiting(on_cancel)
        async with raw_client_of(endpoint) as peer:
            peer.request(1, "work")
            await entered.wait()
            peer.cancel(1)
            line = await peer.receive()
            assert line["id"] == 1
            assert await peer.settled() == []
            return line

    def test_task_is_cancelled_and_answered(self, run, caplog):
        """DEC-9: -32800, without a word in the log."""
        assert run(self._cancelled(self._reraise))["error"] == CANCELLED
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    def test_value_returned_anyway_is_the_answer(self, run):
        """DEC-9, CA-01: a handler may finish what it has."""
        assert run(self._cancelled(lambda: "partial"))["result"] == "partial"

    @pytest.mark.parametrize("what", ["exception", "RpcError"])
    def test_exception_on_the_way_out_is_answered_cancelled(self, run, what, caplog):
        """DEC-9: any exception of a cancelled handler is answered -32800; it is logged."""
        caplog.set_level(logging.DEBUG, "acprt.dispatch")
        assert run(self._cancelled(self._fail if what == "exception" else self._refuse))["error"] == CANCELLED
        assert ("while cancelled" if what == "exception" else "[7] mine") in caplog.text

    @pytest.mark.parametrize("kind", ["task", "thread"])
    @pytest.mark.parametrize("together", [True, False], ids=["one write", "two writes"])
    def test_cancel_before_the_first_step(self, run, kind, together):
        """DEC-10: answered once, at receipt; the handler never begins, though its task may exist by then."""

        async def main():
            endpoint = acprt.Endpoint(limits=acprt.Limits(sync_threads=1))
            began: list[Any] = []

            async def in_task(params: Any) -> None:
                began.append(params)

            handler: Callable[..., Any] = in_task if kind == "task" else began.append
            endpoint.method("work")(handler)
            async with raw_client_of(endpoint) as peer:
                await peer.settled()  # the loop waits for input, so a request is begun as soon as it is read
                work = {"jsonrpc": "2.0", "id": 1, "method": "work"}
                cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
                if together:
                    peer.send(work, cancel)
                else:
                    peer.send(work)
                    peer.send(cancel)
                assert (await peer.receive())["error"] == CANCELLED
                peer.request(2, "work", ["next"])
                assert (await peer.receive())["id"] == 2
                assert began == [["next"]]

        run(main())

    def test_cancel_before_the_first_step_of_one_that_others_declined(self, run):
        """DEC-10: the same when an ordered handler had the request before."""

        async def main():
            endpoint = acprt.Endpoint()
            began: list[Any] = []

            @endpoint.on_receive_dispatch
            async def look(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
                return acprt.Handled.no()

            @endpoint.method("work")
            async def work(params: Any) -> None:
                began.append(params)

            async with raw_client_of(endpoint) as peer:
                cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
                peer.send({"jsonrpc": "2.0", "id": 1, "method": "work"}, cancel)
                assert (await peer.receive())["error"] == CANCELLED
                peer.request(2, "work", ["next"])
                assert (await peer.receive())["id"] == 2
                assert began == [["next"]]

        run(main())

    def test_second_cancel_does_not_hurt_the_clean_up(self, run):
        """CA-06: a handler that awaits its clean-up is cancelled once, however often the peer asks."""

        async def main():
            endpoint = acprt.Endpoint()
            entered, cleaning, clean = asyncio.Event(), asyncio.Event(), asyncio.Event()

            @endpoint.method("work")
            async def work(params: Any) -> str:
                entered.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cleaning.set()
                    await clean.wait()
                return "never"

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await entered.wait()
                peer.cancel(1)
                await cleaning.wait()
                peer.cancel(1)
                assert await peer.settled() == []
                clean.set()
                assert (await peer.receive())["error"] == CANCELLED

        run(main())

    @pytest.mark.parametrize("how", ["raise", "inner task"])
    def test_cancellation_from_inside_is_a_failure(self, run, how, caplog):
        """PY-11: nobody asked, so it is never -32800: a bare -32603 and a line in the log."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("work")
            async def work(params: Any) -> None:
                if how == "raise":
                    raise asyncio.CancelledError
                inner = asyncio.create_task(asyncio.Event().wait())
                inner.cancel()
                await inner

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"] == INTERNAL

        run(main())
        assert "was cancelled from inside" in caplog.text

    def test_task_that_is_cancelled_by_others_is_answered_as_shutting_down(self, run, caplog):
        """DEC-25: somebody who ends all tasks, as `asyncio.run` does, is no failure of the handler."""

        async def main():
            endpoint = acprt.Endpoint()
            tasks: list[asyncio.Task[Any]] = []
            entered = asyncio.Event()

            @endpoint.method("work")
            async def work(params: Any) -> None:
                task = asyncio.current_task()
                assert task is not None
                tasks.append(task)
                entered.set()
                await asyncio.Event().wait()

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await entered.wait()
                tasks.pop().cancel()
                assert (await peer.receive())["error"] == INTERNAL | {"data": {"reason": "shutting_down"}}

        run(main())
        assert "was cancelled from inside" not in caplog.text

    @pytest.mark.parametrize("closes", [False, True], ids=["closed by its peer", "closes itself"])
    def test_task_that_outlives_its_answer_ends_with_the_connection(self, run, closes):
        """A wing may answer for a handler that still cleans up: closing waits for it, as for the others."""

        async def main():
            endpoint, entered = acprt.Endpoint(), asyncio.Event()
            cleaned: list[int] = []

            @endpoint.method("work")
            async def work(params: Any, cx: acprt.Connection) -> None:
                request = cx.inbound.find(1)
                assert request is not None
                request.answer("early")
                entered.set()
                try:
                    if closes:
                        await cx.aclose()  # returns at once in a task of the connection
                        cleaned.append(0)
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                    cleaned.append(1)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                await entered.wait()
                assert (await peer.receive())["result"] == "early"
            assert cleaned == ([0, 1] if closes else [1])

        run(main())

    def test_silent_dialect_writes_nothing(self, run):
        """DEC-9: neither an error nor the value that the handler returns anyway."""

        class Silent(acprt.Dialect):
            answers_cancelled = False

        async def main():
            for on_cancel in (self._reraise, self._fail, lambda: "partial"):
                endpoint, entered = self.waiting(on_cancel)
                endpoint.dialect = Silent()
                async with raw_client_of(endpoint) as peer:
                    peer.request(1, "work")
                    await entered.wait()
                    peer.cancel(1)
                    assert await peer.settled() == []

        run(main())

    def test_handler_takes_its_requests_with_it(self, run):
        """SR-14: a request that the cancelled handler waits for is cancelled, too."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.method("work")
            async def work(params: Any, cx: acprt.Connection) -> Any:
                return await cx.send_request("inner").block_task()

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["method"] == "inner"
                peer.cancel(1)
                lines = [await peer.receive(), await peer.receive()]
                assert {"jsonrpc": "2.0", "id": 1, "error": CANCELLED} in lines
                assert {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}} in lines

        run(main())
