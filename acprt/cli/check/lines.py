"""Checks of lines that are odd, broken or large: each may cost one message, never the agent."""

from __future__ import annotations

from typing import Any

from acprt.cli.check.process import UNKNOWN_METHOD, CheckedProcess
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, check
from acprt.errors import ErrorCode

__all__ = ["CHECKS"]

_LARGE_BYTES = 2 * 1024 * 1024
_DEPTH = 200
_PIPE_BYTES = 64 * 1024

_ROBUST = "one odd line costs one message: clients, proxies and users send them"


@check("lines.malformed", "Survives a line that is no JSON", rule="JSON-RPC 2.0 §5.1: parse error, id null")
async def malformed(subject: Subject) -> str:
    return await _survives(
        subject, b'{"jsonrpc":"2.0","id":"malformed","method":', "a malformed line", (ErrorCode.PARSE_ERROR,)
    )


@check("lines.not_utf8", "Survives a line that is not UTF-8", rule=_ROBUST, level="should")
async def not_utf8(subject: Subject) -> str:
    line = b'{"jsonrpc":"2.0","method":"acprt/x","params":{"a":"\xff\xfe"}}'
    return await _survives(subject, line, "a line that is not UTF-8", (ErrorCode.PARSE_ERROR,))


@check("lines.blank", "Says nothing to a blank line", rule=_ROBUST, level="should")
async def blank(subject: Subject) -> str:
    return await _survives(subject, b"", "a blank line", ())


@check("lines.crlf", "Takes a line that ends with CR LF", rule=_ROBUST, level="should")
async def crlf(subject: Subject) -> str:
    process = await subject.shared()
    await process.soon(process.request(UNKNOWN_METHOD, {}, end=b"\r\n"))
    return "answered"


@check("lines.number", "Survives a line that is a number", rule="JSON-RPC 2.0 §5.1: invalid request", level="should")
async def number(subject: Subject) -> str:
    return await _survives(subject, b"42", "a line that is a number", (ErrorCode.INVALID_REQUEST,))


@check(
    "lines.version",
    "Survives a message without the jsonrpc member",
    rule="JSON-RPC 2.0 §4: jsonrpc must be exactly 2.0",
    level="should",
)
async def version(subject: Subject) -> str:
    process = await subject.shared()
    process.send_line(b'{"id":"no version","method":"acprt/no_such_method"}')
    await process.must_live("a message without jsonrpc")
    return "still answers"


@check("lines.batch", "Survives a batch", rule="JSON-RPC 2.0 §6; version 2 has none: -32600", level="should")
async def batch(subject: Subject) -> str:
    process = await subject.shared()
    first = len(subject.log)
    members = [b'{"jsonrpc":"2.0","id":"batch %d","method":"acprt/no_such_method"}' % number for number in (1, 2)]
    process.send_line(b"[" + b",".join(members) + b"]")
    await process.must_live("a batch")
    replies = _replies(subject, process, first)
    if any(isinstance(reply, list) for reply in replies):
        return "answered with a batch"
    if any(str(reply.get("id", "")).startswith("batch ") for reply in replies):
        return "answered one by one"
    return _stray_replies(replies, "a batch", (ErrorCode.INVALID_REQUEST, ErrorCode.PARSE_ERROR))


@check("lines.deep", "Survives params that are nested 200 deep", rule=_ROBUST, level="should")
async def deep(subject: Subject) -> str:
    process = await subject.shared()
    process.send_line(
        b'{"jsonrpc":"2.0","id":"deep","method":"acprt/no_such_method","params":{"a":%b%b}}'
        % (b"[" * _DEPTH, b"]" * _DEPTH)
    )
    await process.must_live("deep nesting")
    return "still answers"


@check(
    "lines.large",
    "Answers a request of 2 MiB",
    rule="ACP has no limit of a line; images take more than this",
    level="should",
)
async def large(subject: Subject) -> str:
    process = await subject.shared()
    answer = await process.call(UNKNOWN_METHOD, {"text": "x" * _LARGE_BYTES})
    return f"after {answer.seconds:.2f} s"


@check(
    "lines.stderr",
    "Writes little to stderr, also for what it refuses",
    rule="ACP, Transports: a client may ignore stderr; a full pipe of 64 KiB stops the agent",
    level="should",
)
async def stderr(subject: Subject) -> str:
    process = await subject.shared()
    before = process.stderr_bytes
    for method in (UNKNOWN_METHOD, "session/prompt"):
        await process.call(method, {"text": "y" * (_LARGE_BYTES // 8)})
    process.send_line(b"{" + b"z" * (_LARGE_BYTES // 8))
    await process.must_live("three large messages to refuse")
    await process.stderr_settled()
    written = process.stderr_bytes - before
    if written > _PIPE_BYTES:
        raise Failed(f"three large messages that it refused brought {written:,} bytes on stderr")
    return f"{written:,} bytes for three large messages that it refused, {process.stderr_bytes:,} since its start"


async def _survives(subject: Subject, line: bytes, what: str, codes: tuple[int, ...]) -> str:
    """Send `line`; the agent must live, and what it says about it, if anything, must be an error of `codes`."""
    process = await subject.shared()
    first = len(subject.log)
    process.send_line(line)
    await process.must_live(what)
    return _stray_replies(_replies(subject, process, first), what, codes)


def _replies(subject: Subject, process: CheckedProcess, first: int) -> list[Any]:
    """What came since, but for calls and the answer that shows that it lives."""
    found: list[Any] = []
    for frame in subject.written_by(process, first):
        value = frame.value
        if isinstance(value, list) or (frame.is_response and not isinstance(value.get("id"), int)):
            found.append(value)
    return found


def _stray_replies(replies: list[Any], what: str, codes: tuple[int, ...]) -> str:
    """What was said to a line that asks for nothing, in words. Raises `Failed` unless it is an error of `codes`."""
    if not replies:
        return "silent"
    reply = replies[0]
    if not isinstance(reply, dict) or "id" not in reply:
        raise Failed(f"answered {what} without an id, which must be null: {reply!r:.200}")
    error = reply.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if code not in codes:
        raise Failed(f"answered {what} with {reply!r:.200}")
    return f"answered {code}, id {reply['id']!r}"


CHECKS = (malformed, not_utf8, blank, crlf, number, version, batch, deep, large, stderr)
