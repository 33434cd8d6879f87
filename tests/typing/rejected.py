"""What `mypy --strict` must reject, line by line: each `type: ignore` names the error that must be there without it.

It is read by mypy and never run; `make types` fails when one of the errors is missing, as does `test_typing.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

import acprt


class HelloReply(msgspec.Struct):
    greeting: str


class Hello(acprt.Request[HelloReply], method="hello/say"):
    first_name: str


class Progress(acprt.Notification, method="hello/progress"):
    percent: int


async def messages() -> None:
    Hello()  # type: ignore[call-arg]  # a member is missing
    Hello("Ada")  # type: ignore[call-arg]  # members are keyword-only
    Hello(firstName="Ada")  # type: ignore[call-arg]  # camelCase is for the wire
    Progress(percent="50")  # type: ignore[arg-type]  # a member of another type


async def sending(cx: acprt.Connection) -> None:
    await cx.send_request(Hello(first_name="Ada"))  # type: ignore[misc]  # a handle is not awaitable
    cx.send_request(Progress(percent=1))  # type: ignore[call-overload]  # a notification is not asked
    cx.send_notification(Hello(first_name="Ada"))  # type: ignore[arg-type]  # a request is not told
    cx.send_request(Hello)  # type: ignore[call-overload]  # the class is no message
    cx.send_notification(HelloReply(greeting=""))  # type: ignore[arg-type]  # nor is any Struct


async def answers(cx: acprt.Connection, responder: acprt.Responder[HelloReply]) -> None:
    reply = await cx.send_request(Hello(first_name="Ada")).block_task()
    reply.first_name  # type: ignore[attr-defined]  # noqa: B018  # it is the reply, not the request
    length: str = await cx.send_request(Hello(first_name="")).map(lambda reply: 1).block_task()  # type: ignore[assignment]
    responder.respond(length)  # type: ignore[arg-type]  # a reply of another type
    responder.respond(Hello(first_name=""))  # type: ignore[arg-type]  # as above

    async def wrong_value(result: acprt.Result[int]) -> None: ...

    def not_async(result: acprt.Result[HelloReply]) -> None: ...

    cx.send_request(Hello(first_name="")).on_receiving_result(wrong_value)  # type: ignore[arg-type]  # of another reply
    cx.send_request(Hello(first_name="")).on_receiving_result(not_async)  # type: ignore[arg-type]  # it is awaited
    cx.send_request(Hello(first_name="")).forward_response_to(cx)  # type: ignore[arg-type]  # no responder


def decorators(endpoint: acprt.Endpoint) -> None:
    @endpoint.method
    async def hello(request: Hello) -> HelloReply:
        return HelloReply(greeting="")

    @endpoint.method(Hello)
    async def again(request: Hello, cx: acprt.Connection) -> HelloReply:
        return await hello(Progress(percent=1))  # type: ignore[arg-type]  # the decorator keeps the signature

    _ = again(Hello(first_name=""))  # type: ignore[call-arg]  # also with a class named
    endpoint.method(3)  # type: ignore[call-overload]  # neither a class nor a name nor a function
    endpoint.on_close("closed")  # type: ignore[type-var]  # no function


async def values(result: acprt.Result[HelloReply], dispatch: acprt.Dispatch[Hello]) -> None:
    match result:
        case acprt.Ok(value):
            value.nothing  # type: ignore[attr-defined]  # noqa: B018  # the reply has no such member
    dispatch.responder.respond(None)  # type: ignore[union-attr]  # only requests have one
    handled: Any = acprt.Handled.no(dispatch, True)  # type: ignore[call-arg]  # retry is named
    acprt.RpcError("text")  # type: ignore[call-arg, arg-type]  # a code and a message
    acprt.Limits(line_byte=1)  # type: ignore[call-arg]  # no such limit
    print(handled)
