"""What a handler is offered, as what, and what it passes on to those behind it."""

from __future__ import annotations

import asyncio
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


class Bye(acprt.Request[None], method="bye"):
    pass


class Other(acprt.Notification, method="other"):
    number: int = 0


Pass = acprt.Handled


class TestTypes:
    """What a handler is offered, and as what."""

    def test_other_methods_pass_untouched(self, run):
        """HC-03: a typed handler looks at the method first; params that would not decode do not matter to it."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request
            async def hello(request: Hello, responder: acprt.Responder[HelloReply]) -> None:
                raise AssertionError("not its method")

            @endpoint.method("raw")
            async def raw(params: Any) -> Any:
                return params

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "raw", {"firstName": 5})
                assert (await peer.receive())["result"] == {"firstName": 5}

        run(main())

    @pytest.mark.parametrize("kind", ["method", "request", "dispatch"])
    def test_undecodable_params_stop_the_walk(self, run, kind):
        """HC-04, HC-05: -32602 with error, json and phase; later handlers, catch-alls included, are not asked."""

        async def main():
            endpoint = acprt.Endpoint()

            if kind == "method":

                @endpoint.method
                async def hello(request: Hello) -> HelloReply:
                    raise AssertionError("never called")

            elif kind == "request":

                @endpoint.on_receive_request
                async def hello_ordered(request: Hello, responder: acprt.Responder[HelloReply]) -> None:
                    raise AssertionError("never called")

            else:

                @endpoint.on_receive_dispatch
                async def hello_dispatch(dispatch: acprt.Dispatch[Hello]) -> None:
                    raise AssertionError("never called")

            @endpoint.on_receive_dispatch
            async def everything(dispatch: acprt.Dispatch) -> acprt.Handled:
                assert dispatch.method != "hello"
                return Pass.no(dispatch)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "hello", {"firstName": 5})
                error = (await peer.receive())["error"]
                assert (error["code"], error["message"]) == (-32602, "Invalid params")
                assert error["data"].keys() == {"error", "json", "phase"}
                assert error["data"]["json"] == {"firstName": 5}
                assert error["data"]["phase"] == "deserialization"
                assert "firstName" in error["data"]["error"]
                peer.request(2, "hello")
                assert (await peer.receive())["error"]["data"]["json"] is None
                assert await peer.settled() == []

        run(main())

    def test_undecodable_notification_is_logged(self, run, caplog):
        """HC-04: nobody is answered; the handlers behind are not asked; the connection lives."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification
            async def other(note: Other) -> None:
                raise AssertionError("never called")

            @endpoint.on_receive_notification("other")
            async def untyped(params: Any) -> None:
                raise AssertionError("never asked")

            async with raw_client_of(endpoint) as peer:
                peer.notify("other", {"number": "many"})
                assert await peer.settled() == []

        run(main())
        assert "notification other failed in" in caplog.text
        assert "Expected `int`" in caplog.text

    def test_kinds_do_not_mix(self, run):
        """HC-06: a request handler hears no notification of the same name, and the other way round."""

        async def main():
            log: list[str] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request("both")
            async def ask(params: Any, responder: acprt.Responder[Any]) -> None:
                log.append("request")
                responder.respond(None)

            @endpoint.on_receive_notification("both")
            async def tell(params: Any) -> None:
                log.append("notification")

            async with raw_client_of(endpoint) as peer:
                peer.notify("both")
                peer.request(1, "both")
                await peer.receive()
                assert log == ["notification", "request"]

        run(main())

    def test_dispatch_handler_sees_all_three_kinds(self, run):
        """HC-06, RR-08: requests, notifications and responses, told apart by `kind`, each with what belongs to it."""

        async def main():
            seen: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def watch(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
                has = (dispatch.responder is not None, dispatch.router is not None)
                seen.append((dispatch.kind, dispatch.method, dispatch.id, dispatch.params, dispatch.message, has))
                return Pass.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request("work", {"a": 1}).block_task())
                await turns()
                peer.request("r", "ask", {"x": 1})
                peer.notify("tell", [1])
                peer.send(answer(1, "done"))
                assert await waiter == "done"
                assert seen == [
                    ("request", "ask", "r", {"x": 1}, None, (True, False)),
                    ("notification", "tell", None, [1], None, (False, False)),
                    ("response", "work", 1, None, None, (False, True)),
                ]

        run(main())

    def test_dispatch_handler_may_claim_any_kind(self, run):
        """HC-06: claiming a notification has no effect on the connection; a claimed request is its to answer."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def claim(dispatch: acprt.Dispatch) -> None:
                if dispatch.responder is not None:
                    dispatch.responder.respond(f"claimed {dispatch.method}")

            async with raw_client_of(endpoint) as peer:
                peer.notify("tell")
                peer.request(1, "ask")
                assert (await peer.receive())["result"] == "claimed ask"

        run(main())

    def test_typed_dispatch_takes_its_messages_only(self, run):
        """HC-06, HC-07: `Dispatch[Hello | Note]` gets them decoded, and the response to our own Hello as well."""

        async def main():
            seen: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def watch(dispatch: acprt.Dispatch[Hello | Note], cx: acprt.Connection) -> acprt.Handled:
                seen.append((dispatch.kind, dispatch.message))
                if dispatch.kind == "response":
                    seen.append(dispatch.result)
                return Pass.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                hello = asyncio.create_task(cx.send_request(Hello(first_name="Ada")).block_task())
                bye = asyncio.create_task(cx.send_request(Bye()).block_task())
                await turns()
                peer.request(1, "bye")
                peer.request(2, "hello", {"firstName": "Eve"})
                peer.send(note("n"), answer(2, None), answer(1, {"greeting": "Hi"}))
                assert await hello == HelloReply(greeting="Hi")
                await bye
                assert seen == [
                    ("request", Hello(first_name="Eve")),
                    ("notification", Note(text="n")),
                    ("response", None),
                    acprt.Ok(HelloReply(greeting="Hi")),
                ]

        run(main())

    @pytest.mark.parametrize("outcome", ["undecodable", "error"])
    def test_typed_dispatch_and_an_odd_response(self, run, outcome):
        """HC-07: a result that does not decode stops the walk and goes to the waiter; an error passes undecoded."""

        async def main():
            seen: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def first(dispatch: acprt.Dispatch[Hello]) -> acprt.Handled:
                seen.append(dispatch.result)
                return Pass.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request(Hello(first_name="")).block_task())
                await turns()
                if outcome == "error":
                    peer.respond_error(1, 3, "no")
                else:
                    peer.send(answer(1, {"greeting": 5}))
                with pytest.raises(acprt.RpcError) as caught:
                    await waiter
                if outcome == "error":
                    assert seen == [acprt.Err(acprt.RpcError(3, "no"))]
                    assert caught.value.code == 3
                else:
                    assert seen == []
                    assert caught.value.code == acprt.ErrorCode.INTERNAL_ERROR
                    assert caught.value.data["json"] == {"greeting": 5}

        run(main())

    def test_arguments_of_every_kind(self, run):
        """HC-10: message, responder and connection, note and connection, dispatch and connection; the connection may
        be left out.
        """

        async def main():
            seen: list[Any] = []
            endpoint = acprt.Endpoint("named")

            @endpoint.on_receive_request
            async def hello(request: Hello, responder: acprt.Responder[HelloReply], cx: acprt.Connection) -> None:
                seen.append((request, responder.id, responder.method, cx.name))
                responder.respond(HelloReply(greeting=""))

            @endpoint.on_receive_notification
            async def heard(note: Note, cx: acprt.Connection) -> None:
                seen.append((note, cx.name))

            @endpoint.on_receive_dispatch
            async def anything(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
                if dispatch.method == "third":
                    seen.append((dispatch.kind, cx.name))
                return Pass.no(dispatch)

            async with raw_client_of(endpoint) as peer:
                peer.request("id", "hello", {"firstName": "Ada"})
                peer.send(note("n"))
                peer.notify("third")
                await peer.receive()
                await peer.settled()
                assert seen == [
                    (Hello(first_name="Ada"), "id", "hello", "named"),
                    (Note(text="n"), "named"),
                    ("notification", "named"),
                ]

        run(main())

    def test_one_handler_for_several_methods(self, run):
        """HC-11: a union registers all of its members; names take untyped params, several at once."""

        async def main():
            seen: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request
            async def either(request: Hello | Bye, responder: acprt.Responder[Any]) -> None:
                seen.append(request)
                responder.respond(None)

            @endpoint.on_receive_notification("a", "b", Note)
            async def several(params: Any) -> None:
                seen.append(params)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "hello", {"firstName": "Ada"})
                peer.request(2, "bye")
                peer.notify("a", {"x": 1})
                peer.notify("b")
                peer.send(note("typed"))
                await peer.receive()
                await peer.receive()
                await peer.settled()
                assert seen == [Hello(first_name="Ada"), Bye(), {"x": 1}, None, Note(text="typed")]

        run(main())


class TestPassingOn:
    """`Handled.no(message)`: what the handlers behind get."""

    def test_changed_typed_message(self, run):
        """HC-02, HC-08: the typed message is encoded again; members that its type does not know are lost."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request
            async def change(request: Hello, responder: acprt.Responder[Any]) -> acprt.Handled:
                return Pass.no(Hello(first_name=request.first_name.upper()))

            @endpoint.method("hello")
            async def hello(params: Any) -> Any:
                return params

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "hello", {"firstName": "ada", "unknown": 1})
                assert (await peer.receive())["result"] == {"firstName": "ADA"}

        run(main())

    def test_unchanged_message_stays_as_it_came(self, run):
        """HC-02, PY-50: `Handled.no()` and the very dispatch pass the raw params on, unknown members included."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_request
            async def decline(request: Hello, responder: acprt.Responder[Any]) -> acprt.Handled:
                return Pass.no()

            @endpoint.on_receive_dispatch
            async def watch(dispatch: acprt.Dispatch[Hello]) -> acprt.Handled:
                return Pass.no(dispatch)

            @endpoint.method("hello")
            async def hello(params: Any) -> Any:
                return params

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "hello", {"firstName": "ada", "unknown": 12345678901234567890})
                assert (await peer.receive())["result"] == {"firstName": "ada", "unknown": 12345678901234567890}

        run(main())

    def test_changed_method_finds_the_handlers_behind(self, run):
        """HC-01, HC-02: the walk goes on along the chain of the new method, behind the handler that changed it."""

        async def main():
            log: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification("second")
            async def before(params: Any) -> None:
                raise AssertionError("it stands before the one that changed the method")

            @endpoint.on_receive_dispatch
            async def rename(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.method == "first":
                    return Pass.no(dispatch.replace({"x": 2}, method="second"))
                return Pass.no(dispatch)

            @endpoint.on_receive_notification("first")
            async def old(params: Any) -> None:
                raise AssertionError("it is no longer called first")

            @endpoint.on_receive_notification("second")
            async def new(params: Any) -> None:
                log.append(params)

            async with raw_client_of(endpoint) as peer:
                peer.notify("first", {"x": 1})
                await peer.settled()
                assert log == [{"x": 2}]

        run(main())

    def test_only_handler_of_a_notification_may_change_it(self, run):
        """HC-02: the same where a notification has one handler, which passes on another message."""

        async def main():
            heard: list[Any] = []
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_notification
            async def turn(note: Note) -> acprt.Handled:
                return Pass.no(Other(number=len(note.text)))

            @endpoint.on_receive_notification
            async def other(note: Other) -> None:
                heard.append(note.number)

            async with raw_client_of(endpoint) as peer:
                peer.send(note("four"))
                await peer.settled()
                assert heard == [4]

        run(main())

    @pytest.mark.parametrize("outcome", ["value", "error"])
    def test_rewritten_response(self, run, outcome):
        """HC-02, RR-06: a response may be passed on with another result, or as an error."""

        async def main():
            endpoint = acprt.Endpoint()

            @endpoint.on_receive_dispatch
            async def rewrite(dispatch: acprt.Dispatch) -> acprt.Handled:
                if dispatch.kind == "response":
                    new: Any = {"greeting": "Ho"} if outcome == "value" else acprt.RpcError(4, "refused")
                    return Pass.no(dispatch.replace(new))
                return Pass.no(dispatch)

            async with raw_server_for(endpoint) as (cx, peer):
                waiter = asyncio.create_task(cx.send_request(Hello(first_name="")).block_task())
                await turns()
                peer.send(answer(1, {"greeting": "Hi"}))
                if outcome == "value":
                    assert await waiter == HelloReply(greeting="Ho")
                else:
                    with pytest.raises(acprt.RpcError, match="refused"):
                        await waiter

        run(main())
