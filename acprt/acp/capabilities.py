"""Which capability stands for which method, in both versions: read one way it infers what a role offers from the
handlers it has, read the other way it tells whether the peer offers what is about to be asked.

Capabilities are wire JSON here, found by path, so that one table serves both versions; nothing of the schema is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from acprt.acp.dialect import Side

__all__ = ["baseline_missing", "inferred", "lacking", "merged"]


class Rule(Struct, frozen=True):
    """Handlers for all of `methods` imply the capability at `path`; to ask for one of them needs it."""

    methods: frozenset[str]
    path: tuple[str, ...]
    marker: bool  # advertised as an empty object, else as true


def _flag(path: str, *methods: str) -> Rule:
    return Rule(frozenset(methods), tuple(path.split(".")), marker=False)


def _marker(path: str, *methods: str) -> Rule:
    return Rule(frozenset(methods), tuple(path.split(".")), marker=True)


_PROVIDERS = ("providers/list", "providers/set", "providers/disable")
_TERMINALS = ("terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release")

_AGENT_V1 = (
    _flag("loadSession", "session/load"),
    _marker("sessionCapabilities.list", "session/list"),
    _marker("sessionCapabilities.delete", "session/delete"),
    _marker("sessionCapabilities.resume", "session/resume"),
    _marker("sessionCapabilities.close", "session/close"),
    _marker("sessionCapabilities.fork", "session/fork"),
    _marker("sessionCapabilities.archive", "session/archive", "session/unarchive"),
    _marker("sessionCapabilities.status", "session/status"),
    _marker("sessionCapabilities.title", "session/set_title"),
    _marker("auth.logout", "logout"),
    _marker("auth.status", "auth/status"),
    _marker("providers", *_PROVIDERS),
)

_SESSIONS_V2 = _marker("session", "session/new", "session/prompt")
"""Two handlers that show what an agent is; its client may take more from the capability, see `_PROMISED_V2`."""

_PROMISED_V2 = _marker("session", "session/new", "session/list", "session/resume", "session/close", "session/prompt")
"""What that one capability of version 2 promises, beside notifications."""

_AGENT_V2 = (
    _SESSIONS_V2,
    _marker("session.delete", "session/delete"),
    _marker("session.fork", "session/fork"),
    _marker("session.archive", "session/archive", "session/unarchive"),
    _marker("session.status", "session/status"),
    _marker("session.title", "session/set_title"),
    _marker("auth.status", "auth/status"),
    _marker("providers", *_PROVIDERS),
)

_ELICITATION = (
    _marker("elicitation.form", "elicitation/create"),
    _marker("elicitation.url", "elicitation/create", "elicitation/complete"),  # only a url visit is completed later
)

_CLIENT_V1 = (
    _flag("fs.readTextFile", "fs/read_text_file"),
    _flag("fs.writeTextFile", "fs/write_text_file"),
    _flag("terminal", *_TERMINALS),
    *_ELICITATION,
)

_RULES: Mapping[tuple[Side, int], tuple[Rule, ...]] = {
    ("agent", 1): _AGENT_V1,
    ("agent", 2): _AGENT_V2,
    ("client", 1): _CLIENT_V1,
    ("client", 2): _ELICITATION,
}

_SIGNING_IN = frozenset({"authenticate", "auth/login", "auth/logout"})
"""What needs no capability but a way to authenticate that the agent named."""


def inferred(side: Side, version: int, methods: Collection[str]) -> dict[str, Any]:
    """What a role that handles `methods` offers, as the wire shows it."""
    capabilities: dict[str, Any] = {}
    for rule in _RULES[side, version]:
        if rule.methods.issubset(methods):
            at = capabilities
            for name in rule.path[:-1]:
                at = at.setdefault(name, {})
            at.setdefault(rule.path[-1], {} if rule.marker else True)
    return capabilities


def merged(capabilities: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`capabilities` with what was `given` beside it; what was given goes first."""
    result = dict(capabilities)
    for name, value in given.items():
        known = result.get(name)
        result[name] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def baseline_missing(version: int, methods: Collection[str]) -> list[str]:
    """Methods that an agent of `methods` promises by its capability `session` and does not handle."""
    if version != 2 or not _SESSIONS_V2.methods.issubset(methods):
        return []
    return sorted(_PROMISED_V2.methods.difference(methods))


def lacking(
    method: str, side: Side, version: int, capabilities: Mapping[str, Any], *, can_sign_in: bool = False
) -> str | None:
    """The capability that a peer on `side` would need for `method` and has not advertised; None when it may be asked.

    A method that no capability stands for may always be asked. Of several that would do, one is enough.
    """
    if method in _SIGNING_IN:
        return None if can_sign_in else "authMethods"
    rules = [rule for rule in _RULES[side, version] if method in rule.methods]
    if side == "agent" and version == 2 and method in _PROMISED_V2.methods:
        rules = [_PROMISED_V2]
    if not rules or any(_advertised(rule.path, capabilities) for rule in rules):
        return None
    return " or ".join(".".join(rule.path) for rule in rules)


def _advertised(path: tuple[str, ...], capabilities: Mapping[str, Any]) -> bool:
    at: Any = capabilities
    for name in path:
        if not isinstance(at, Mapping):
            return False
        at = at.get(name)
    return at is not None and at is not False
