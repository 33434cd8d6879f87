"""What leaves, in which shape and in which order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of, raw_server_for
from tests.runtime.golden import Stash, batch, brief, call, endpoint, ok
from tests.runtime.scripted import scripted, until_idle
from tests.runtime.watching import WatchingTransport


class Unwritable:
    """A value that has no JSON."""


class Hello(acprt.Request[Any], method="hello/say"):
    first_name: str = ""


class Progress(acprt.Notification, method="hello/progress"):
    percent: int


class TestShape:
    """What a message looks like on the wire."""

    def test_members_their_order_and_their_spacing(self, run):
        """OU-11: compact, UTF-8 as it is, in the order of the specification."""

        async def main():
            transport = WatchingTransport()
            served = endpoint()
            cx = await served.open(transport)
            cx.send_request("ask", {"b": "\u00e9", "a": [1, None]}).detach()
            cx.send_notification("tell", ["\U0001f600"])
            transport.deliver(call("1", params='{"z":1,"a":2}'), call('"x"', "nope"))
            await until_idle()
            await cx.aclose()
            assert b"".join(transport.chunks).decode().splitlines() == [
                '{"jsonrpc":"2.0","id":1,"method":"ask","params":{"b":"\u00e9","a":[1,null]}}',
                '{"jsonrpc":"2.0","method":"tell","params":["\U0001f600"]}',
                '{"jsonrpc":"2.0","id":1,"result":{"z":1,"a":2}}',
                '{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found","data":"nope"}}',
            ]

        run(main())

    @pytest.mark.parametrize(
        ("params", "written"),
        [
            (None, None),
            ({}, b"{}"),
            ([], b"[]"),
            ((1, 2), b"[1,2]"),
            ([1, {"a": None}], b'[1,{"a":null}]'),
            (msgspec.Raw(b'{"as": "it came"}'), b'{"as": "it came"}'),
            (msgspec.Raw(b'{\n "on": "lines"\r\n}'), b'{"on":"lines"}'),
        ],
        ids=["none", "object", "array", "tuple", "nested", "raw", "raw over lines"],
    )
    def test_params_are_sent_as_they_are_and_none_is_no_member(self, run, params, written):
        """OU-08, OU-12."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                cx.send_request("ask", params).detach()
                cx.send_notification("tell", params)
                tail = b"}" if written is None else b',"params":' + written + b"}"
                assert await peer.receive_raw() == b'{"jsonrpc":"2.0","id":1,"method":"ask"' + tail
                assert await peer.receive_raw() == b'{"jsonrpc":"2.0","method":"tell"' + tail

        run(main())

    def test_typed_messages_are_objects_in_camel_case_without_defaults(self, run):
        """OU-08, OU-11."""

        async def main():
            async with raw_server_for(endpoint()) as (cx, peer):
                cx.send_request(Hello(first_name="Ada")).detach()
                cx.send_request(Hello()).detach()
                cx.send_notification(Progress(percent=5))
                assert [await peer.receive() for _ in range(3)] == [
                    {"jsonrpc": "2.0", "id": 1, "method": "hello/say", "params": {"firstName": "Ada"}},
                    {"jsonrpc": "2.0", "id": 2, "method": "hello/say", "params": {}},
                    {"jsonrpc": "2.0", "method": "hello/progress", "params": {"percent": 5}},
                ]

        run(main())

    def test_what_came_without_params_goes_on_without_params(self, run):
        """OU-08, FR-24: `raw_params` are for forwarding, whatever they are."""

        async def main():
            served = acprt.Endpoint("served")

            @served.on_receive_dispatch
            async def forward(dispatch: acprt.Dispatch[Any], cx: acprt.Connection) -> None:
                cx.send_notification(f"forwarded {dispatch.method}", dispatch.raw_params)

            async with raw_client_of(served) as peer:
                peer.notify("a")
                peer.notify("b", None)
                peer.notify("c", {"_meta": {"x.y": 1}})
                assert [(await peer.receive()).get("params", "none") for _ in range(3)] == [
                    "none",
                    "none",
                    {"_meta": {"x.y": 1}},
                ]

        run(main())

    def test_every_write_ends_with_a_line_feed(self, run):
        """OU-12: a message is never split over two writes of ours, and many may share one."""

        async def main():
            transport = WatchingTransport()
            cx = await acprt.Endpoint("a").open(transport)
            for number in range(50):
                cx.send_notification("tell", ["\n" * number, "x" * 5_000])
            await until_idle()
            await cx.aclose()
            assert all(chunk.endswith(b"\n") for chunk in transport.chunks)
            lines = b"".join(transport.chunks).split(b"\n")[:-1]
            assert [msgspec.json.decode(line)["params"][0] for line in lines] == ["\n" * n for n in range(50)]
            assert len(transport.chunks) < 50

        run(main())


class TestAnswers:
    """An answer that cannot be written is still an answer."""

    @pytest.mark.parametrize(
        "value", [Unwritable(), "\ud800", {"a": ["\udfff"]}, {(1, 2): 3}], ids=["object", "surrogate", "nested", "key"]
    )
    def test_an_answer_that_cannot_be_written_is_an_error_for_its_request(self, run, value):
        """OU-13, RS-08: ordered handlers and tasks alike; the connection lives."""

        async def main():
            served = endpoint()

            @served.on_receive_request("ordered")
            async def ordered(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
                responder.respond(value)

            @served.method("task")
            async def task(_params: Any) -> Any:
                return value

            @served.method("raises")
            async def raises(_params: Any) -> Any:
                raise acprt.RpcError(5, "bad data", value)

            async with raw_client_of(served) as peer:
                for id, method in enumerate(("ordered", "task", "raises")):
                    peer.request(id, method)
                replies = sorted([await peer.receive() for _ in range(3)], key=lambda reply: reply["id"])
                assert [reply["error"]["code"] for reply in replies] == [-32603] * 3
                assert replies[0]["error"]["data"]["phase"] == "serialization"
                peer.request(9, "echo", [])
                assert brief(await peer.receive()) == ok(9, [])

        run(main())

    def test_numbers_that_json_lacks_become_null(self, run):
        """OU-13: NaN and the infinities."""

        async def main():
            served = acprt.Endpoint("served")

            @served.method("numbers")
            async def numbers(_params: Any) -> list[float]:
                return [float("nan"), float("inf"), float("-inf"), 0.5]

            async with raw_client_of(served) as peer:
                peer.request(1, "numbers")
                assert (await peer.receive())["result"] == [None, None, None, 0.5]

        run(main())


class TestOrder:
    """First in, first out, whatever it is."""

    def test_everything_leaves_in_the_order_in_which_it_was_sent(self, run):
        """OU-10: requests, notifications, answers, cancels and arrays, through a pipe that stalls."""

        async def main():
            stash = Stash()
            async with scripted(stash.endpoint) as (cx, transport):
                transport.deliver(call("1", "stash"), call("2", "stash"), batch(call("3"), call("4", "stash")))
                await until_idle()
                transport.stall()
                cx.send_notification("one")
                sent = cx.send_request("two")
                stash.responders[1].respond("three")
                sent.cancel()
                stash.responders[2].respond("five")
                stash.responders[0].respond_with_error(acprt.RpcError(6, "six"))
                cx.send_notification("seven")
                transport.flow()
                await until_idle()
                written = [
                    [reply["id"] for reply in line] if isinstance(line, list) else line.get("method", line.get("id"))
                    for line in transport.written
                ]
            assert written == ["one", "two", 2, "$/cancel_request", [3, 4], 1, "seven"]

        run(main())

    def test_a_notification_sent_before_the_answer_leaves_before_it(self, run):
        """OU-10."""

        async def main():
            served = acprt.Endpoint("served")

            @served.method
            async def hello(request: Hello, cx: acprt.Connection) -> str:
                cx.send_notification(Progress(percent=50))
                return "done"

            async with raw_client_of(served) as peer:
                for id in range(20):
                    peer.request(id, "hello/say")
                for id in range(20):
                    assert (await peer.receive())["method"] == "hello/progress"
                    assert brief(await peer.receive()) == ok(id, "done")

        run(main())

    def test_a_dropped_request_is_written_and_then_cancelled(self, run):
        """OU-05, SR-13: both, in that order, also when nothing was written yet."""

        async def main():
            async with scripted(acprt.Endpoint("a")) as (cx, transport):
                transport.stall()
                cx.send_notification("fills the pipe")
                cx.send_request("ask")
                transport.flow()
                await until_idle()
                assert [line["method"] for line in transport.written] == ["fills the pipe", "ask", "$/cancel_request"]

        run(main())
