"""The opening of a connection from both sides: a client probes, falls back and agrees; a server has its answers ready.

The era is the dialect's to remember; what is said here are the messages that make it known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from acprt.errors import RpcError
from acprt.mcp.dialect import HANDSHAKE_VERSIONS, McpDialect
from acprt.mcp.era import ProtocolEra
from acprt.mcp.errors import McpErrorCode, unsupported_protocol_version
from acprt.mcp.messages import (
    DiscoverRequest,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializedNotification,
    InitializeRequest,
    InitializeResult,
    PingRequest,
)
from acprt.mcp.meta import SERVER_INFO
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint

__all__ = ["Peer", "answer_opening", "dialect_of", "negotiate"]

_LEGACY, _MODERN = ProtocolEra.LEGACY_2024, ProtocolEra.MODERN_2026
_NOBODY = Implementation(name="acprt", version="0")
_LOCAL_ENDS = ("incoming_transport_closed", "connection_closed", "connection_failed")


class Peer(msgspec.Struct, frozen=True):
    """What the opening told: the era, the version that is spoken, and who the other side is.

    `response` is the server's whole answer; None on the server's own side.
    """

    era: ProtocolEra
    version: str
    info: Implementation | None = None
    capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    response: InitializeResult | DiscoverResult | None = None


def dialect_of(cx: Connection) -> McpDialect:
    """The dialect of an MCP connection. Raises TypeError for any other."""
    if not isinstance(cx.dialect, McpDialect):
        raise TypeError(f"{cx!r} does not speak MCP: give its endpoint dialect=mcp.dialect(…) or mcp.negotiated(…)")
    return cx.dialect


async def negotiate(
    cx: Connection,
    *,
    version: str = HANDSHAKE_VERSIONS[0],
    probe_seconds: float = 5.0,
    initialize_seconds: float = 60.0,
) -> Peer:
    """Open a connection as a client, find its era, and set `cx.peer`. Call it before anything else is sent.

    `server/discover` goes first. A result, or -32022, means the modern era; any other error, or `probe_seconds` of
    silence, the legacy one, where `initialize` asks for `version`; a server that answers that with -32022 was only slow
    to start, and is asked again. Where the dialect names the era there is no probe, nor where the same command was a
    legacy server when an endpoint with this dialect started it last. Who the client is, the dialect was told.

    Raises RpcError: the peer's, or -32022 when no version is common; TimeoutError when `initialize` is not answered.
    """
    dialect = dialect_of(cx)
    if dialect.side != "client":
        raise TypeError("a server does not negotiate: it answers (mcp.answer_opening)")
    if dialect.settings.era is not None:
        era = dialect.settings.era
        peer = await (
            _discover(cx, initialize_seconds) if era is _MODERN else _initialize(cx, version, initialize_seconds)
        )
    else:
        peer = await _found_out(cx, version, probe_seconds, initialize_seconds)
    cx.peer = peer
    return peer


async def _found_out(cx: Connection, version: str, probe_seconds: float, initialize_seconds: float) -> Peer:
    if dialect_of(cx).legacy_commands.knows(cx):
        try:
            return await _initialize(cx, version, initialize_seconds)
        except RpcError as error:
            if _is_local(error):
                raise  # the program is another one by now, perhaps: ask from the start
    was_silent = False
    try:
        return await _discover(cx, probe_seconds)
    except RpcError as error:
        if _is_local(error) or error.code == McpErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            raise
    except TimeoutError:
        was_silent = True
    try:
        return await _initialize(cx, version, initialize_seconds)
    except RpcError as error:
        if not was_silent or error.code != McpErrorCode.UNSUPPORTED_PROTOCOL_VERSION or _is_local(error):
            raise
    return await _discover(cx, initialize_seconds)  # it was slow to start, no more, and is modern


async def _discover(cx: Connection, seconds: float) -> Peer:
    result = await cx.send_request(DiscoverRequest()).block_task(timeout=seconds)
    if _MODERN.value not in result.supported_versions:
        raise unsupported_protocol_version(_MODERN.value, result.supported_versions)
    try:
        info = msgspec.convert((result.meta or {}).get(SERVER_INFO), Implementation | None)
    except msgspec.ValidationError:
        info = None
    return Peer(_MODERN, _MODERN.value, info, result.capabilities, result.instructions, result)


async def _initialize(cx: Connection, version: str, seconds: float) -> Peer:
    settings = dialect_of(cx).settings
    request = InitializeRequest(
        protocol_version=version, capabilities=dict(settings.capabilities), client_info=settings.info or _NOBODY
    )
    result = await cx.send_request(request).block_task(timeout=seconds)
    if result.protocol_version not in HANDSHAKE_VERSIONS:
        raise unsupported_protocol_version(result.protocol_version, HANDSHAKE_VERSIONS)
    cx.send_notification(InitializedNotification())
    return Peer(_LEGACY, result.protocol_version, result.server_info, result.capabilities, result.instructions, result)


def _is_local(error: RpcError) -> bool:
    """Whether there is nobody left to ask."""
    return isinstance(error.data, dict) and error.data.get("reason") in _LOCAL_ENDS


def answer_opening(
    endpoint: Endpoint,
    *,
    info: Implementation,
    capabilities: Mapping[str, Any] | None = None,
    instructions: str | None = None,
    versions: Sequence[str] = HANDSHAKE_VERSIONS,
) -> None:
    """Register the answers to `initialize`, `server/discover` and `ping`; the dialect lets those of its era pass.

    A legacy client gets the version that it asked for if it is among `versions`, else the first of them, and
    `cx.peer` tells who it is.
    """
    offered = dict(capabilities or {})

    async def initialize(request: InitializeRequest, cx: Connection) -> InitializeResult:
        asked = request.protocol_version
        version = asked if asked in versions else versions[0]
        cx.peer = Peer(_LEGACY, version, request.client_info, request.capabilities)
        return InitializeResult(
            protocol_version=version, capabilities=offered, server_info=info, instructions=instructions
        )

    async def discover(request: DiscoverRequest) -> DiscoverResult:
        return DiscoverResult(
            supported_versions=[_MODERN.value],
            capabilities=offered,
            instructions=instructions,
            meta={SERVER_INFO: info},
        )

    async def ping(request: PingRequest) -> EmptyResult:
        return EmptyResult()

    async def initialized(note: InitializedNotification) -> None:
        """Nothing waits for it."""

    endpoint.method(InitializeRequest)(initialize)
    endpoint.method(DiscoverRequest)(discover)
    endpoint.method(PingRequest)(ping)
    endpoint.on_receive_notification(InitializedNotification)(initialized)
