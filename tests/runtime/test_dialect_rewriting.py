"""Hooks with which a dialect changes what passes: how lines are read, what is sent, and how a request ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

import acprt
from acprt.wire.frames import Frame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.lines import Line
from tests.runtime.scripted import ScriptedTransport, error, notification, request, result, until_idle


def speaking(dialect: acprt.Dialect, endpoint: acprt.Endpoint | None = None):
    """A scripted connection in that dialect, to be entered."""
    endpoint = endpoint or acprt.Endpoint("x")
    endpoint.dialect = dialect
    transport = ScriptedTransport()
    return endpoint.connect(transport), transport


class TestParse:
    def test_dialect_may_read_a_line_in_its_own_way(self, run):
        """What it returns is the frame, for whatever bytes."""

        class Shouting(acprt.Dialect):
            def parse(self, line: Line) -> Frame:
                return RequestFrame(7, "shout") if line == b"SHOUT" else parse(line)

        async def main():
            connection, transport = speaking(Shouting())
            async with connection:
                transport.deliver(b"SHOUT")
                transport.deliver(request(8, "calm"))
                await until_idle()
                assert transport.written == [
                    error(7, -32601, "Method not found", "shout"),
                    error(8, -32601, "Method not found", "calm"),
                ]

        run(main())


class TestRefusedRequests:
    def test_dialect_may_drop_what_it_refuses(self, run):
        """`answers_refused = False`: no answer is written, and nothing is left in the table."""

        class Deaf(acprt.Dialect):
            answers_refused = False

            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return acprt.RpcError.invalid_request() if frame.method == "no" else None

        async def main():
            connection, transport = speaking(Deaf())
            async with connection as cx:
                transport.deliver(request(1, "no"), request(2, "other"))
                await until_idle()
                assert transport.written == [error(2, -32601, "Method not found", "other")]
                assert cx.status().in_flight == []

        run(main())


class TestFollow:
    def test_answer_may_be_replaced_when_it_is_queued(self, run):
        """By the frame that the watch returns; None leaves it, and an end without an answer stays one."""
        watched: list[Any] = []

        class Stamping(acprt.Dialect):
            answers_cancelled = False

            def follow(self, frame: RequestFrame) -> Any:
                def watch(answer: ResponseFrame | None) -> ResponseFrame | None:
                    watched.append(frame.id)
                    if frame.method != "stamp" or answer is None:
                        return None
                    return ResponseFrame(frame.id, Raw(b'{"stamped":' + bytes(answer.result) + b"}"))

                return watch

        endpoint = acprt.Endpoint("x")

        @endpoint.method("stamp", "plain")
        async def answer(params: Any) -> int:
            return 5

        async def main():
            connection, transport = speaking(Stamping(), endpoint)
            async with connection:
                transport.deliver(request(1, "stamp"), request(2, "plain"), [request(3, "stamp")])
                transport.deliver(request(4, "stamp"), notification("$/cancel_request", {"requestId": 4}))
                await until_idle()
                written = sorted(transport.written, key=str)
                assert written == sorted(
                    [result(1, {"stamped": 5}), result(2, 5), [result(3, {"stamped": 5})]], key=str
                )
                assert sorted(watched) == [1, 2, 3, 4]

        run(main())


class TestOutgoing:
    def test_params_may_be_replaced_before_they_are_written(self, run):
        """By raw ones, for typed and untyped requests alike."""

        class Stamping(acprt.Dialect):
            def on_request_sent(self, id: Any, method: str, params: Any) -> acprt.RpcError | Raw | None:
                return Raw(b'{"stamped":true}') if method == "stamp" else None

        class Stamp(acprt.Request[Any], method="stamp"):
            own: int = 0

        async def main():
            connection, transport = speaking(Stamping())
            async with connection as cx:
                for sent in (cx.send_request(Stamp(own=1)), cx.send_request("stamp"), cx.send_request("m", {"own": 1})):
                    sent.detach()
                await until_idle()
                assert [line["params"] for line in transport.written] == [
                    {"stamped": True},
                    {"stamped": True},
                    {"own": 1},
                ]

        run(main())

    def test_cancel_may_go_another_way(self, run):
        """`build_cancel` returns None: nothing is written, the request is cancelled all the same."""
        told: list[Any] = []

        class Elsewhere(acprt.Dialect):
            answers_cancelled = False

            def build_cancel(self, id: Any, reason: str | None = None) -> tuple[str, Any] | None:
                told.append((id, reason))
                return None

        async def main():
            connection, transport = speaking(Elsewhere())
            async with connection as cx:
                sent = cx.send_request("m")
                await until_idle()
                sent.cancel(reason="why")
                with pytest.raises(acprt.RpcError):
                    await sent.block_task()
                assert transport.written == [request(1, "m")]
                assert told == [(1, "why")]

        run(main())


class TestEndByThePeer:
    def test_cancel_of_ours_is_an_answer_in_its_place(self, run):
        """`parse_cancel` returns a frame: what came before is handled first; handlers do not see the cancel."""
        steps: list[Any] = []

        class EndsOurs(acprt.Dialect):
            cancel_methods = frozenset({"end"})

            def parse_cancel(self, frame: NotificationFrame) -> Any:
                return ResponseFrame(msgspec.json.decode(frame.params)["id"], Raw(b'"ended"'))

        endpoint = acprt.Endpoint("x")

        @endpoint.on_receive_notification("note", "end")
        async def note(params: Any) -> None:
            steps.append("note")

        async def main():
            connection, transport = speaking(EndsOurs(), endpoint)
            async with connection as cx:
                sent = cx.send_request("m")

                async def ended(outcome: acprt.Result[Any]) -> None:
                    steps.append(outcome)

                sent.on_receiving_result(ended)
                transport.deliver(notification("note"), notification("end", {"id": 1}), notification("note"))
                await until_idle()
                assert steps == ["note", acprt.Ok("ended"), "note"]

        run(main())
