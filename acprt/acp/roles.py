"""What `Agent` and `Client` share: an endpoint that speaks ACP, and the dialect that guards each of its connections.

The dialect joins the wire habits of `dialect`, the handshake of `versions` and the gates of `capabilities`. A role may
bring several sides, one per version; which of them serves a connection is known once a version is chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec import Raw, Struct

from acprt.acp.capabilities import baseline_missing, inferred, lacking, merged
from acprt.acp.dialect import AcpDialect, Side
from acprt.acp.peer import Peer, peer_of, schema_of
from acprt.acp.registration import why_not_served
from acprt.acp.versions import Phase, VersionGuard, as_initialize_of
from acprt.errors import ErrorCode, RpcError
from acprt.limits import Limits
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.ends import CloseCallback
from acprt.runtime.handlers import Chains
from acprt.wire.frames import NO_PARAMS, NotificationFrame, RequestFrame, ResponseFrame
from acprt.wire.payloads import UNENCODABLE, decode_params

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["INITIALIZE", "Role", "RoleDialect", "wrong_direction"]

logger = logging.getLogger("acprt.acp")

INITIALIZE = "initialize"


class Role(Endpoint):
    """An endpoint that is one side of ACP: `Agent` or `Client`."""

    side: Side

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str | None = None,
        capabilities: msgspec.Struct | None = None,
        unstable: bool = False,
        strict_capabilities: bool = False,
        limits: Limits | None = None,
        protocol: Literal[1, 2] = 1,
    ) -> None:
        super().__init__(name, limits=limits, dialect=RoleDialect(self.side, {protocol: self}))
        self.protocol = protocol
        """The version of the protocol whose messages the handlers take."""
        self.unstable = unstable
        self.strict_capabilities = strict_capabilities
        self.info = {"name": name, "version": version} | ({} if title is None else {"title": title})
        """Who this is, as `initialize` tells it."""
        if capabilities is not None:
            expected = getattr(schema_of(protocol), f"{self.side.title()}Capabilities")
            if not isinstance(capabilities, expected):
                raise TypeError(f"capabilities= takes a v{protocol}.{expected.__name__}, not {capabilities!r}")
        self._given = {} if capabilities is None else msgspec.to_builtins(capabilities)

    def handled_methods(self) -> frozenset[str]:
        """The methods that have a handler of the user's own."""
        return frozenset(method for route in self._routes for method in route.taken or ())

    def capabilities(self) -> dict[str, Any]:
        """What is advertised, as the wire shows it: inferred from the handlers present, and what was given beside."""
        return merged(inferred(self.side, self.protocol, self.handled_methods()), self._given)

    def chains(self) -> Chains:
        """The handlers, once it is clear that they may be served.

        Raises TypeError for a handler of another version's message, of one that only this side sends, and of an
        unstable method without the opt-in.
        """
        for route in self._routes:
            objection = why_not_served(route, self.side, self.protocol, unstable=self.unstable)
            if objection is not None:
                raise TypeError(f"{self.side} {self.name!r}: {objection}")
        missing = baseline_missing(self.protocol, self.handled_methods()) if self.side == "agent" else ()
        if missing:
            logger.warning("%s offers sessions, which promises %s too", self.name, ", ".join(missing))
        return super().chains()


class _Handlers(Struct):
    """The handlers of one version, ready to be handed a connection."""

    chains: Chains
    close_callbacks: Sequence[CloseCallback]


class RoleDialect(AcpDialect):
    """The dialect of one connection of a role: it knows who may say what, and makes the peer known.

    `sides` are the roles by the version they speak. With `hands_over` none of them is the endpoint that was opened: the
    handlers of the chosen version take the connection over when its handshake begins.
    """

    def __init__(self, side: Side, sides: Mapping[int, Role], *, hands_over: bool = False) -> None:
        super().__init__(min(sides), side=side)
        self.sides = dict(sides)
        self._hands_over = hands_over
        self.guard = VersionGuard(sides.keys(), side)
        self._cx: Connection | None = None
        self._handlers: dict[int, _Handlers] = {}
        self._request: Raw = NO_PARAMS  # params of the handshake under way
        self._attempts = 0  # handshakes of a client that were given up: their answers come too late
        self._at_work: set[int] = set()  # versions whose spawned work runs

    def for_connection(self) -> Self:
        """A new one, with a handshake of its own; sides to come are compiled here, so that errors appear at once."""
        mine = type(self)(self.side, self.sides, hands_over=self._hands_over)
        if self._hands_over:
            mine._handlers = {
                version: _Handlers(role.chains(), role.close_callbacks) for version, role in self.sides.items()
            }
        return mine

    def add_side(self, role: Role) -> None:
        """Let this connection speak the version of `role`, too."""
        self.sides[role.protocol] = role
        self.guard.versions.add(role.protocol)
        self._handlers[role.protocol] = _Handlers(role.chains(), role.close_callbacks)

    def connected(self, cx: Connection) -> None:
        """Remember the connection, whose `peer` the handshake sets."""
        self._cx = cx

    @property
    def spoken(self) -> Role:
        """The side that speaks the version at hand."""
        return self.sides[self.version]

    # -- what the peer asks ---------------------------------------------------------------------------------------

    def admit(self, frame: RequestFrame | NotificationFrame) -> RpcError | None:
        """Let nothing pass that is too early; begin the handshake of an agent."""
        if isinstance(frame, RequestFrame) and frame.method == INITIALIZE:
            return self._initialize_received(frame.params)
        refusal = self.guard.received(frame.method, is_request=isinstance(frame, RequestFrame))
        self.admits_all = self.guard.is_settled
        return refusal

    def follow(self, frame: RequestFrame) -> Callable[[ResponseFrame | None], None] | None:
        """The handshake ends with the answer to it."""
        return self._initialize_answered if frame.method == INITIALIZE else None

    def _initialize_received(self, params: Raw) -> RpcError | None:
        if self.side == "client":
            return wrong_direction()
        given = _object(params)
        refusal = self.guard.asked(given.get("protocolVersion"))
        version = self.guard.version
        if refusal is None and version is not None:
            fitting = as_initialize_of(version, given)
            self._request = params if fitting is None else _raw(fitting)
            self._serve(version)
        return refusal

    def _initialize_answered(self, frame: ResponseFrame | None) -> None:
        if frame is None or frame.error is not None:
            self._failed()
            return
        try:
            self._succeeded(self.version, frame.result)
        except RpcError as error:
            logger.warning("initialize was answered with what is no answer to it: %s", error)
            self._failed()

    # -- what this side asks --------------------------------------------------------------------------------------

    def on_request_sent(self, id: Any, method: str, params: Any) -> RpcError | None:
        """Refuse what is too early, unstable without leave, or, if strict, not offered by the peer."""
        if method == INITIALIZE:
            return self._initialize_sent(params)
        refusal = self.guard.sent(method)
        if refusal is not None:
            return refusal
        self.admits_all = self.admits_all or self.guard.is_settled
        role = self.spoken
        if not role.unstable and method in schema_of(self.version).UNSTABLE_METHODS:
            reason = f"unstable in version {self.version} of the protocol: make {role.name!r} with unstable=True"
            return RpcError(ErrorCode.METHOD_NOT_FOUND, "Method not found", {"method": method, "reason": reason})
        return self._not_offered(method) if role.strict_capabilities else None

    def follow_sent(self, id: Any, method: str) -> Callable[[ResponseFrame | RpcError], RpcError | None] | None:
        """The handshake ends with the answer to it."""
        return partial(self._initialize_outcome, self._attempts) if method == INITIALIZE else None

    def give_up(self) -> None:
        """Nobody waits for the answer to the handshake under way any more: another may begin."""
        if self.guard.phase is Phase.INITIALIZING:
            self._attempts += 1
            self._failed()

    def _not_offered(self, method: str) -> RpcError | None:
        peer = None if self._cx is None else self._cx.peer
        if not isinstance(peer, Peer):
            return None
        theirs: Side = "client" if self.side == "agent" else "agent"
        can_sign_in = bool(peer.auth_methods)
        missing = lacking(method, theirs, peer.version, peer.wire_capabilities, can_sign_in=can_sign_in)
        if missing is None:
            return None
        data = {"method": method, "reason": f"the peer does not offer it: no {missing} in its capabilities"}
        return RpcError(ErrorCode.METHOD_NOT_FOUND, "Method not found", data)

    def _initialize_sent(self, params: Any) -> RpcError | None:
        if self.side == "agent":
            return wrong_direction()
        request = _raw(params)
        if request is NO_PARAMS and self.guard.phase is not Phase.INITIALIZING:
            return None  # it fails where it is written, and no handshake with it
        refusal = self.guard.ask(_object(request).get("protocolVersion"))
        if refusal is None:  # else the one under way goes on, with the request it began with
            self._request = request
        return refusal

    def _initialize_outcome(self, attempt: int, outcome: ResponseFrame | RpcError) -> RpcError | None:
        """See how the handshake of a client ended; an error takes the place of an answer that is none."""
        if attempt != self._attempts:
            return None
        if isinstance(outcome, RpcError) or outcome.error is not None:
            self._failed()
            return None
        version: Any = _object(outcome.result).get("protocolVersion")
        refusal = self.guard.answered(version)
        try:
            if refusal is None:
                self._succeeded(version, outcome.result)
        except RpcError as error:
            refusal = error
        if refusal is not None:
            self._failed()
        return refusal

    # -- the end of a handshake -----------------------------------------------------------------------------------

    def _succeeded(self, version: int, response: Raw) -> None:
        peer = peer_of(self.side, version, self._request, response)
        self.guard.succeed(version)
        self._serve(version)
        cx = self._cx
        assert cx is not None, "a dialect meets its connection before its first frame"
        cx.peer = peer
        if version in self._handlers and version not in self._at_work and not cx.is_ending:
            self._at_work.add(version)
            self.sides[version].start_spawned(cx)

    def _failed(self) -> None:
        self.guard.fail()
        if self.guard.version is not None:
            self._serve(self.guard.version)

    def _serve(self, version: int) -> None:
        self.speak(version)
        handlers = self._handlers.get(version)
        if handlers is not None and self._cx is not None:
            self._cx.hand_over(handlers.chains, handlers.close_callbacks)


def wrong_direction() -> RpcError:
    """What an `initialize` from agent to client is refused with."""
    return RpcError.invalid_request("initialize is sent by clients and answered by agents")


def _raw(params: Any) -> Raw:
    """Params as they would be written; none for what cannot be, which is told where it is written or decoded."""
    try:
        return Raw(msgspec.json.encode(params))
    except UNENCODABLE:
        return NO_PARAMS


def _object(raw: Raw) -> dict[str, Any]:
    """The members of a JSON object; none for anything else."""
    try:
        value = decode_params(None, raw)
    except RpcError:
        return {}
    return value if isinstance(value, dict) else {}
