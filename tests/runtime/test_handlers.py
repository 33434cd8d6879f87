"""The handler chain: who is asked in which order, what a return value says, and what nobody claimed."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for, turns
from tests.runtime.ordered import Note, answer, note


class HelloReply(msgspec.Struct, rename="camel"):
    greeting: str


class Hello(acprt.Request[HelloReply], method="hello"):
    first_name: str


class Other(acprt.Notification, method="other"):
    number: int = 0


Pass = acprt.Handled


class TestOrder:
    """Registration order; the first claim ends the walk."""

    def test_first_claim_wins(self, run):
        """HC-01, HC-02: None claims; `Handled.no` passes on; what stands behind a claim is not asked."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request
            async def declines(request: Hello, responder: acprt.Responder[HelloReply]) -> acprt.Handled:
                log.append("declines")
                return Pass.no()

            @endpoint.on_receive_dispatch
            async def watches(dispatch: acprt.Dispatch) -> acprt.Handled:
                log.append(f"watches {dispatch.method}")
                return Pass.no(dispatch)

            @endpoint.on_receive_request
            async def claims(request: Hello, responder: acprt.Responder[HelloReply]) -> None:
                log.append("claims")
                responder.respond(HelloReply(greeting=request.first_name))

            @endpoint.method
            async def never(request: Hello) -> HelloReply:
                raise AssertionError("never asked")

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "hello", {"firstName": "Ada"})
                assert (await peer.receive())["result"] == {"greeting": "Ada"}
                assert log == ["declines", "watches hello", "claims"]

        run(main())

    def test_catch_alls_keep_their_place(self, run):
        """HC-01: a handler for everything stands where it was registered, between the typed ones."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            def hearing(name: str) -> Any:
                async def hear(params: Any) -> acprt.Handled:
                    log.append(name)
                    return Pass.no()

                return hear

            def watching(name: str) -> Any:
                async def watch(dispatch: acprt.Dispatch) -> acprt.Handled:
                    log.append(name)
                    return Pass.no()

                return watch

            endpoint.on_receive_dispatch(watching("all 1"))
            endpoint.on_receive_notification("note")(hearing("note 1"))
            endpoint.on_receive_notification("other")(hearing("other"))
            endpoint.on_receive_dispatch(watching("all 2"))
            endpoint.on_receive_notification("note", "other")(hearing("both"))
            async with raw_client_of(endpoint) as peer:
                peer.send(note("x"))
                await turns()
                assert log == ["all 1", "note 1", "all 2", "both"]
                log.clear()
                peer.notify("other")
                await turns()
                assert log == ["all 1", "other", "all 2", "both"]

        run(main())

    def test_ordered_handler_is_not_reentered(self, run):
        """HC-12: while one call of a handler waits, no other call of it runs."""

        async def main():
            inside = 0
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification
            async def on_note(note: Note) -> None:
                nonlocal inside
                inside += 1
                assert inside == 1
                await turns(5)
                inside -= 1

            async with raw_client_of(endpoint) as peer:
                peer.send(*(note(str(i)) for i in range(10)))
                assert await peer.settled() == []

        run(main())

    def test_long_chain_needs_no_deep_stack(self, run):
        """HC-14: 1,000 handlers that decline are walked by a loop: a small stack and a low recursion limit do."""

        async def main():
            endpoint = acprt.Endpoint()
            count = 0

            async def decline(dispatch: acprt.Dispatch) -> acprt.Handled:
                nonlocal count
                count += 1
                return Pass.no(dispatch)

            for _ in range(1000):
                endpoint.on_receive_dispatch(decline)
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"]["code"] == acprt.ErrorCode.METHOD_NOT_FOUND
                assert count == 1000

        failed: list[BaseException] = []

        def on_small_stack() -> None:
            try:
                run(main())
            except BaseException as error:  # handed to the test
                failed.append(error)

        limit, size = sys.getrecursionlimit(), threading.stack_size(512 * 1024)
        sys.setrecursionlimit(400)
        try:
            thread = threading.Thread(target=on_small_stack)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
        assert not failed

    def test_merged_handlers_follow_in_order(self, run):
        """HC-13: `include` appends the other endpoint's handlers as they are now; both endpoints stay usable."""

        async def main():
            log: list[str] = []

            def hearing(name: str) -> Any:
                async def hear(note: Note) -> acprt.Handled:
                    log.append(name)
                    return Pass.no()

                return hear

            first, second = acprt.Endpoint("first"), acprt.Endpoint("second")
            first.on_receive_notification(Note)(hearing("first"))
            second.on_receive_notification(Note)(hearing("second 1"))
            second.on_receive_notification(Note)(hearing("second 2"))
            assert first.include(second) is first
            first.on_receive_notification(Note)(hearing("first again"))
            second.on_receive_notification(Note)(hearing("too late"))
            async with raw_client_of(first) as peer:
                peer.send(note(""))
                await turns()
                assert log == ["first", "second 1", "second 2", "first again"]
            log.clear()
            async with raw_client_of(second) as peer:
                peer.send(note(""))
                await turns()
                assert log == ["second 1", "second 2", "too late"]

        run(main())

    def test_shared_handlers_keep_their_place_in_each_endpoint(self, run):
        """HC-13, HC-01: opening a connection of a merged endpoint does not disturb one of the whole."""

        async def main():
            shared = acprt.Endpoint("shared")
            heard: list[int] = []

            @shared.on_receive_notification
            async def other(note: Other) -> None:
                heard.append(note.number)

            whole = acprt.Endpoint("whole")

            @whole.on_receive_notification
            async def becomes_other(note: Note) -> acprt.Handled:
                return Pass.no(Other(number=7))

            whole.include(shared)
            async with raw_client_of(whole) as peer, raw_client_of(shared):
                await turns()
                peer.send(note(""))
                await peer.settled()
                assert heard == [7]

        run(main())


class TestRetry:
    """`retry=True` along the chain."""

    @pytest.mark.parametrize("where", ["first", "second", "both"])
    def test_one_wish_is_enough(self, run, where):
        """HC-09: retries are or-ed along the chain, whoever asked; nobody answers the parked request."""

        async def main():
            endpoint = acprt.Endpoint()

            def declining(retry: bool) -> Any:
                async def decline(params: Any, responder: acprt.Responder[Any]) -> acprt.Handled:
                    return Pass.no(retry=retry)

                return decline

            endpoint.on_receive_request("work")(declining(where in ("first", "both")))
            endpoint.on_receive_request("work")(declining(where in ("second", "both")))
            async with raw_server_for(endpoint) as (cx, peer):
                peer.request(1, "work")
                assert await peer.settled() == []
                assert [request.method for request in cx.status().in_flight] == ["work"]

        run(main())

    def test_later_claim_cancels_the_wish(self, run):
        """HC-09: a claim is a claim."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("work")
            async def decline(params: Any, responder: acprt.Responder[Any]) -> acprt.Handled:
                return Pass.no(retry=True)

            @endpoint.method("work")
            async def claim(params: Any) -> str:
                return "claimed"

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["result"] == "claimed"

        run(main())


class TestUnclaimed:
    """What happens to a message that no handler took."""

    @pytest.mark.parametrize("declined", [False, True])
    def test_request_is_answered_method_not_found(self, run, declined):
        """UN-01, UN-05: -32601 with the bare method name, for unknown and for declined ones."""

        async def main():
            endpoint = acprt.Endpoint()

            if declined:

                @endpoint.on_receive_dispatch
                async def decline(dispatch: acprt.Dispatch) -> acprt.Handled:
                    return Pass.no(dispatch)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "no/such", {"x": 1})
                assert await peer.receive() == {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "error": {"code": -32601, "message": "Method not found", "data": "no/such"},
                }

        run(main())

    @pytest.mark.parametrize("method", ["$/progress", "_x.ai/thing", "unknown"])
    @pytest.mark.parametrize("declined", [False, True])
    def test_notification_is_ignored(self, run, method, declined, caplog):
        """UN-02: a debug line, whatever it is called."""
        caplog.set_level(logging.DEBUG, "acprt.dispatch")

        async def main():
            endpoint = acprt.Endpoint()

            if declined:

                @endpoint.on_receive_notification(method)
                async def decline(params: Any) -> acprt.Handled:
                    return Pass.no()

            async with raw_client_of(endpoint) as peer:
                peer.notify(method, {"x": 1})
                assert await peer.settled() == []

        run(main())
        assert f"ignored notification {method}" in caplog.text
        assert not [record for record in caplog.records if record.levelno > logging.DEBUG]

    def test_response_goes_to_its_waiter(self, run):
        """UN-03, UN-05: dispatch handlers that decline are in nobody's way."""

        async def main():
            endpoint = acprt.Endpoint()

            for returned in (Pass.no(), None):

                @endpoint.on_receive_dispatch
                async def decline(dispatch: acprt.Dispatch, returned: Any = returned) -> acprt.Handled:
                    return Pass.no(dispatch) if returned is None else Pass.no()

            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work").block_task())
                await turns()
                peer.send(answer(1, "mine"))
                assert await waiter == "mine"

        run(main())

    @pytest.mark.parametrize("kind", ["request", "notification"])
    def test_wish_to_retry_outranks_that(self, run, kind):
        """UN-04: parked instead of answered or ignored; a handler that comes later gets it."""

        async def main():
            taken: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def park(dispatch: acprt.Dispatch) -> acprt.Handled:
                return Pass.no(dispatch, retry=dispatch.method == "later")

            async with raw_server_for(endpoint) as (cx, peer):
                if kind == "request":
                    peer.request(1, "later")
                else:
                    peer.notify("later")
                assert await peer.settled() == []

                async def take(dispatch: acprt.Dispatch) -> acprt.Handled | None:
                    if dispatch.method != "later":
                        return Pass.no(dispatch)
                    taken.append(dispatch.kind)
                    if dispatch.responder is not None:
                        dispatch.responder.respond("late")
                    return None

                cx.add_dynamic_handler(take).detach()
                lines = await peer.settled()
                assert taken == [kind]
                assert [line.get("result") for line in lines] == (["late"] if kind == "request" else [])

        run(main())

    def test_cancel_sent_as_a_request_is_unknown(self, run):
        """UN-06: it cancels nothing and is answered like any other unknown request."""

        async def main():
            endpoint = acprt.Endpoint()
            kept: list[acprt.Responder[Any]] = []

            @endpoint.on_receive_request("work")
            async def work(params: Any, responder: acprt.Responder[Any]) -> None:
                kept.append(responder)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                peer.request(2, "$/cancel_request", {"requestId": 1})
                line = await peer.receive()
                assert (line["id"], line["error"]["data"]) == (2, "$/cancel_request")
                assert not kept[0].cancellation.is_cancelled
                kept.pop().respond(None)
                await peer.receive()

        run(main())
