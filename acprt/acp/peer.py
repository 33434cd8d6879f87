"""What a connection knows of the program at its other end once the handshake is over: `cx.peer`.

Also which schema module goes with which version; that of version 2 is imported when it is first asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import msgspec
from msgspec import Raw

from acprt.acp.dialect import Side
from acprt.wire.frames import NO_PARAMS
from acprt.wire.payloads import decode_params, decode_result, decoder_for

__all__ = ["Peer", "capabilities_member", "info_member", "peer_of", "schema_of"]


class Peer(msgspec.Struct):
    """The other side of an ACP connection, as `initialize` made it known. Version 1 may leave `info` out.

    For a client `info`, `capabilities` and `auth_methods` are the agent's, for an agent they are the client's (which
    has no `auth_methods`). They are classes of `acp.v1` or `acp.v2`, whichever `version` says; `request` and `response`
    are the two messages of the handshake, of the same module.
    """

    version: int
    info: Any
    capabilities: Any
    auth_methods: list[Any]
    request: Any
    response: Any
    wire_capabilities: dict[str, Any]
    """The same capabilities as plain JSON: what this version of the schema does not name is there too."""


@cache
def schema_of(version: int) -> Any:
    """The schema module of a version."""
    return import_module(f"acprt.acp.schema.v{version}")


def info_member(side: Side, version: int) -> str:
    """Under which wire name a side tells who it is."""
    return "info" if version > 1 else f"{side}Info"


def capabilities_member(side: Side, version: int) -> str:
    """Under which wire name a side tells what it can do."""
    return "capabilities" if version > 1 else f"{side}Capabilities"


def peer_of(side: Side, version: int, request: Raw, response: Raw) -> Peer:
    """The peer of `side`, out of the two messages of a handshake. Raises RpcError when they are none of `version`."""
    schema = schema_of(version)
    asked = decode_params(decoder_for(schema.InitializeRequest), request)
    answered = decode_result(decoder_for(schema.InitializeResponse), response)
    of_agent = side == "client"
    said, raw = (answered, response) if of_agent else (asked, request)
    their_side: Side = "agent" if of_agent else "client"
    wire = msgspec.json.decode(raw) if raw is not NO_PARAMS else {}
    capabilities = wire.get(capabilities_member(their_side, version))
    return Peer(
        version=version,
        info=getattr(said, "info" if version > 1 else f"{their_side}_info"),
        capabilities=getattr(said, "capabilities" if version > 1 else f"{their_side}_capabilities"),
        auth_methods=list(answered.auth_methods or ()) if of_agent else [],
        request=asked,
        response=answered,
        wire_capabilities=capabilities if isinstance(capabilities, dict) else {},
    )
