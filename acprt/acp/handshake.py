"""`initialize`, both ends of it: what a client sends and an agent answers, and how a client steps down a version.

What may pass before it is over is told in `versions`; what both sides learn from it ends up in `cx.peer`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, json

from acprt.acp.client import Client
from acprt.acp.peer import Peer, capabilities_member, info_member, schema_of
from acprt.acp.roles import INITIALIZE, Role, RoleDialect
from acprt.acp.versions import UNSUPPORTED_VERSION, as_initialize_of
from acprt.errors import ErrorCode, RpcError
from acprt.runtime.connection import Connection
from acprt.runtime.handlers import Handled, Route, RouteKind
from acprt.runtime.responder import Responder
from acprt.wire.payloads import decode_params, decoder_for

__all__ = ["authenticate", "first_route", "initialize"]

_STEPS_DOWN = (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_PARAMS, UNSUPPORTED_VERSION)
"""What agents of version 1 answer to an `initialize` of version 2, if not with version 1."""


async def initialize(cx: Connection, *, fallback: bool = True, timeout: float | None = None) -> Peer:
    """Open the conversation with an agent: negotiate the version, say who the client is and what its handlers can do.

    Returns what is then in `cx.peer`. A client of version 2 goes on with version 1 when the agent answers with that or
    refuses version 2, unless `fallback` is False; so look at `cx.peer.version`. It is then served by the client of
    version 1 that a connector was given, else by one without handlers. Raises the agent's RpcError, one with -32600
    when it speaks no common version, and TimeoutError after `timeout` seconds for each try.
    """
    dialect = _client_dialect(cx)
    newest = max(dialect.sides)
    if newest == 1 or not fallback:
        return await _ask(cx, initialize_params(dialect, newest), timeout)
    if 1 not in dialect.sides:
        dialect.add_side(_without_handlers(dialect.spoken))
    try:
        return await _ask(cx, initialize_params(dialect, newest) | initialize_params(dialect, 1, newest), timeout)
    except RpcError as error:
        if error.code not in _STEPS_DOWN and not _is_misread(error):
            raise
    return await _ask(cx, initialize_params(dialect, 1), timeout)


async def authenticate(cx: Connection, method_id: str, *, timeout: float | None = None) -> None:
    """Sign in by one of `cx.peer.auth_methods`, named by its id: `authenticate` in version 1, `auth/login` in 2."""
    version = cx.peer.version if isinstance(cx.peer, Peer) else 1
    method = "authenticate" if version == 1 else "auth/login"
    await cx.send_request(method, {"methodId": method_id}).block_task(timeout)


def initialize_params(dialect: RoleDialect, version: int, asked: int | None = None) -> dict[str, Any]:
    """What the client of a connection sends for `version`, or beside what it sends to ask for another one.

    Members of version 1 beside those of version 2 let an agent that answers with 1 know its client at once.
    """
    role = dialect.sides[version]
    return {
        "protocolVersion": version if asked is None else asked,
        info_member("client", version): role.info,
        capabilities_member("client", version): role.capabilities(),
    }


def first_route() -> Route:
    """An agent's look at `initialize` before any handler: not once more, and as the chosen version writes it."""

    async def prepare(params: Any, responder: Responder[Any], cx: Connection) -> Handled:
        dialect = cx.dialect
        assert isinstance(dialect, RoleDialect), "this route belongs to a role"
        refusal = dialect.guard.repetition()
        if refusal is not None:
            raise refusal
        fitting = as_initialize_of(dialect.version, params if isinstance(params, dict) else {})
        if fitting is None:
            return Handled.no()
        decoder = decoder_for(schema_of(dialect.version).InitializeRequest)
        return Handled.no(decode_params(decoder, Raw(json.encode(fitting))))

    return Route(RouteKind.REQUEST, prepare, {INITIALIZE: None}, takes_cx=True)


def _without_handlers(role: Role) -> Client:
    """Who goes on in version 1 for a client of version 2 that nobody else stands beside."""
    strict = role.strict_capabilities
    client = Client(role.name, limits=role.limits, unstable=role.unstable, strict_capabilities=strict)
    client.info = role.info
    return client


async def _ask(cx: Connection, params: dict[str, Any], timeout: float | None) -> Peer:
    try:
        await cx.send_request(INITIALIZE, params, reply_type=Raw).block_task(timeout)
    except RpcError:
        raise
    except BaseException:  # out of time, or cancelled: the answer may still come, or never
        _client_dialect(cx).give_up()
        raise
    peer = cx.peer
    assert isinstance(peer, Peer), "the dialect sets it in the order of messages"
    return peer


def _client_dialect(cx: Connection) -> RoleDialect:
    dialect = cx.dialect
    if not isinstance(dialect, RoleDialect) or dialect.side != "client":
        raise TypeError(f"initialize() belongs to a connection of acp.Client, not to {cx!r}")
    return dialect


def _is_misread(error: RpcError) -> bool:
    """Whether the agent said yes to version 2 in the words of another."""
    return isinstance(error.data, dict) and error.data.get("phase") == "deserialization"
