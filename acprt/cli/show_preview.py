"""What a message is about, in one line for people: the prompt, the chunk's text, the tool and its status.

It reads what any peer wrote, so it must hold for every shape; what it does not know is shown as compact JSON.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from acprt.cli.show_records import Record

__all__ = ["plain", "preview"]

_LENGTH = 160
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def plain(text: str) -> str:
    """`text` on one line, without anything that a terminal would obey or that would turn the line around."""
    return _CONTROL.sub(lambda found: _NAMED.get(found[0], f"\\x{ord(found[0]):02x}"), text)


def preview(record: Record, length: int = _LENGTH) -> str:
    """One line of at most `length` characters."""
    text = plain(_text(record))
    return text if len(text) <= length else text[: length - 1] + "…"


def _text(record: Record) -> str:
    if record.type == "dropped":
        return f"{record.count} events are missing here"
    if record.type == "malformed":
        return f"{record.error} — {record.text[:_LENGTH]}"
    if record.text:
        return record.text[: 4 * _LENGTH]
    body = record.body
    if record.type == "process":
        return _process(record.event, body)
    if record.is_error and isinstance(body, dict):
        return f"[{body.get('code')}] {body.get('message')}"
    if isinstance(body, dict):
        special = _ANSWERS if record.type == "response" else _CALLS
        tell = special.get(record.method)
        told = tell(body) if tell is not None else _claude(body) if record.type == "message" else ""
        if told:
            return told
    if isinstance(body, dict) and record.session:
        body = {name: value for name, value in body.items() if name != "sessionId"}  # it stands on the line already
    return "" if not body and record.type != "response" else _compact(body)


def _process(event: str, body: Any) -> str:
    if not isinstance(body, dict):
        return event
    if event == "started":
        command = body.get("command")
        return f"started, pid {body.get('pid')}: {' '.join(map(str, command)) if isinstance(command, list) else ''}"
    status = body.get("status")
    if isinstance(status, int) and status < 0:
        return f"ended by signal {-status}"
    return f"{event} with code {status}"


def _initialize(body: dict[str, Any]) -> str:
    info = body.get("clientInfo") or body.get("agentInfo") or body.get("serverInfo") or body.get("info")
    who = ""
    if isinstance(info, dict):
        who = f"{info.get('title') or info.get('name') or ''} {info.get('version') or ''}".strip()
    return f"protocol {body.get('protocolVersion')}" + (f", {who}" if who else "")


def _prompt(body: dict[str, Any]) -> str:
    return _blocks(body.get("prompt") or body.get("content"))


def _update(body: dict[str, Any]) -> str:
    update = body.get("update")
    if not isinstance(update, dict):
        return ""
    kind = str(update.get("sessionUpdate", ""))
    if kind.endswith("_chunk") or kind in ("agent_message", "user_message", "agent_thought"):
        return f"{kind}: {_blocks(update.get('content'))}"
    if kind.startswith("tool_call"):
        parts = [update.get("title") or update.get("toolCallId"), update.get("status")]
        return f"{kind}: " + ", ".join(str(part) for part in parts if part)
    if kind == "plan" and isinstance(update.get("entries"), list):
        entries = [entry for entry in update["entries"] if isinstance(entry, dict)]
        done = sum(entry.get("status") == "completed" for entry in entries)
        return f"plan: {done} of {len(entries)} done"
    commands = update.get("availableCommands")
    if isinstance(commands, list):
        return f"{kind}: {len(commands)} commands"
    rest = {name: value for name, value in update.items() if name != "sessionUpdate"}
    return f"{kind}: {_compact(rest)}" if rest else kind


def _permission(body: dict[str, Any]) -> str:
    call, options = body.get("toolCall"), body.get("options")
    title = (call.get("title") or call.get("toolCallId")) if isinstance(call, dict) else ""
    names = [str(each.get("name")) for each in options if isinstance(each, dict)] if isinstance(options, list) else []
    return f"{title}: {' | '.join(names)}"


def _outcome(body: dict[str, Any]) -> str:
    outcome = body.get("outcome")
    if not isinstance(outcome, dict):
        return ""
    return " ".join(str(outcome[name]) for name in ("outcome", "optionId") if name in outcome)


def _terminal(body: dict[str, Any]) -> str:
    args = body.get("args")
    return " ".join(map(str, [body.get("command") or "", *(args if isinstance(args, list) else [])])).strip()


def _claude(body: dict[str, Any]) -> str:
    message = body.get("message")
    if isinstance(message, dict):
        return _blocks(message.get("content"))
    return _compact({name: value for name, value in body.items() if name not in ("type", "subtype", "session_id")})


_CALLS = {
    "initialize": _initialize,
    "session/prompt": _prompt,
    "session/update": _update,
    "session/new": lambda body: str(body.get("cwd") or ""),
    "session/load": lambda body: str(body.get("cwd") or ""),
    "session/request_permission": _permission,
    "fs/read_text_file": lambda body: str(body.get("path") or ""),
    "fs/write_text_file": lambda body: str(body.get("path") or ""),
    "terminal/create": _terminal,
    "tools/call": lambda body: f"{body.get('name')} {_compact(body.get('arguments'))}",
}
_ANSWERS = {
    "initialize": _initialize,
    "session/prompt": lambda body: str(body.get("stopReason") or ""),
    "session/new": lambda body: str(body.get("sessionId") or ""),
    "session/request_permission": _outcome,
}


def _blocks(value: Any) -> str:
    """The text of content blocks, one or several; others by their type."""
    blocks = value if isinstance(value, list) else [value]
    texts = []
    for block in blocks:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            texts.append(block["text"] if isinstance(block.get("text"), str) else f"[{block.get('type')}]")
    return " ".join(texts)


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()[: 4 * _LENGTH]
