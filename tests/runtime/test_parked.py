"""Messages parked until a handler takes them: who is offered what, in which order, and what becomes of the rest."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for, turns
from tests.runtime.ordered import Held, Note, answer, note


class Ask(acprt.Request[str], method="ask"):
    text: str = ""


def parking(log: list[str] | None = None, *kinds: str) -> acprt.Endpoint:
    """An endpoint that parks what it does not know: requests and notifications, or what `kinds` names."""
    endpoint = acprt.Endpoint("near")

    @endpoint.on_receive_dispatch
    async def park(dispatch: acprt.Dispatch) -> acprt.Handled:
        if log is not None:
            log.append(f"endpoint {dispatch.method}")
        settles = dispatch.method == "acprt-test/no-such-method"
        return acprt.Handled.no(dispatch, retry=dispatch.kind in (kinds or ("request", "notification")) and not settles)

    return endpoint


def logging_notes(log: list[str], prefix: str = "", *, declines: bool = False) -> Any:
    async def hear(note: Note) -> acprt.Handled | None:
        log.append(prefix + note.text)
        return acprt.Handled.no() if declines else None

    return hear


class TestParked:
    """Messages that somebody asked to offer again."""

    def test_new_handler_is_offered_what_is_parked(self, run):
        """DY-06: in arrival order, to the new handler only: neither the endpoint nor other dynamic handlers again."""

        async def main():
            log: list[str] = []
            async with raw_server_for(parking(log)) as (cx, peer):
                cx.add_dynamic_handler(logging_notes(log, "old ", declines=True)).detach()
                peer.send(note("1"), note("2"))
                await peer.settled()
                assert [entry for entry in log if "no-such" not in entry] == [
                    "endpoint note",
                    "old 1",
                    "endpoint note",
                    "old 2",
                ]
                log.clear()
                cx.add_dynamic_handler(logging_notes(log, "new ")).detach()
                await turns()
                assert log == ["new 1", "new 2"]
                log.clear()
                cx.add_dynamic_handler(logging_notes(log, "newest ")).detach()
                await turns()
                assert log == [], "what was taken is parked no more"

        run(main())

    def test_replay_never_runs_inside_the_registering_handler(self, run):
        """DY-06, PY-35: parked messages are offered between dispatches, before the next frame."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification("register")
            async def register(params: Any, cx: acprt.Connection) -> None:
                log.append("register starts")
                cx.add_dynamic_handler(logging_notes(log)).detach()
                await turns()
                log.append("register ends")

            @endpoint.on_receive_notification("next")
            async def following(params: Any) -> None:
                log.append("next")

            endpoint.include(parking())
            async with raw_client_of(endpoint) as peer:
                peer.send(note("parked"))
                await peer.settled()
                register_it = {"jsonrpc": "2.0", "method": "register"}
                peer.send(register_it, {"jsonrpc": "2.0", "method": "next"})
                await peer.settled()
                assert log == ["register starts", "register ends", "parked", "next"]

        run(main())

    def test_declined_it_stays_parked(self, run):
        """DY-07: whatever the new handler says of a retry; a later one may take it."""

        async def main():
            log: list[str] = []
            async with raw_server_for(parking()) as (cx, peer):
                peer.send(note("1"))
                await peer.settled()
                cx.add_dynamic_handler(logging_notes(log, "first ", declines=True)).detach()
                await turns()
                cx.add_dynamic_handler(logging_notes(log, "second ")).detach()
                await turns()
                assert log == ["first 1", "second 1"]

        run(main())

    @pytest.mark.parametrize("kind", ["request", "notification", "response"])
    def test_error_of_the_new_handler_ends_it(self, run, kind, caplog):
        """DY-08: a request is answered with it, a notification is logged, a response fails its waiter; none stays."""

        async def main():
            async def fail(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method != "work":
                    return acprt.Handled.no(dispatch)
                raise acprt.RpcError(6, "from the new one")

            async with raw_server_for(parking(None, kind)) as (cx, peer):
                waiter = None
                if kind == "request":
                    peer.request(1, "work")
                elif kind == "notification":
                    peer.notify("work")
                else:
                    waiter = asyncio.create_task(cx.send_request("work").block_task())
                    await peer.receive()
                    peer.send(answer(1))
                assert await peer.settled() == []
                guard = cx.add_dynamic_handler(fail)
                if kind == "request":
                    assert (await peer.receive())["error"] == {"code": 6, "message": "from the new one"}
                elif waiter is not None:
                    with pytest.raises(acprt.RpcError, match="from the new one"):
                        await waiter
                await turns()
                guard.close()
                seen: list[str] = []

                async def next_one(dispatch: acprt.Dispatch) -> acprt.Handled:
                    seen.append(dispatch.method)
                    return acprt.Handled.no(dispatch)

                cx.add_dynamic_handler(next_one).detach()
                await turns()
                assert seen == [], "it left the park"

        run(main())
        if kind == "notification":
            assert "notification work failed in" in caplog.text

    def test_handler_registered_while_a_message_is_offered_gets_it_when_parked(self, run):
        """DY-06: the message is parked after that registration, and still due to the handler that came too late."""

        async def main():
            log: list[str] = []

            async with raw_server_for(acprt.Endpoint()) as (cx, peer):

                async def register(note: Note) -> acprt.Handled:
                    cx.add_dynamic_handler(logging_notes(log)).detach()
                    return acprt.Handled.no(retry=True)

                cx.add_dynamic_handler(register).detach()
                peer.send(note("1"))
                await peer.settled()
                assert log == ["1"]

        run(main())

    def test_nothing_is_offered_twice_to_one_handler(self, run):
        """DY-06: registered by an ordered handler that then parks the same message, it is asked once."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification
            async def register(note: Note, cx: acprt.Connection) -> acprt.Handled:
                if note.text == "2":
                    cx.add_dynamic_handler(logging_notes(log, declines=True)).detach()
                return acprt.Handled.no(retry=True)

            async with raw_client_of(endpoint) as peer:
                peer.send(note("1"), note("2"))
                await peer.settled()
                assert sorted(log) == ["1", "2"]

        run(main())

    def test_park_is_bounded(self, run, caplog):
        """DY-09 diverges (PY-36): past the limit a request is answered -32601, a notification dropped, with a word."""

        async def main():
            endpoint = parking()
            endpoint.limits = acprt.Limits(parked_messages=2)
            log: list[str] = []
            async with raw_server_for(endpoint) as (cx, peer):
                peer.send(note("1"))
                peer.request(1, "ask")
                peer.send(note("lost"))
                peer.request(2, "ask")
                lines = await peer.settled()
                assert [(line["id"], line["error"]["code"]) for line in lines] == [(2, -32601)]
                cx.add_dynamic_handler(logging_notes(log)).detach()
                await turns()
                assert log == ["1"]
                peer.send(note("2"))
                await peer.settled()
                assert log == ["1", "2"]

        run(main())
        assert "note was not parked: 2 messages are" in caplog.text

    @pytest.mark.parametrize("end", ["eof", "close"])
    def test_parked_request_is_answered_at_the_end(self, run, end, caplog):
        """DY-09 diverges (PY-36): nobody will come any more: -32601, and the log tells what was lost."""

        async def main():
            near, far = acprt.memory_pair()
            peer = RawPeer(far)
            cx = await parking().open(near)
            peer.request(1, "ask")
            peer.send(note("n"))
            assert await peer.settled() == []
            if end == "eof":
                peer.close_write()
            else:
                await cx.aclose()
            error = (await peer.receive())["error"]
            assert (error["code"], error["data"]) == (-32601, "ask")
            await cx.aclose()
            await peer.aclose()

        run(main())
        assert "request ask was parked and no handler took it" in caplog.text
        assert "notification note was parked and no handler took it" in caplog.text

    def test_parked_request_can_be_cancelled(self, run):
        """DY-11: nobody has it, so it is answered -32800 at once, and no later handler is offered it (DEC-10)."""

        async def main():
            offered: list[Any] = []

            async def take(request: Ask, responder: acprt.Responder[str]) -> None:
                offered.append(responder.id)
                responder.respond("taken")

            async with raw_server_for(parking()) as (cx, peer):
                peer.request(1, "ask")
                peer.request(2, "ask")
                await peer.settled()
                peer.cancel(1)
                line = await peer.receive()
                assert (line["id"], line["error"]["code"]) == (1, acprt.ErrorCode.REQUEST_CANCELLED)
                cx.add_dynamic_handler(take).detach()
                assert (await peer.receive())["id"] == 2
                assert offered == [2]

        run(main())

    def test_parked_request_may_be_answered_by_who_kept_its_responder(self, run):
        """DY-06: parked or not, a kept responder answers; the late handler is not offered it any more."""

        async def main():
            kept: list[acprt.Responder[Any]] = []
            endpoint = acprt.Endpoint()
            log: list[Any] = []

            @endpoint.on_receive_request
            async def keep(request: Ask, responder: acprt.Responder[str]) -> acprt.Handled:
                kept.append(responder)
                return acprt.Handled.no(retry=True)

            async def take(request: Ask, responder: acprt.Responder[str]) -> None:
                log.append(request)

            async with raw_server_for(endpoint) as (cx, peer):
                peer.request(1, "ask")
                await peer.settled()
                kept.pop().respond("kept")
                assert (await peer.receive())["result"] == "kept"
                cx.add_dynamic_handler(take).detach()
                await turns()
                assert log == []

        run(main())

    def test_ended_ones_give_their_place_to_others_and_are_not_lost(self, run, caplog):
        """PY-36: cancelled by the peer while it was parked, a request neither fills the park nor is warned about."""

        async def main():
            endpoint = parking(None, "request")
            endpoint.limits = acprt.Limits(parked_messages=1)

            async def take(request: Ask, responder: acprt.Responder[str]) -> None:
                responder.respond("taken")

            async with raw_server_for(endpoint) as (cx, peer):
                peer.request(1, "ask")
                await peer.settled()
                peer.cancel(1)
                await peer.receive()
                peer.request(2, "ask")
                assert await peer.settled() == []
                with cx.add_dynamic_handler(take):
                    assert (await peer.receive())["result"] == "taken"
                peer.request(3, "ask")
                await peer.settled()
                peer.cancel(3)
                await peer.receive()

        run(main())
        assert [record.message for record in caplog.records if "parked" in record.message] == []


class TestAfterACallback:
    """Changes made by an ordered callback hold for the very next message."""

    def test_handler_installed_by_a_callback_meets_the_next_member(self, run):
        """DY-10: also inside one batch, and parked messages come before it."""

        async def main():
            log: list[str] = []
            async with raw_server_for(parking()) as (cx, peer):

                async def install(result: Any) -> None:
                    cx.add_dynamic_handler(logging_notes(log)).detach()
                    await turns()
                    log.append("installed")

                cx.send_request("session/new").on_receiving_result(install)
                await peer.receive()
                peer.send([note("early"), answer(1), note("next")], note("later"))
                await peer.settled()
                assert log == ["installed", "early", "next", "later"]

        run(main())

    def test_handler_removed_by_a_callback_is_gone_for_the_next_message(self, run):
        """DY-10, DY-02: the other way round."""

        async def main():
            log: list[str] = []
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                guard = cx.add_dynamic_handler(logging_notes(log))

                async def remove(result: Any) -> None:
                    guard.close()

                cx.send_request("session/close").on_receiving_result(remove)
                await peer.receive()
                peer.send(note("1"), answer(1), note("2"))
                await peer.settled()
                assert log == ["1"]

        run(main())

    def test_replay_waits_for_a_held_callback(self, run):
        """DY-10, OB-03: a handler registered from elsewhere meanwhile gets parked messages after the barrier."""

        async def main():
            log: list[str] = []
            async with raw_server_for(parking()) as (cx, peer):
                peer.send(note("parked"))
                await peer.settled()
                held = Held(log)
                cx.send_request("work").on_receiving_result(held)
                await peer.receive()
                peer.send(answer(1))
                await held.entered.wait()
                cx.add_dynamic_handler(logging_notes(log)).detach()
                await turns()
                assert log == ["callback starts"]
                held.release.set()
                await turns()
                assert log == ["callback starts", "callback ends", "parked"]

        run(main())

    def test_handler_registered_while_nothing_comes_is_offered_the_parked(self, run, caplog):
        """DY-06: the loop looks around by itself; it does not wait for the next frame."""
        caplog.set_level(logging.DEBUG, "acprt.dispatch")

        async def main():
            log: list[str] = []
            async with raw_server_for(parking()) as (cx, peer):
                peer.send(note("parked"))
                await peer.settled()
                cx.add_dynamic_handler(logging_notes(log)).detach()
                await turns()
                assert log == ["parked"]

        run(main())
        assert "parked notification note for a later handler" in caplog.text
