"""A program that `mypy --strict` must accept, with the types it must infer. It is read by mypy and never run."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, assert_type

import msgspec

import acprt

T = TypeVar("T")


class HelloReply(msgspec.Struct, rename="camel"):
    greeting: str


class Hello(acprt.Request[HelloReply], method="hello/say"):
    first_name: str
    loud: bool = False


class Bye(acprt.Request[None], method="bye", rename="pascal", forbid_unknown_fields=True):
    pass


class Progress(acprt.Notification, method="hello/progress"):
    percent: int


class Get(acprt.Request[T], Generic[T]):
    key: str


class GetNumber(Get[int], method="get/number"):
    pass


server = acprt.Endpoint("greeter", limits=acprt.Limits(drain_seconds=1.0))


@server.method
async def hello(request: Hello, cx: acprt.Connection) -> HelloReply:
    cx.send_notification(Progress(percent=50))
    return HelloReply(greeting=f"Hello, {request.first_name}!")


@server.method()
async def hello_again(request: Hello) -> HelloReply:
    return await hello(request, server_connection())


@server.method(Bye)
def bye(request: Bye) -> None:
    return None


@server.method(Hello | Bye)
async def either(request: Hello | Bye) -> None: ...


@server.method("raw/name", Hello)
async def raw(params: Any, cx: acprt.Connection) -> dict[str, Any]:
    return {"params": params, "name": cx.name}


@server.on_receive_request
async def ordered(request: Hello, responder: acprt.Responder[HelloReply], cx: acprt.Connection) -> acprt.Handled | None:
    if request.loud:
        return acprt.Handled.no(Hello(first_name=request.first_name.lower()))
    responder.respond(HelloReply(greeting=""))
    return None


@server.on_receive_request(Hello)
async def ordered_by_class(request: Hello, responder: acprt.Responder[HelloReply]) -> None:
    assert_type(responder.id, int | str | None)
    responder.respond_with_result(acprt.Ok(HelloReply(greeting="")))


@server.on_receive_notification
async def progress(note: Progress) -> None:
    assert_type(note.percent, int)


@server.on_receive_notification("raw/note")
async def raw_note(params: Any, cx: acprt.Connection) -> None: ...


@server.on_receive_dispatch
async def everything(dispatch: acprt.Dispatch, cx: acprt.Connection) -> acprt.Handled:
    if dispatch.responder is not None:
        dispatch.responder.respond_with_error(acprt.RpcError.method_not_found(dispatch.method))
    return acprt.Handled.no(dispatch, retry=True)


@server.on_receive_dispatch
async def some(dispatch: acprt.Dispatch[Hello | Progress]) -> acprt.Handled:
    assert_type(dispatch.message, Hello | Progress | None)
    return acprt.Handled.no(dispatch.replace(method="other"))


@server.on_close
async def closed(cx: acprt.Connection) -> None:
    assert_type(cx.is_incoming_closed, bool)


@server.with_spawned
async def beside(cx: acprt.Connection) -> None:
    await cx.incoming_closed()


def server_connection() -> acprt.Connection:
    raise NotImplementedError


async def caller(cx: acprt.Connection, responder: acprt.Responder[Any]) -> None:
    sent = cx.send_request(Hello(first_name="Ada"))
    assert_type(sent, acprt.SentRequest[HelloReply])
    assert_type(sent.id, int)
    assert_type(await sent.block_task(), HelloReply)
    assert_type(await cx.send_request(Hello(first_name="Ada")).block_task(timeout=5.0), HelloReply)
    assert_type(await cx.send_request(GetNumber(key="n")).block_task(), int)
    assert_type(cx.send_request("raw/name", {"x": 1}, reply_type=HelloReply), acprt.SentRequest[HelloReply])
    assert_type(cx.send_request("raw/name"), acprt.SentRequest[Any])

    lengths = cx.send_request(Hello(first_name="Ada")).map(lambda reply: len(reply.greeting))
    assert_type(lengths, acprt.SentRequest[int])
    assert_type(await lengths.map(str).block_task(), str)

    async def on_result(result: acprt.Result[HelloReply]) -> None:
        match result:
            case acprt.Ok(value):
                assert_type(value, HelloReply)
            case acprt.Err(error):
                assert_type(error, acprt.RpcError)
        assert_type(result.unwrap(), HelloReply)

    async def on_ok(reply: HelloReply, responder: acprt.Responder[Any]) -> None:
        responder.respond(reply.greeting)

    cx.send_request(Hello(first_name="Ada")).on_receiving_result(on_result)
    cx.send_request(Hello(first_name="Ada")).on_receiving_ok_result(responder, on_ok)
    cx.send_request(Hello(first_name="Ada")).forward_response_to(responder)
    with cx.send_request(Bye()) as leaving:
        leaving.forward_cancellation_from(responder.cancellation)
        leaving.detach()

    async def dynamic(note: Progress) -> None: ...

    with cx.add_dynamic_handler(dynamic) as guard:
        guard.detach()
    assert_type(acprt.method_of(Hello), str)
    await responder.cancellation.run_until_cancelled(sent.block_task())


async def main() -> None:
    client = acprt.Endpoint("caller")
    async with client.connect(acprt.AgentProcess("python", "greeter.py", env={"A": "b"})) as cx:
        assert_type(cx, acprt.Connection)
    async with client.connect(server) as cx:
        print(cx.status().counters.bad_lines)
    cx = await client.open(acprt.stdio())
    await cx.aclose()
    await server.include(client).serve(acprt.memory_pair()[0])


acprt.run(server, limits=acprt.Limits(), exit_with_parent=True)
