"""What framing and batch tests share: endpoints that show or hold what they got, lines for them, replies in brief."""

from __future__ import annotations

import asyncio
from typing import Any

import acprt
from acprt.limits import Limits
from tests.rawpeer import raw_client_of

BOM = b"\xef\xbb\xbf"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Say(acprt.Request[Any], method="say"):
    text: str


class Heard(acprt.Notification, method="heard"):
    text: str


def endpoint(limits: Limits | None = None) -> acprt.Endpoint:
    """It echoes params (`echo`), answers one typed request (`say`) and hears one typed notification (`heard`)."""
    served = acprt.Endpoint("served", limits=limits)

    @served.on_receive_request("echo", "a/b", "")
    async def echo(params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
        responder.respond(params)

    @served.on_receive_request
    async def say(request: Say, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
        responder.respond(request.text)

    @served.on_receive_notification
    async def heard(note: Heard, cx: acprt.Connection) -> None:
        cx.send_notification("was heard", [note.text])

    return served


def brief(line: Any) -> Any:
    """A reply without what may change: (id, code) of an error, (id, {"result": …}) of a success, else all of it."""
    if not isinstance(line, dict) or "method" in line:
        return line
    assert line["jsonrpc"] == "2.0"
    if "error" in line:
        return line["id"], line["error"]["code"]
    return line["id"], {"result": line["result"]}


def call(id: str, method: str = "echo", params: str | None = None) -> bytes:
    members = [f'"jsonrpc":"2.0","id":{id},"method":"{method}"', *([] if params is None else [f'"params":{params}'])]
    return ("{" + ",".join(members) + "}").encode()


def ok(id: Any, result: Any = None) -> Any:
    return id, {"result": result}


def note(method: str = "heard", params: str = '{"text":"hi"}') -> bytes:
    return f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'.encode()


def batch(*members: bytes) -> bytes:
    return b"[" + b",".join(members) + b"]"


def briefs(line: Any) -> Any:
    """An array of replies in brief; any other line in brief."""
    return [brief(reply) for reply in line] if isinstance(line, list) else brief(line)


async def replies_to(*lines: bytes, served: acprt.Endpoint | None = None) -> list[Any]:
    """Everything written for these lines in brief, and proof that the connection lives."""
    async with raw_client_of(served or endpoint()) as peer:
        peer.send(*lines)
        return [briefs(line) for line in await peer.settled()]


class Stash:
    """An endpoint whose handlers hold what they got, until the test lets go."""

    def __init__(self) -> None:
        self.endpoint = endpoint()
        self.responders: dict[Any, acprt.Responder[Any]] = {}
        self.stashed = asyncio.Event()
        self.release = asyncio.Event()
        self.seen: list[Any] = []

        @self.endpoint.on_receive_request("stash")
        async def stash(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            self.responders[len(self.responders)] = responder
            self.stashed.set()

        @self.endpoint.on_receive_notification("hold")
        async def hold(_params: Any, cx: acprt.Connection) -> None:
            await self.release.wait()

        @self.endpoint.on_receive_request("drop")
        async def drop(_params: Any, _responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            self.seen.append("drop")

        @self.endpoint.on_receive_request("drop and raise")
        async def drop_and_raise(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            del responder
            raise acprt.RpcError(7, "mine", {"a": 1})

        @self.endpoint.on_receive_request("respond and raise")
        async def respond_and_raise(_params: Any, responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            responder.respond("first")
            raise acprt.RpcError(7, "second")

        @self.endpoint.on_receive_request("crash")
        async def crash(_params: Any, _responder: acprt.Responder[Any], cx: acprt.Connection) -> None:
            raise ValueError("secret detail")
