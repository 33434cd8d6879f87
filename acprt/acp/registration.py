"""Which handlers a role may be served with: of its version, of its side, and stable unless it opted in.

A handler that could never be called, or only with messages of another version, is a mistake that nothing else would
show. It never looks at what a handler does.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

from acprt.acp.dialect import Side
from acprt.acp.peer import schema_of
from acprt.runtime.handlers import Route
from acprt.runtime.messages import is_message_type, method_of

__all__ = ["why_not_served"]


def why_not_served(route: Route, side: Side, version: int, *, unstable: bool) -> str | None:
    """What is wrong with a handler of a role, and what to do; None when nothing is."""
    for method, message_type in (route.taken or {}).items():
        home = getattr(message_type, "__module__", "")
        is_schema = home.startswith("acprt.acp.schema.")
        if is_schema and home != schema_of(version).__name__:
            theirs = home.rpartition(".")[2]
            role = f"acp.{side.title()}" + ("" if theirs == "v1" else f".{theirs}")
            return (
                f"{route.name} takes {theirs}.{message_type.__name__}, but this {side} is of version {version}: "
                f"take that of acp.v{version}, or use {role}"
            )
        if is_schema and method in _only_sent_by(side, version):  # who names a method by hand means it
            peer = "client" if side == "agent" else "agent"
            return f"{route.name} takes {method}, which no {peer} sends: its handler belongs to the {peer}"
        if not unstable and method in schema_of(version).UNSTABLE_METHODS:
            return (
                f"{route.name} takes {method}, which is unstable in version {version} of the protocol: make the {side} "
                "with unstable=True"
            )
    return None


@cache
def _only_sent_by(side: Side, version: int) -> frozenset[str]:
    """The methods that go from `side` to its peer and never the other way."""
    agents, clients = _sent_by("Agent", version), _sent_by("Client", version)
    return agents - clients if side == "agent" else clients - agents


def _sent_by(side: str, version: int) -> frozenset[str]:
    schema = schema_of(version)
    variants = (*get_args(getattr(schema, f"{side}Request")), *get_args(getattr(schema, f"{side}Notification")))
    return frozenset(method_of(variant) for variant in variants if is_message_type(variant))
