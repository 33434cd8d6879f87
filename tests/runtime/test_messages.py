"""Bases of typed messages: plain msgspec data, bound to a wire method and, for requests, to the type of the reply."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_server_for, turns
from tests.runtime.ordered import answer

T = TypeVar("T")
V = TypeVar("V")


class Reply(msgspec.Struct, rename="camel"):
    line_count: int


class Count(acprt.Request[Reply], method="count/lines"):
    path_name: str
    deep_scan: bool = False


class Progress(acprt.Notification, method="count/progress"):
    per_cent: int = 0


class Unbound(acprt.Request[Reply]):
    path_name: str = ""


class UnboundNote(acprt.Notification):
    pass


class Bound(Unbound, method="bound"):
    more: int = 0


class Later(acprt.Request["DefinedLater"], method="later"):
    pass


class DefinedLater(msgspec.Struct):
    x: int


class Lost(acprt.Request["NowhereDefined"], method="lost"):  # type: ignore[name-defined]  # that is the case
    pass


class BadReply(msgspec.Struct):
    field: NowhereDefined  # type: ignore[name-defined]  # noqa: F821  # resolves nowhere, which is the case


class AsksForBadReply(acprt.Request[BadReply], method="bad-reply"):
    pass


class Get(acprt.Request[T], Generic[T]):
    """A generic base: its reply is named by its subclasses."""

    key: str = ""


class GetNumber(Get[int], method="get/number"):
    pass


class Pairs(acprt.Request[dict[T, V]], Generic[T, V]):
    """A generic base whose reply is made of its parameters."""


class Named(Pairs[str, V], Generic[V]):
    """One parameter filled in."""


class NamedPairs(Named[bool], method="named/pairs"):
    pass


class Anything(acprt.Request[Any], method="anything"):
    pass


class WithMethod(acprt.Request[None], method="tricky"):
    """A payload whose members have the names of the envelope."""

    method: str
    id: int
    params: list[int]
    jsonrpc: str = "1.0"


class Routed(acprt.Request[None], method="routed"):
    """A union member keeps its wire method as `.method`; the payload's own is renamed."""

    inner_method: str = msgspec.field(name="method")


class TestShape:
    """What a message is in Python and on the wire."""

    def test_camel_case_and_no_defaults_on_the_wire(self):
        """Fields are snake_case here, camelCase there, defaults omitted."""
        assert msgspec.json.encode(Count(path_name="a")) == b'{"pathName":"a"}'
        assert msgspec.json.encode(Count(path_name="a", deep_scan=True)) == b'{"pathName":"a","deepScan":true}'
        assert msgspec.json.decode(b'{"pathName":"a","unknown":1}', type=Count) == Count(path_name="a")
        assert msgspec.json.encode(Progress()) == b"{}"

    def test_fields_are_keyword_only(self):
        """DEC-3: in subclasses too, though msgspec does not inherit that."""
        with pytest.raises(TypeError):
            Count("a")  # type: ignore[call-arg]  # refused, which is the point
        with pytest.raises(TypeError):
            Bound("a", 1)  # type: ignore[call-arg]  # as above
        assert Bound(path_name="a", more=1).path_name == "a"

    def test_options_are_inherited_and_can_be_changed(self):
        """DEC-3, DEC-6: a subclass keeps rename and omit_defaults unless it says otherwise; msgspec's options work."""
        assert msgspec.json.encode(Bound(path_name="a")) == b'{"pathName":"a"}'

        class Strict(
            Count, method="strict", forbid_unknown_fields=True, omit_defaults=False, order=True, rename="upper"
        ):
            own_field: int = 0

        assert msgspec.json.encode(Strict(path_name="a")) == b'{"pathName":"a","deepScan":false,"OWN_FIELD":0}'
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(b'{"pathName":"a","x":1}', type=Strict)
        assert Strict(path_name="a") < Strict(path_name="b")
        assert acprt.method_of(Strict) == "strict"
        assert acprt.reply_type_of(Strict) is Reply

        class Still(acprt.Notification, method="still", frozen=True):  # type: ignore[misc]  # a rule of dataclasses
            x: int = 0

        still: Any = Still()
        with pytest.raises(AttributeError):
            still.x = 1
        assert len({still, Still(x=0)}) == 1

        with pytest.raises(TypeError):

            class Typo(acprt.Notification, metod="typo"):
                pass

    def test_members_with_names_of_the_envelope(self, run):
        """DEC-4: payload members called method, id, params or jsonrpc are the payload's own."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                cx.send_request(WithMethod(method="m", id=5, params=[1])).detach()
                assert await peer.receive() == {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tricky",
                    "params": {"method": "m", "id": 5, "params": [1]},
                }
                cx.send_request(Routed(inner_method="m")).detach()
                assert (await peer.receive())["params"] == {"method": "m"}

        run(main())

    def test_ok_and_err_match_by_position(self):
        """DEC-3: `case Ok(value)` and `case Err(error)`."""
        match acprt.Ok(3):
            case acprt.Ok(value):
                assert value == 3
        match acprt.Err(acprt.RpcError(1, "m")):
            case acprt.Err(error):
                assert error.code == 1


class TestMethod:
    """`method_of`."""

    def test_class_and_instance(self):
        """Read back from either."""
        assert acprt.method_of(Count) == acprt.method_of(Count(path_name="")) == "count/lines"
        assert acprt.method_of(Progress) == acprt.method_of(Progress()) == "count/progress"
        assert acprt.method_of(Bound) == "bound"

    @pytest.mark.parametrize("what", [Unbound, UnboundNote, Unbound(), acprt.Request, acprt.Notification])
    def test_base_without_a_method(self, what):
        """DEC-5: legal until it is sent or registered, then told by name."""
        name = (what if isinstance(what, type) else type(what)).__name__
        with pytest.raises(TypeError, match=f"{name} has no wire method"):
            acprt.method_of(what)

    @pytest.mark.parametrize("what", [int, 5, "text", Reply, Reply(1), None])
    def test_what_is_no_message(self, what):
        """A TypeError says so."""
        with pytest.raises(TypeError, match=r"is not an acprt\.Request or acprt\.Notification"):
            acprt.method_of(what)

    def test_sending_what_cannot_be_sent(self, run):
        """DEC-5, DEC-20: unbound classes, the wrong kind of message and what is no message are TypeErrors at once."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                send_request: Any = cx.send_request
                send_notification: Any = cx.send_notification
                for send, message in [
                    (send_request, Unbound()),
                    (send_request, Progress()),
                    (send_request, Reply(1)),
                    (send_request, 5),
                    (send_notification, UnboundNote()),
                    (send_notification, Count(path_name="")),
                    (send_notification, {"method": "m"}),
                ]:
                    with pytest.raises(TypeError):
                        send(message)
                assert await peer.settled() == []

        run(main())


class TestReplyTypes:
    """`reply_type_of`, and what an answer is decoded to."""

    def test_class_and_instance(self):
        """Read back from either, through subclasses and generic bases."""
        assert acprt.reply_type_of(Count) is Reply
        assert acprt.reply_type_of(Count(path_name="")) is Reply
        assert acprt.reply_type_of(Bound) is Reply
        assert acprt.reply_type_of(GetNumber) is int
        assert acprt.reply_type_of(Get[str]) is str
        assert acprt.reply_type_of(Get) is Any
        assert acprt.reply_type_of(Pairs[int, str]) == dict[int, str]
        assert acprt.reply_type_of(NamedPairs) == dict[str, bool]
        assert acprt.reply_type_of(Anything) is Any

    def test_reply_named_by_a_string(self, run):
        """DEC-5: `Request["Reply"]` may be defined further down in the module."""
        assert acprt.reply_type_of(Later) is DefinedLater

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request(Later()).block_task())
                await turns()
                peer.send(answer(1, {"x": 1}))
                assert await waiter == DefinedLater(1)

        run(main())

    @pytest.mark.parametrize("what", [Progress, Progress(), Reply, 5])
    def test_only_requests_have_one(self, what):
        """A TypeError for anything else."""
        with pytest.raises(TypeError, match="only requests have a reply"):
            acprt.reply_type_of(what)

    @pytest.mark.parametrize("message", [Lost(), AsksForBadReply()], ids=["name", "annotation"])
    def test_reply_that_cannot_be_decoded_is_a_type_error(self, run, message):
        """DEC-20: `send_request` raises TypeError only, and names the class whose annotation leads nowhere."""

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):
                with pytest.raises(TypeError, match=r"(Lost|BadReply).*NowhereDefined"):
                    cx.send_request(message)
                assert await peer.settled() == []

        run(main())

    def test_reply_of_any_type(self, run):
        """Any type that msgspec decodes: numbers, None, lists, unions; `Any` gives plain values."""

        class GetNone(Get[None], method="none"):
            pass

        class GetList(Get[list[Reply] | None], method="list"):
            pass

        async def main():
            async with raw_server_for(acprt.Endpoint()) as (cx, peer):

                async def ask(message: acprt.Request[T], result: Any) -> T:
                    sent = cx.send_request(message)
                    peer.send(answer(sent.id, result))
                    return await sent.block_task()

                assert await ask(GetNumber(), 5) == 5
                await ask(GetNone(), None)
                assert await ask(GetList(), [{"lineCount": 1}]) == [Reply(1)]
                assert await ask(GetList(), None) is None
                assert await ask(Anything(), {"x": [1, None]}) == {"x": [1, None]}

        run(main())
