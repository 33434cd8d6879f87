"""Checks of JSON-RPC itself: ids, unknown methods, notifications, bad params."""

from __future__ import annotations

from typing import Any

import msgspec

from acprt.cli.check.process import CheckedProcess
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, check

__all__ = ["CHECKS"]

_IDS: tuple[Any, ...] = (0, -1, 2**31, 2**53 - 1, "0", "", "a text", "5f0c2f5e-6c1f-4a5e-9d0e-0a8c0d3c1a57", "ü\n☃")
_UNKNOWN = "acprt/no_such_method"
_METHOD_NOT_FOUND, _INVALID_PARAMS = -32601, -32602
_CONCURRENT = 50


@check("requests.ids", "Echoes every id with its type and value", rule="JSON-RPC 2.0 §5: id is that of the request")
async def ids(subject: Subject) -> str:
    process = await subject.shared()
    for id in _IDS:
        process.request(_UNKNOWN, {}, id=id)
    for id in _IDS:
        try:
            await process.answer(id, within=min(process.timeout, 10.0))
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
        await process.answer(process.request(_UNKNOWN, {}, id="again"))
    return "answered both times"


@check("requests.unknown", "Answers an unknown method with -32601", rule="JSON-RPC 2.0 §5.1: method not found")
async def unknown(subject: Subject) -> str:
    process = await subject.shared()
    answer = await process.call(_UNKNOWN, {})
    if answer.code != _METHOD_NOT_FOUND:
        raise Failed(f"answered {answer}")
    return str(answer)


@check(
    "requests.many", "Answers many requests at once, each one time", rule="JSON-RPC 2.0 §5: one response for a request"
)
async def many(subject: Subject) -> str:
    process = await subject.shared()
    first = len(subject.log)
    ids = [process.request(_UNKNOWN, {}) for _ in range(_CONCURRENT)]
    for id in ids:
        await process.answer(id)
    await process.must_live(f"{_CONCURRENT} requests")
    got = [frame.value.get("id") for frame in subject.log[first:] if _is_response_of(process, frame)]
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
    if answer.code != _INVALID_PARAMS:
        raise Failed(f"answered {answer}")
    return str(answer)


async def _says_nothing_to(subject: Subject, method: str, params: Any) -> str:
    process = await subject.shared()
    first = len(subject.log)
    process.notify(method, params)
    await process.must_live(f"the notification {method}")
    for frame in subject.log[first:]:
        if frame.process == process.number and frame.sender == "agent" and _is_stray(frame.value, process):
            raise Failed(f"answered it: {frame.line[:200]!r}")
    return "silent"


def _is_stray(value: Any, process: CheckedProcess) -> bool:
    """Whether it is a response to no request."""
    if not isinstance(value, dict) or "method" in value:
        return False
    return "id" not in value or msgspec.json.encode(value["id"]).decode() not in process.methods


def _is_response_of(process: CheckedProcess, frame: Any) -> bool:
    value = frame.value
    return (
        frame.process == process.number
        and frame.sender == "agent"
        and isinstance(value, dict)
        and "method" not in value
    )


CHECKS = (ids, again, unknown, many, notification, protocol_notification, extension, params, params_code)
