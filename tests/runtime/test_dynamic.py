"""Handlers that come and go while a connection runs: their guards and their place."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for, turns
from tests.runtime.ordered import Note, answer, note


class Ask(acprt.Request[str], method="ask"):
    text: str = ""


def logging_notes(log: list[str], prefix: str = "", *, declines: bool = False) -> Any:
    async def hear(note: Note) -> acprt.Handled | None:
        log.append(prefix + note.text)
        return acprt.Handled.no() if declines else None

    return hear


class TestGuard:
    """What keeps a dynamic handler registered."""

    def test_dropped_on_another_thread_it_ends_on_the_loop(self, run):
        """PY-03: a collector may run anywhere, while the loop walks the handlers."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                guards = [cx.add_dynamic_handler(logging_notes(log))]
                await peer.settled()
                removed_on: list[int] = []
                remove = guards[0]._remove
                assert remove is not None

                def watched() -> None:
                    removed_on.append(threading.get_ident())
                    remove()

                guards[0]._remove = watched
                dropping = threading.Thread(target=guards.clear)
                dropping.start()
                dropping.join()
                assert removed_on == []
                peer.send(note("1"))
                await peer.settled()
                assert removed_on == [threading.get_ident()]
                assert log == []

        run(main())

    @pytest.mark.parametrize("how", ["close", "with", "drop"])
    def test_it_ends_with_its_guard(self, run, how):
        """DY-01: `close()`, the end of a `with` block, or dropping the guard."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                guard = cx.add_dynamic_handler(logging_notes(log))
                peer.send(note("1"))
                await peer.settled()
                if how == "close":
                    guard.close()
                elif how == "with":
                    with guard:
                        peer.send(note("2"))
                        await peer.settled()
                else:
                    del guard
                    gc.collect()
                peer.send(note("3"))
                await peer.settled()
                assert log == (["1", "2"] if how == "with" else ["1"])

        run(main())

    def test_detached_it_stays(self, run):
        """DY-01: for the life of the connection, without a guard."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.add_dynamic_handler(logging_notes(log)).detach()
                gc.collect()
                peer.send(note("1"))
                await peer.settled()
                assert log == ["1"]

        run(main())

    def test_closing_takes_effect_at_once(self, run):
        """DY-02: also when the message that would meet it is being dispatched already."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()
            guards: list[acprt.HandlerGuard] = []

            @endpoint.on_receive_notification
            async def close_it(note: Note) -> acprt.Handled:
                if note.text == "close":
                    guards.pop().close()
                return acprt.Handled.no()

            async with raw_server_for(endpoint) as (cx, peer):
                guards.append(cx.add_dynamic_handler(logging_notes(log)))
                peer.send(note("1"), note("close"), note("2"))
                await peer.settled()
                assert log == ["1"]

        run(main())

    def test_one_dynamic_handler_may_end_another(self, run):
        """DY-02: in the same walk; one whose guard is gone declines everything."""

        async def main():
            log: list[str] = []
            guards: list[acprt.HandlerGuard] = []

            async def first(note: Note) -> acprt.Handled:
                log.append("first")
                guards.pop().close()
                return acprt.Handled.no()

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.add_dynamic_handler(first).detach()
                guards.append(cx.add_dynamic_handler(logging_notes(log, "second ")))
                peer.send(note("1"))
                await peer.settled()
                assert log == ["first"]

        run(main())

    def test_removal_is_idempotent(self, run):
        """DY-12: closed twice, closed after detaching, closed or dropped after the connection: nothing happens."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                guard = cx.add_dynamic_handler(logging_notes(log, "a "))
                other = cx.add_dynamic_handler(logging_notes(log, "b "))
                last = cx.add_dynamic_handler(logging_notes(log, "c "))
                guard.close()
                guard.close()
                other.detach()
                other.close()
                peer.send(note("1"))
                await peer.settled()
                assert log == ["b 1"]
            last.close()
            del guard, other, last
            gc.collect()

        run(main())

    def test_registration_on_a_connection_that_is_over_raises(self, run):
        """DY-03: with the reason, like any other use of it."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                pass
            with pytest.raises(acprt.RpcError) as caught:
                cx.add_dynamic_handler(logging_notes([]))
            assert caught.value.data["reason"] == "connection_closed"

        run(main())


class TestPlace:
    """Where a dynamic handler stands, and from when on."""

    def test_it_is_in_force_at_once(self, run):
        """DY-03, DY-13 diverge (PY-35): the next message meets it, even the rest of the walk that registered it."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification
            async def register(note: Note, cx: acprt.Connection) -> acprt.Handled:
                if not log:
                    log.append("registered")
                    cx.add_dynamic_handler(logging_notes(log)).detach()
                return acprt.Handled.no()

            async with raw_client_of(endpoint) as peer:
                peer.send(note("1"), note("2"))
                await peer.settled()
                assert log == ["registered", "1", "2"]

        run(main())

    @pytest.mark.parametrize("kind", ["request", "notification", "response"])
    def test_it_comes_after_the_endpoint_and_before_the_default(self, run, kind):
        """DY-04: for all three kinds of message."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            async def watch(dispatch: acprt.Dispatch) -> acprt.Handled:
                log.append(f"endpoint {dispatch.kind}")
                return acprt.Handled.no(dispatch)

            async def claim(dispatch: acprt.Dispatch) -> acprt.Handled | None:
                if dispatch.method != "work":
                    return acprt.Handled.no(dispatch)
                log.append(f"dynamic {dispatch.kind}")
                if dispatch.responder is not None:
                    dispatch.responder.respond("dynamic")
                if dispatch.router is not None:
                    dispatch.router.route("dynamic")
                return None

            endpoint.on_receive_dispatch(watch)
            async with raw_server_for(endpoint) as (cx, peer):
                cx.add_dynamic_handler(claim).detach()
                if kind == "request":
                    peer.request(1, "work")
                    assert (await peer.receive())["result"] == "dynamic"
                elif kind == "notification":
                    peer.notify("work")
                    await turns()
                else:
                    waiter = asyncio.create_task(cx.send_request("work").block_task())
                    await turns()
                    peer.send(answer(1))
                    assert await waiter == "dynamic"
                assert log == [f"endpoint {kind}", f"dynamic {kind}"]

        run(main())

    def test_several_stand_in_registration_order(self, run):
        """DY-05 diverges (PY-35): the order is that of registration, not an accident."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                for number in range(20):
                    cx.add_dynamic_handler(logging_notes(log, f"{number} ", declines=True)).detach()
                peer.send(note("x"))
                await peer.settled()
                assert log == [f"{number} x" for number in range(20)]

        run(main())

    def test_changed_message_reaches_the_later_ones(self, run):
        """DY-04, HC-02: what one dynamic handler changed, method included, is what those behind it are offered."""

        async def main():
            log: list[str] = []

            async def rename(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method == "old":
                    return acprt.Handled.no(dispatch.replace({"text": "renamed"}, method="note"))
                return acprt.Handled.no(dispatch)

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.add_dynamic_handler(rename).detach()
                cx.add_dynamic_handler(logging_notes(log)).detach()
                peer.notify("old")
                await peer.settled()
                assert log == ["renamed"]

        run(main())

    def test_kind_follows_from_the_annotation(self, run):
        """Requests, notifications and dispatches, in the shapes of the endpoint's decorators."""

        async def main():
            log: list[Any] = []

            async def ask(request: Ask, responder: acprt.Responder[str], cx: acprt.Connection) -> None:
                log.append(request)
                responder.respond(cx.name)

            async def typed(dispatch: acprt.Dispatch[Note]) -> None:
                log.append(dispatch.message)

            async with raw_server_for(acprt.Endpoint("near")) as (cx, peer):
                cx.add_dynamic_handler(ask).detach()
                cx.add_dynamic_handler(typed).detach()
                peer.request(1, "ask", {"text": "?"})
                peer.send(note("n"))
                assert (await peer.receive())["result"] == "near"
                await peer.settled()
                assert log == [Ask(text="?"), Note(text="n")]

        run(main())

    @pytest.mark.parametrize("wrong", ["sync", "shape", "type"])
    def test_wrong_handler_is_refused_at_once(self, run, wrong):
        """As with the endpoint's decorators, registration fails, not the first message."""

        def sync(note: Note) -> None: ...

        async def shape(note: Note, cx: acprt.Connection, more: int) -> None: ...

        async def of_int(note: int) -> None: ...

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, _peer):
                handlers: dict[str, Any] = {"sync": sync, "shape": shape, "type": of_int}
                with pytest.raises(TypeError, match=r"add_dynamic_handler|on_receive_dispatch"):
                    cx.add_dynamic_handler(handlers[wrong])

        run(main())
