"""What MCP does differently from plain JSON-RPC, for one connection of one side, in either era.

A cancelled request is never answered, and nothing more is said for it; what it asked of the peer is cancelled with it.
The era is given, or chosen by the opening, and never changes. It lets an `initialize` pass and never answers one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from acprt.errors import RpcError
from acprt.mcp.admission import AdmissionError, admit_frame
from acprt.mcp.cancellation import (
    NOTIFICATIONS_CANCELLED,
    CancellationProfile,
    CancellationSender,
    CancellationWireCodecError,
    CancellationWireMessage,
)
from acprt.mcp.era import (
    INITIALIZE,
    EraPolicy,
    ProtocolEra,
    RejectedAndClosed,
    Selected,
    StdioEraClassifier,
    opening_of,
)
from acprt.mcp.errors import unsupported_protocol_version
from acprt.mcp.ids import correlation_key, parse_request_id
from acprt.mcp.listens import LISTEN, SUBSCRIPTION_NOTIFICATIONS, LiveListens
from acprt.mcp.memory import LegacyCommands
from acprt.mcp.messages import Implementation
from acprt.mcp.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO
from acprt.mcp.progress import PROGRESS, ProgressTokens
from acprt.mcp.refusals import DISCOVER, member_of, refusal_of, refusal_of_method
from acprt.mcp.settings import CancelReading, Settings, Side
from acprt.mcp.spelled_ids import reread
from acprt.mcp.stamps import stamped_params, stamped_result
from acprt.runtime.dialect import CancelNotice, Dialect
from acprt.wire.frames import Frame, NotificationFrame, RequestFrame, ResponseFrame, parse
from acprt.wire.ids import RequestId as WireRequestId
from acprt.wire.lines import Line, OversizedLine
from acprt.wire.malformed import MalformedFrame, malformed_from_json
from acprt.wire.repair import repair

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["HANDSHAKE_VERSIONS", "McpDialect", "dialect", "negotiated"]

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that `initialize` can agree on, newest first. All of them behave as the legacy era does."""

_BATCHES = "2025-03-26"  # the one version with arrays

_NEVER_CANCELLED = frozenset({INITIALIZE, DISCOVER})

_LEGACY, _MODERN = ProtocolEra.LEGACY_2024, ProtocolEra.MODERN_2026
_POLICY = {None: EraPolicy.AUTO, _LEGACY: EraPolicy.LEGACY_ONLY, _MODERN: EraPolicy.MODERN_ONLY}

_DEAD = RpcError(0, "for a request or a subscription that is over")  # refuses a notification, so nobody sees it


class McpDialect(Dialect):
    """MCP on one connection. Make one with `mcp.dialect` or `mcp.negotiated`."""

    cancel_methods = frozenset({NOTIFICATIONS_CANCELLED})
    accepts_batches = False
    answers_cancelled = False
    gates_frames = True
    withdraws_queued = True
    cascades_cancel = True

    def __init__(self, settings: Settings, legacy_commands: LegacyCommands | None = None) -> None:
        self.settings = settings
        self.side = settings.side
        self.era = settings.era
        """The era, once it is known."""
        self.version: str | None = None if settings.era is None else settings.era.value
        """The protocol version; of the legacy era, what the handshake agreed on."""
        self.legacy_commands = legacy_commands or LegacyCommands()
        """What the connections of this dialect share: which commands to greet as legacy servers."""
        self.progress = ProgressTokens()
        self.listens = LiveListens()
        self.next_token: str | None = None
        """A progress token to be stamped on the request that is sent next."""
        self.serves_subscriptions = False
        """Whether subscriptions that are left at the end get a result; set by whoever keeps them."""
        self.dropped_cancels = 0
        """Cancels that were not well-formed, or not the peer's to send."""
        self._peer = CancellationSender.SERVER if self.side == "client" else CancellationSender.CLIENT
        self._classifier = self._new_classifier()
        self._opening: WireRequestId = None  # our request whose answer chooses the era
        self._cx: Connection | None = None
        self._names_itself()
        if self.side == "server" and settings.era is None and not settings.strict_opening:
            self.opening_buffer = 8

    def for_connection(self) -> McpDialect:
        """One object per connection: each has an era of its own."""
        return McpDialect(self.settings, self.legacy_commands)

    def connected(self, cx: Connection) -> None:
        """Remember whom to end, should the opening have to be closed, and what was started."""
        self._cx = cx

    def choose(self, era: ProtocolEra, version: str) -> None:
        """The opening has told the era; it is never told again, while a version may be agreed on within it."""
        if self.era is None or self.era is era:
            self.era, self.version = era, version
            self.accepts_batches = version == _BATCHES
            if self.side == "client" and self._cx is not None:
                self.legacy_commands.learn(self._cx, era)
            self._names_itself()

    # -- what comes in --------------------------------------------------------------------------------------------

    def parse(self, line: Line) -> Frame:
        """Ids of MCP may be spelled, and be larger, than other protocols allow."""
        if self.settings.strict_admission and not isinstance(line, OversizedLine):
            try:
                admit_frame(bytes(line))
            except AdmissionError as error:
                frame = parse(line)
                return frame if isinstance(frame, MalformedFrame) else malformed_from_json(bytes(line), error.reason)
        frame = parse(line)
        if type(frame) is MalformedFrame:
            return reread(frame.raw, frame)
        if type(frame) is ResponseFrame:
            self.progress.answered(frame.id)
            if self.side == "client":
                self.listens.answer_read(frame.id)
        elif type(frame) is RequestFrame and frame.id == 0 and isinstance(line, bytes) and b"-0" in line:
            return reread(line, frame)  # the id may be spelled -0
        return frame

    def key(self, id: Any) -> Hashable:
        """The value of an id, however it is spelled."""
        if type(id) is Raw:
            known = parse_request_id(bytes(id))
            return None if known is None else correlation_key(known)
        key: Hashable = id
        return key

    def admit(self, frame: RequestFrame | NotificationFrame) -> RpcError | None:
        """Refuse requests of the other era, and let late messages of what is over pass unseen."""
        if type(frame) is NotificationFrame:
            return self._admit_notification(frame)
        if frame.id is None:
            return RpcError.invalid_request("the id of a request is a string or an integer")
        if self.side == "client":
            if self.era is _MODERN:  # answers_refused is off: a modern client writes no answers
                return RpcError.method_not_found(frame.method)
            return None
        return self._admit_request(frame)

    def follow(self, frame: RequestFrame) -> Callable[[ResponseFrame | None], ResponseFrame | None] | None:
        """A server reads the agreed version off its own answer, and completes modern results."""
        if self.side != "server":
            return None
        if self.era is _MODERN:
            return lambda answer: self._completed(frame, answer)
        return self._initialize_answered if frame.method == INITIALIZE else None

    def parse_cancel(self, frame: NotificationFrame) -> CancelNotice | ResponseFrame | None:
        """A cancel of the peer's own request; of a server in the modern era, the end of a subscription of ours."""
        era = self.era
        if era is None and self.side == "client":
            era = _LEGACY  # who asks us anything before our opening is answered speaks it
        cancel = None if era is None else self._decoded(era, frame)
        if cancel is not None:
            key = correlation_key(cancel.params.request_id)
            if era is not _MODERN or self.side == "server":
                return CancelNotice(key, cancel.params.reason)
            ended = self.listens.cancelled_by_peer(key, cancel.params.reason)
            if ended is not None:
                return ended
        self.dropped_cancels += 1
        return None

    def may_cancel_incoming(self, method: str) -> bool:
        """Everything but the opening."""
        return method not in _NEVER_CANCELLED

    # -- what goes out --------------------------------------------------------------------------------------------

    def on_request_sent(self, id: WireRequestId, method: str, params: Any) -> RpcError | Raw | None:
        """A modern client stamps what every request says of it; a modern server has no requests."""
        if self.side == "server" and self.era is _MODERN:
            return RpcError.internal_error(f"a server of {_MODERN.value} sends no requests: {method}")
        meta = self._client_meta(method) if self.side == "client" else {}
        if method in _NEVER_CANCELLED:
            self._opening = id
        token, self.next_token = self.next_token, None
        if token is not None:
            meta["progressToken"] = Raw(msgspec.json.encode(token))
        return stamped_params(params, meta) if meta else None

    def follow_sent(
        self, id: WireRequestId, method: str
    ) -> Callable[[ResponseFrame | RpcError], ResponseFrame | None] | None:
        """A client reads the era off the answer to its opening, and tells how its subscriptions ended."""
        if self.side == "client":
            if method == LISTEN:
                return self.listens.opened(id)
            if method in _NEVER_CANCELLED:
                return lambda outcome: self._opening_answered(id, method, outcome)
        return None

    def build_cancel(self, id: WireRequestId, reason: str | None = None) -> tuple[str, Any] | None:
        """`notifications/cancelled`; or the end of the request's stream, where each has one of its own."""
        if self.settings.close_stream is not None:
            assert isinstance(id, int), "our own ids are counted"
            self.settings.close_stream(id)
            return None
        params: dict[str, Any] = {"requestId": id}
        if reason is not None:
            params["reason"] = reason.encode("utf-8", "replace").decode()  # a cancel must not fail for its reason
        return NOTIFICATIONS_CANCELLED, params

    def may_cancel_outgoing(self, method: str) -> bool:
        """Everything but the opening: that is given up here, and the peer is not told."""
        return method not in _NEVER_CANCELLED

    def answer_on_shutdown(self, method: str) -> RpcError | None:
        """Nothing; subscriptions that are served here have an answer for this moment, which takes the error's place."""
        return RpcError.internal_error() if method == LISTEN and self.serves_subscriptions else None

    # -- the opening of a server ----------------------------------------------------------------------------------

    def _admit_request(self, frame: RequestFrame) -> RpcError | None:
        decision = self._classifier.classify(opening_of(frame))
        if isinstance(decision, Selected):
            if self.era is None:
                self.choose(decision.era, decision.era.value)
            if decision.unsupported is not None:
                return unsupported_protocol_version(decision.unsupported, [_MODERN.value])
            return refusal_of_method(decision.era, frame.method)
        if isinstance(decision, RejectedAndClosed) and not self.settings.strict_opening:
            self._classifier = self._new_classifier()  # it may try again
        refusal = refusal_of(decision, frame)
        if self.settings.strict_opening and self.era is None:
            self._close(refusal)
        return refusal

    def _admit_notification(self, frame: NotificationFrame) -> RpcError | None:
        if frame.method == PROGRESS:
            return None if self.progress.hear(frame) else _DEAD
        if self.side == "client":
            if self.era is _MODERN and frame.method in SUBSCRIPTION_NOTIFICATIONS:
                return None if self.listens.expects(frame.params) else _DEAD
        elif self.era is None and self.settings.strict_opening:
            refusal = refusal_of(self._classifier.classify(opening_of(frame)), frame)
            self._close(refusal)
            return refusal
        return None

    def _close(self, cause: RpcError) -> None:
        """End the connection, behind the refusal."""
        if self._cx is not None:
            self._cx.loop.call_soon(self._cx.fail, cause)

    def _new_classifier(self) -> StdioEraClassifier:
        return StdioEraClassifier(_POLICY[self.settings.era], implicit_legacy=self.settings.implicit_legacy)

    def _initialize_answered(self, answer: ResponseFrame | None) -> None:
        version = None if answer is None else member_of(answer.result, "protocolVersion")
        if isinstance(version, str):
            self.choose(_LEGACY, version)

    def _completed(self, frame: RequestFrame, answer: ResponseFrame | None) -> ResponseFrame | None:
        if answer is None or answer.error is not None:
            return None
        info = self.settings.info
        meta = {} if info is None else {SERVER_INFO: Raw(msgspec.json.encode(info))}
        result = stamped_result(frame.method, answer.result, meta)
        return None if result is None else ResponseFrame(frame.id, result)

    # -- the opening of a client ----------------------------------------------------------------------------------

    def _opening_answered(self, id: WireRequestId, method: str, outcome: ResponseFrame | RpcError) -> None:
        if id != self._opening or not isinstance(outcome, ResponseFrame) or outcome.error is not None:
            return
        if method == DISCOVER:
            supported = member_of(outcome.result, "supportedVersions")
            if isinstance(supported, list) and _MODERN.value in supported:
                self.choose(_MODERN, _MODERN.value)
        else:
            version = member_of(outcome.result, "protocolVersion")
            if isinstance(version, str):
                self.choose(_LEGACY, version)

    def _client_meta(self, method: str) -> dict[str, Raw]:
        if self.era is not _MODERN and (self.era is not None or method != DISCOVER):
            return {}
        meta = {
            PROTOCOL_VERSION: Raw(msgspec.json.encode(_MODERN.value)),
            CLIENT_CAPABILITIES: Raw(msgspec.json.encode(self.settings.capabilities)),
        }
        if self.settings.info is not None:
            meta[CLIENT_INFO] = Raw(msgspec.json.encode(self.settings.info))
        return meta

    # -- the rest -------------------------------------------------------------------------------------------------

    def _decoded(self, era: ProtocolEra, frame: NotificationFrame) -> CancellationWireMessage | None:
        """The cancel that a frame is, read as strictly as this connection wants."""
        if self._reads_leniently:
            era = _MODERN  # its payload is open; nobody looks at more than id and reason
        profile = self.settings.profile
        try:
            return CancellationWireMessage.decode(era, self._peer, frame, profile=profile)
        except CancellationWireCodecError:
            mended = repair(bytes(frame.params))
        if mended is None:
            return None
        try:
            return CancellationWireMessage.decode(
                era, self._peer, NotificationFrame(frame.method, Raw(mended)), profile=profile
            )
        except CancellationWireCodecError:
            return None

    @property
    def _reads_leniently(self) -> bool:
        if self.settings.cancels == "auto":
            return self.version is not None and ProtocolEra.of_version(self.version) is None
        return self.settings.cancels == "lenient"

    def _names_itself(self) -> None:
        self.name = "mcp" if self.version is None else f"mcp {self.version}"
        self.answers_refused = self.side == "server" or self.era is not _MODERN


def dialect(
    era: ProtocolEra,
    side: Side,
    *,
    info: Implementation | None = None,
    capabilities: Mapping[str, Any] | None = None,
    profile: CancellationProfile = "0.8",
    cancels: CancelReading = "auto",
    implicit_legacy: bool = True,
    strict_admission: bool = False,
    close_stream: Callable[[int], object] | None = None,
) -> McpDialect:
    """The dialect of an endpoint whose connections all speak `era`, as `side`.

    `info` and `capabilities` are what a modern client says in every request, and a modern server in its results.
    `profile` and `cancels` say how a peer's cancel is read, `implicit_legacy` whether a legacy server serves requests
    without a handshake. `strict_admission` refuses every line that `admit_frame` refuses. `close_stream(id)` is for
    transports where the end of a request's stream is its cancel: it is called in the place of writing one.
    """
    if not isinstance(era, ProtocolEra):
        raise TypeError(f"era takes a ProtocolEra, not {era!r}; negotiated(…) finds it out")
    return McpDialect(
        Settings(
            side=side,
            era=era,
            info=info,
            capabilities=capabilities or {},
            profile=profile,
            cancels=cancels,
            implicit_legacy=implicit_legacy,
            strict_opening=False,
            strict_admission=strict_admission,
            close_stream=close_stream,
        )
    )


def negotiated(
    side: Side,
    *,
    info: Implementation | None = None,
    capabilities: Mapping[str, Any] | None = None,
    profile: CancellationProfile = "0.8",
    cancels: CancelReading = "auto",
    implicit_legacy: bool = True,
    strict_opening: bool = False,
    strict_admission: bool = False,
) -> McpDialect:
    """The dialect of an endpoint whose connections find out their era, each for itself.

    A server learns it from the first request; up to eight notifications wait for that. A client calls `negotiate`. With
    `strict_opening` anything else than a request that selects an era, notifications too, ends the connection. The rest
    is as in `dialect`.
    """
    return McpDialect(
        Settings(
            side=side,
            era=None,
            info=info,
            capabilities=capabilities or {},
            profile=profile,
            cancels=cancels,
            implicit_legacy=implicit_legacy,
            strict_opening=strict_opening,
            strict_admission=strict_admission,
            close_stream=None,
        )
    )
