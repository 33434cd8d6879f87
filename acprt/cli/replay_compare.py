"""Compares what two agents said, with everything taken out that differs between any two runs: ids and times.

Pure: messages in, lines of a diff out.
"""

from __future__ import annotations

import copy
import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from acprt.cli.replay_script import Message

__all__ = ["IS_ID", "difference", "normalised"]

IS_ID = re.compile(r"(?:^id|Id|ID|_id)$")
"""Names of members whose texts are made up anew in every run."""

_IS_TIME = re.compile(
    r"(?:^time|^ts|At|[tT]imestamp|[dD]uration|[eE]lapsed|[lL]atency)(?:Ms|Millis|Seconds|_ms|_seconds)?$"
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_FIXED = frozenset({"modeId", "currentModeId", "modelId", "currentModelId", "optionId", "methodId", "configId"})
_ID_IN_TEXT = 8  # characters from which an id is looked for inside other texts; "1" would be everywhere


def normalised(
    messages: Iterable[Message],
    methods: dict[int | str | None, str],
    *,
    answers_only: bool,
    ignored: Sequence[str] = (),
) -> list[str]:
    """What an agent said as lines of text. `methods` tells which request of the client an answer is for.

    Chunks of one kind that follow each other are one text: where it is cut says nothing.
    """
    names = _Names()
    shown: list[tuple[str, Any]] = []
    for message in messages:
        answered = "method" not in message
        method = str(methods.get(message.get("id"), "?") if answered else message["method"])
        if any(fnmatch.fnmatchcase(method, pattern) for pattern in ignored) or (answers_only and not answered):
            continue
        if answered:
            body = message.get("error", message.get("result"))
            kind = "error" if "error" in message else "answer"
        else:
            body = message.get("params")
            kind = "request" if "id" in message else "notification"
        if not (shown and _joined(shown[-1], f"{kind} {method}", body)):
            shown.append((f"{kind} {method}", body if _text_chunk(body) is None else copy.deepcopy(body)))
    lines: list[str] = []
    for title, body in shown:
        lines.append(title)
        text = msgspec.json.format(msgspec.json.encode(names.without(body)), indent=2).decode()
        lines += [f"  {line}" for line in text.splitlines()]
    return lines


def difference(recorded: list[str], replayed: list[str]) -> list[str]:
    """The lines of a unified diff, empty when both are the same."""
    return list(difflib.unified_diff(recorded, replayed, "recorded", "replayed", lineterm=""))


def _joined(last: tuple[str, Any], title: str, body: Any) -> bool:
    """Whether `body` went on where `last` ended, as a chunk of the same message."""
    title_before, before = last
    if title != title_before:
        return False
    update, update_before = _text_chunk(body), _text_chunk(before)
    if update is None or update_before is None:
        return False
    if (body.get("sessionId"), update["sessionUpdate"]) != (before.get("sessionId"), update_before["sessionUpdate"]):
        return False
    update_before["content"]["text"] += update["content"]["text"]
    return True


def _text_chunk(body: Any) -> Any:
    update = body.get("update") if isinstance(body, dict) else None
    if not isinstance(update, dict) or not str(update.get("sessionUpdate")).endswith("_chunk"):
        return None
    content = update.get("content")
    return update if isinstance(content, dict) and isinstance(content.get("text"), str) else None


class _Names:
    """Gives ids the names `<id 1>`, `<id 2>` … in the order in which they are met."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def without(self, value: Any) -> Any:
        """A copy of `value` without ids and times."""
        self._meet(value)
        return self._replaced("", value)

    def _meet(self, value: Any) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                if isinstance(each, str) and IS_ID.search(name) and name not in _FIXED:
                    self._known.setdefault(each, f"<id {len(self._known) + 1}>")
                else:
                    self._meet(each)
        elif isinstance(value, list):
            for each in value:
                self._meet(each)

    def _replaced(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._replaced(key, each) for key, each in sorted(value.items())}
        if isinstance(value, list):
            return [self._replaced(name, each) for each in value]
        if _IS_TIME.search(name) and isinstance(value, str | int | float) and not isinstance(value, bool):
            return "<time>"
        if not isinstance(value, str):
            return value
        if IS_ID.search(name) and value in self._known and name not in _FIXED:
            return self._known[value]
        for id_, shown in self._known.items():
            if len(id_) >= _ID_IN_TEXT and id_ in value:
                value = value.replace(id_, shown)
        return _MOMENT.sub("<time>", _UUID.sub("<uuid>", value))
