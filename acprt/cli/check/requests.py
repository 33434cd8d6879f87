"""Checks of JSON-RPC itself: ids, unknown methods, notifications, bad params."""

from __future__ import annotations

from typing import Any

from acprt.cli.check.process import UNKNOWN_METHOD
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, check
from acprt.errors import ErrorCode

__all__ = ["CHECKS"]

_IDS: tuple[Any, ...] = (0, -1, 2**31, 2**53 - 1, "0", "", "a text", "5f0c2f5e-6c1f-4a5e-9d0e-0a8c0d3c1a57", "ü\n☃")
_CONCURRENT = 50


@check("requests.ids", "Echoes every id with its type and value", rule="JSON-RPC 2.0 §5: id is that of the request")
async def ids(subject: Subject) -> str:
    process = await subject.shared()
    for id in _IDS:
        process.request(UNKNOWN_METHOD, {}, id=id)
    for id in _IDS:
        try:
            await process.soon(id)
        except Failed as error:
            raise Failed(f"id {id!r}: {error}") from None
    return f"{len(_IDS)} integers and strings came back as they were"


@check(
    "requests.again",
    "Takes an id again once it was answered",
    rule="JSON-RPC 2.0 §4: an id names a call, not a life",
    level="should",
)
async def again(subject: Subject) -> str:
    process = await subject.shared()
    for _ in range(2):
        await process.answer(process.request(UNKNOWN_METHOD, {}, id="again"))
    return "answered both times"


@check("requests.unknown", "Answers an unknown method with -32601", rule="JSON-RPC 2.0 §5.1: method not found")
async def unknown(subject: Subject) -> str:
    process = await subject.shared()
    answer = await process.call(UNKNOWN_METHOD, {})
    if answer.code != ErrorCode.METHOD_NOT_FOUND:
        raise Failed(f"answered {answer}")
    return str(answer)


@check(
    "requests.many", "Answers many requests at once, each one time", rule="JSON-RPC 2.0 §5: one response for a request"
)
async def many(subject: Subject) -> str:
    process = await subject.shared()
    first = len(subject.log)
    ids = [process.request(UNKNOWN_METHOD, {}) for _ in range(_CONCURRENT)]
    for id in ids:
        await process.answer(id)
    await process.must_live(f"{_CONCURRENT} requests")
    got = [frame.value.get("id") for frame in subject.written_by(process, first) if frame.is_response]
    twice = {id for id in got if isinstance(id, int) and got.count(id) > 1}
    if twice:
        raise Failed(f"answered twice: {sorted(twice)}")
    return f"{_CONCURRENT} requests, {_CONCURRENT} answers"


@check(
    "requests.notification",
    "Says nothing to an unknown notification",
    rule="JSON-RPC 2.0 §4.1: a notification is not answered",
)
async def notification(subject: Subject) -> str:
    return await _says_nothing_to(subject, "acprt/no_such_notification", {"a": 1})


@check(
    "requests.protocol_notification",
    "Ignores an unknown $/ notification",
    rule="ACP, Protocol-level notifications: unknown ones are ignored",
)
async def protocol_notification(subject: Subject) -> str:
    return await _says_nothing_to(subject, "$/acprt_no_such_notification", {})


@check(
    "requests.extension",
    "Ignores an extension notification that it does not know",
    rule="ACP, Extensibility: unrecognized notifications are ignored",
)
async def extension(subject: Subject) -> str:
    return await _says_nothing_to(subject, "_acprt/no_such_notification", {})


@check("requests.params", "Refuses bad params with an error", rule="JSON-RPC 2.0 §5.1: invalid params")
async def params(subject: Subject) -> str:
    process = await subject.shared()
    answers = [
        await process.call("session/new", {"cwd": 5, "mcpServers": []}),
        await process.call("session/new", {}),
        await process.call("session/prompt", {"sessionId": 5, "prompt": "no list"}),
    ]
    if not all(answer.is_error for answer in answers):
        raise Failed("a wrong type was taken: " + ", ".join(map(str, answers)))
    codes = sorted({answer.code for answer in answers}, key=str)
    return f"answered {', '.join(map(str, codes))}"


@check(
    "requests.params_code",
    "The code for bad params is -32602",
    rule="JSON-RPC 2.0 §5.1: invalid params",
    level="should",
)
async def params_code(subject: Subject) -> str:
    process = await subject.shared()
    answer = await process.call("session/new", {"cwd": 5, "mcpServers": []})
    if answer.code != ErrorCode.INVALID_PARAMS:
        raise Failed(f"answered {answer}")
    return str(answer)


async def _says_nothing_to(subject: Subject, method: str, params: Any) -> str:
    process = await subject.shared()
    first = len(subject.log)
    process.notify(method, params)
    await process.must_live(f"the notification {method}")
    for frame in subject.written_by(process, first):
        if frame.is_response and not process.has_asked(frame):
            raise Failed(f"answered it: {frame.line[:200]!r}")
    return "silent"


CHECKS = (ids, again, unknown, many, notification, protocol_notification, extension, params, params_code)
