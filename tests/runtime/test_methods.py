"""`method` handlers: the forms of the decorator, and the return value that is the answer."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import acprt
from tests.rawpeer import raw_client_of


class HelloReply(msgspec.Struct, rename="camel"):
    greeting: str


class Hello(acprt.Request[HelloReply], method="hello"):
    first_name: str = ""


class Bye(acprt.Request[str], method="bye"):
    pass


INTERNAL = {"code": -32603, "message": "Internal error"}


class TestAnswer:
    """The return value is the answer."""

    @pytest.mark.parametrize("value", [None, 0, False, "", [], {}, {"a": [1, None]}, 2**70, HelloReply("hi")], ids=repr)
    @pytest.mark.parametrize("kind", ["task", "thread"])
    def test_any_value_is_a_result(self, run, kind, value):
        """RS-04: whatever JSON can say, falsy values included."""

        async def main():
            endpoint = acprt.Endpoint()

            if kind == "task":

                @endpoint.method("work")
                async def work(params: Any) -> Any:
                    return value

            else:

                @endpoint.method("work")
                def work_in_thread(params: Any) -> Any:
                    return value

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert await peer.receive() == {"jsonrpc": "2.0", "id": 1, "result": msgspec.to_builtins(value)}

        run(main())

    def test_forms_of_the_decorator(self, run):
        """By annotation, by class, by union, by name, several names, with and without parentheses and `cx`."""

        async def main():
            endpoint = acprt.Endpoint("named")

            @endpoint.method
            async def by_annotation(request: Hello) -> HelloReply:
                return HelloReply(greeting=f"Hello, {request.first_name}!")

            @endpoint.method()
            async def with_parentheses(request: Bye, cx: acprt.Connection) -> str:
                return cx.name

            @endpoint.method("raw/one", "raw/two")
            async def by_name(params: Any) -> Any:
                return params

            other = acprt.Endpoint()

            @other.method(Hello)
            async def by_class(request) -> str:
                return type(request).__name__

            @other.method("bye", "raw/one")
            def plain(params: Any, cx: acprt.Connection) -> Any:
                return [params, cx.name]

            third = acprt.Endpoint()

            @third.method
            async def by_union(request: Hello | Bye) -> str:
                return type(request).__name__

            async def ask(endpoint: acprt.Endpoint, *calls: Any) -> list[Any]:
                async with raw_client_of(endpoint) as peer:
                    results = []
                    for method, params in calls:
                        peer.request(1, method, params)
                        results.append((await peer.receive()).get("result"))
                    return results

            hello = ("hello", {"firstName": "Ada"})
            assert await ask(endpoint, hello, ("bye", {}), ("raw/one", [1]), ("raw/two", None)) == [
                {"greeting": "Hello, Ada!"},
                "named",
                [1],
                None,
            ]
            assert await ask(other, hello, ("bye", {}), ("raw/one", {"x": 1})) == [
                "Hello",
                [{}, "endpoint"],
                [{"x": 1}, "endpoint"],
            ]
            assert await ask(third, hello, ("bye", {})) == ["Hello", "Bye"]

        run(main())

    def test_decorator_returns_the_function(self):
        """DEC-5: unchanged, so it can be called, tested and registered again."""

        async def hello(request: Hello) -> HelloReply:
            return HelloReply("")

        endpoint = acprt.Endpoint()
        assert endpoint.method(hello) is hello
        assert endpoint.method(Hello)(hello) is hello

    @pytest.mark.parametrize("kind", ["task", "thread"])
    def test_rpc_error_is_the_answer_as_it_is(self, run, kind):
        """ER-06: code, message and data."""

        async def main():
            endpoint = acprt.Endpoint()
            error = acprt.RpcError(-1, "", {"why": [1]})

            async def in_task(params: Any) -> None:
                raise error

            def in_thread(params: Any) -> None:
                raise error

            handler: Callable[..., Any] = in_task if kind == "task" else in_thread
            endpoint.method("work")(handler)
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"] == {"code": -1, "message": "", "data": {"why": [1]}}

        run(main())

    @pytest.mark.parametrize("kind", ["task", "thread"])
    def test_other_exceptions_stay_here(self, run, kind, caplog):
        """PY-13: -32603 without the text; the traceback is logged once, by the name of the handler."""

        async def main():
            endpoint = acprt.Endpoint()

            async def in_task(params: Any) -> None:
                raise ValueError("secret text")

            def in_thread(params: Any) -> None:
                raise ValueError("secret text")

            handler: Callable[..., Any] = in_task if kind == "task" else in_thread
            endpoint.method("work")(handler)
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["error"] == INTERNAL

        run(main())
        errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert len(errors) == 1
        assert f"in_{kind}" in errors[0]
        assert "ValueError: secret text" in errors[0]

    @pytest.mark.parametrize("kind", ["task", "thread"])
    @pytest.mark.parametrize("value", ["\ud800", object(), {1, object()}], ids=["surrogate", "object", "set"])
    def test_value_that_is_no_json(self, run, kind, value):
        """RS-08, OU-13: the caller gets an error for that id, the connection lives."""

        async def main():
            endpoint = acprt.Endpoint()

            async def in_task(params: Any) -> Any:
                return value

            def in_thread(params: Any) -> Any:
                return value

            handler: Callable[..., Any] = in_task if kind == "task" else in_thread
            endpoint.method("work")(handler)
            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                line = await peer.receive()
                assert line["id"] == 1
                assert line["error"]["code"] == -32603
                assert line["error"]["data"]["phase"] == "serialization"
                assert await peer.settled() == []

        run(main())

    def test_plain_function_around_a_coroutine_function(self, run):
        """What a plain function returns to await is awaited, on the loop."""

        async def main():
            endpoint = acprt.Endpoint()

            async def really(params: Any) -> str:
                await asyncio.sleep(0)
                return "awaited"

            @endpoint.method("work")
            def work(params: Any) -> Any:
                return really(params)

            async with raw_client_of(endpoint) as peer:
                peer.request(1, "work")
                assert (await peer.receive())["result"] == "awaited"

        run(main())

    def test_context_of_a_handler_is_its_own(self, run):
        """PY-20: a context variable set in one handler is not seen by the next, nor by the loop."""

        async def main():
            endpoint = acprt.Endpoint()
            variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

            @endpoint.method("task")
            async def in_task(params: Any) -> str:
                before = variable.get()
                variable.set("task")
                return before

            @endpoint.method("thread")
            def in_thread(params: Any) -> str:
                before = variable.get()
                variable.set("thread")
                return before

            async with raw_client_of(endpoint) as peer:
                for method in ("task", "thread", "task", "thread"):
                    peer.request(1, method)
                    assert (await peer.receive())["result"] == "unset"

        run(main())
