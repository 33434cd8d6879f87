"""Checks of everything that the agent wrote to stdout, in all of its processes. They come last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from acprt.cli.check.process import Frame
from acprt.cli.check.shapes import fault_in_call, known_methods
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, NotApplicable, check

__all__ = ["CHECKS"]

_SHOWN = 3  # examples of a fault


@check(
    "output.purity",
    "Writes nothing to stdout but messages",
    rule="ACP, Transports: the agent must not write anything to stdout that is not a valid ACP message",
)
async def purity(subject: Subject) -> str:
    frames = _written(subject)
    odd = [frame.line for frame in frames if not isinstance(frame.value, dict | list)]
    if odd:
        raise Failed(f"{len(odd)} lines are no messages: {_examples(odd)}")
    return f"{len(frames)} lines, all of them messages"


@check("output.version", 'Every message says "jsonrpc": "2.0"', rule="JSON-RPC 2.0 §4, §5")
async def version(subject: Subject) -> str:
    odd = [line for line, message in _messages(subject) if message.get("jsonrpc") != "2.0"]
    if odd:
        raise Failed(f"{len(odd)} messages do not: {_examples(odd)}")
    return "all of them do"


@check("output.responses", "Every response has an id, and a result or an error", rule="JSON-RPC 2.0 §5, §5.1")
async def responses(subject: Subject) -> str:
    count, odd = 0, []
    for line, message in _messages(subject):
        if "method" in message:
            continue
        count += 1
        if not _is_well_formed(message):
            odd.append(line)
    if odd:
        raise Failed(f"{len(odd)} of {count} do not: {_examples(odd)}")
    return f"{count} responses"


@check("output.schema", "Its updates and requests have the shape of the schema", rule="ACP, Schema")
async def schema(subject: Subject) -> str:
    count, faults = 0, Counter[str]()
    for _, message in _messages(subject):
        method = message.get("method")
        if not isinstance(method, str):
            continue
        count += 1
        wrong = fault_in_call(subject.options.version, method, message.get("params"))
        if wrong is not None:
            faults[f"{method}: {wrong}"] += 1
    if faults:
        raise Failed("; ".join(f"{text} ({times} times)" for text, times in faults.most_common(_SHOWN)))
    if not count:
        raise NotApplicable("it sent none")
    return f"{count} of them, all well-formed"


@check("output.extensions", "Its own methods begin with an underscore", rule="ACP, Extensibility: custom methods")
async def extensions(subject: Subject) -> str:
    known = known_methods(subject.options.version)
    methods = {str(message["method"]) for _, message in _messages(subject) if "method" in message}
    odd = sorted(method for method in methods - known if not method.startswith(("_", "$/")))
    if odd:
        raise Failed(", ".join(odd))
    own = sorted(method for method in methods if method.startswith("_"))
    return f"its own: {', '.join(own)}" if own else "it has none"


@check(
    "output.sessions",
    "Updates belong to sessions that the client knows",
    rule="ACP, Session setup: a session is there once session/new is answered",
    level="should",
)
async def sessions(subject: Subject) -> str:
    known: set[tuple[int, Any]] = set()
    early = 0
    for frame in subject.log:
        message = frame.value
        if not isinstance(message, dict):
            continue
        params = message.get("params")
        if frame.sender == "client":
            if isinstance(params, dict):  # what the client names itself, it knows
                known.add((frame.process, params.get("sessionId")))
        elif isinstance(message.get("result"), dict) and isinstance(message["result"].get("sessionId"), str):
            known.add((frame.process, message["result"]["sessionId"]))
        elif message.get("method") == "session/update" and isinstance(params, dict):
            early += (frame.process, params.get("sessionId")) not in known
    if early:
        raise Failed(f"{early} updates came before the answer that names their session")
    return "all of them"


def _written(subject: Subject) -> list[Frame]:
    return [frame for frame in subject.log if frame.sender == "agent"]


def _messages(subject: Subject) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each message that it wrote, with its line; those of a batch one by one."""
    for frame in _written(subject):
        for message in frame.value if isinstance(frame.value, list) else [frame.value]:
            if isinstance(message, dict):
                yield frame.line, message


def _is_well_formed(message: dict[str, Any]) -> bool:
    """Whether a response has an id, and either a result or an error of the right shape."""
    error = message.get("error")
    if "id" not in message or ("result" in message) == (error is not None):
        return False
    if error is None:
        return True
    return isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)


def _examples(lines: list[bytes]) -> str:
    return ", ".join(repr(line[:120].decode("utf-8", "replace")) for line in lines[:_SHOWN])


CHECKS = (purity, version, responses, schema, extensions, sessions)
