"""Which protocol version a connection speaks, and what may pass before that is settled: a state machine without I/O.

Both sides ask it for every call until the handshake is over. It never touches the calls themselves, and it converts
nothing between versions except the params of an `initialize` that asks for more than is spoken here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Any

from acprt.acp.dialect import Side
from acprt.errors import RpcError

__all__ = ["UNSUPPORTED_VERSION", "Phase", "VersionGuard", "as_initialize_of", "is_version"]

UNSUPPORTED_VERSION = -32022
"""The error of version 2 for a protocol version below all that an agent speaks."""

_U16 = 0xFFFF


class Phase(Enum):
    """Where the handshake of a connection is. A failed one falls back to where it began."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()


class VersionGuard:
    """The handshake of one side of one connection that speaks `versions`.

    In version 1 a side is easy with its peer: whatever follows the client's `initialize` passes, answered or not, and
    agents of a client are not checked. In version 2, and where that may still be chosen, nothing but `initialize` and
    `$/…` passes before the handshake has succeeded. It may be repeated until the first other request, never for a
    lower version; after that request version 1 is told again to whoever asks, and version 2 refuses.
    """

    def __init__(self, versions: Collection[int], side: Side) -> None:
        self.versions = set(versions)
        self.phase = Phase.UNINITIALIZED
        self.version: int | None = None
        """The version of the handshake that succeeded, or else is under way."""
        self.is_settled = False
        """Whether a request other than `initialize` has passed since it succeeded: nothing changes any more."""
        self._side = side
        self._agreed: int | None = None

    @property
    def _strict(self) -> bool:
        return (max(self.versions) if self.version is None else self.version) > 1

    def received(self, method: str, *, is_request: bool) -> RpcError | None:
        """Why a call of the peer other than `initialize` may not pass now."""
        if self._settles(is_request) or method.startswith("$/"):
            return None
        if self._side == "client":  # its agent may have answered in the same read: an agent that is asked may speak
            return None if self.phase is Phase.INITIALIZING or not self._strict else too_early(method)
        if not self._strict and (self.phase is Phase.INITIALIZING or not is_request):
            return None
        return too_early(method)

    def sent(self, method: str) -> RpcError | None:
        """Why our request of another method than `initialize` may not be sent now."""
        if self._settles(is_request=True) or not self._strict:
            return None
        return too_early(method)

    def asked(self, version: Any) -> RpcError | None:
        """A handshake begins on the agent's side, for whatever the client gave as its version; or why it may not."""
        if self.is_settled and not self._strict and self._agreed is not None:  # what was asked since is of this version
            return self._begin(self._agreed)
        chosen = self._chosen(version)
        return chosen if isinstance(chosen, RpcError) else self._begin(chosen)

    def ask(self, version: Any) -> RpcError | None:
        """A handshake begins on the client's side; or why it may not."""
        if not is_version(version) or version not in self.versions:
            spoken = " and ".join(map(str, sorted(self.versions)))
            return RpcError.invalid_request(
                f"unsupported ACP protocol version {version!r}; this client speaks {spoken}: ask for that"
            )
        return self._begin(version)

    def answered(self, version: Any) -> RpcError | None:
        """Why a client cannot go on with the version that its agent answers with."""
        asked = self.version
        if is_version(version) and version in self.versions and asked is not None and version <= asked:
            return None
        reason = f"asked for ACP protocol version {asked}, but the peer speaks {version!r}"
        return RpcError.invalid_request({"reason": "version_mismatch", "error": reason})

    def succeed(self, version: int) -> None:
        """The handshake is over, and this is the version."""
        self.phase = Phase.READY
        self.version = self._agreed = version

    def fail(self) -> None:
        """The handshake failed: it may be tried again, and what an earlier one agreed on stands."""
        self.version = self._agreed
        self.phase = Phase.UNINITIALIZED if self._agreed is None else Phase.READY

    def repetition(self) -> RpcError | None:
        """Why `initialize` may not come once more."""
        if self._strict and self.is_settled:
            return RpcError.invalid_request("initialize must not be repeated after other requests: reconnect")
        return None

    def _begin(self, version: int) -> RpcError | None:
        if self.phase is Phase.INITIALIZING:
            return RpcError.invalid_request("another initialize is in progress")
        refusal = self.repetition()
        if refusal is None and self._strict and self._agreed is not None and version < self._agreed:
            refusal = RpcError.invalid_request(f"initialize agreed on version {self._agreed}; it must not ask for less")
        if refusal is None:
            self.phase = Phase.INITIALIZING
            self.version = version
        return refusal

    def _chosen(self, version: Any) -> int | RpcError:
        """The highest version spoken here that is not above the one asked for. An agent of version 1 answers 1 whatever
        it is asked for, as odd clients ask for a string or nothing at all.
        """
        if not is_version(version):
            if 1 in self.versions:
                return 1
            return RpcError.invalid_params("initialize.protocolVersion must be a valid ACP protocol version")
        below = [spoken for spoken in self.versions if spoken <= version]
        if below:
            return max(below)
        if 1 in self.versions:
            return 1
        data = {"requested": version, "supported": sorted(self.versions)}
        return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)

    def _settles(self, is_request: bool) -> bool:
        if self.phase is not Phase.READY:
            return False
        self.is_settled = self.is_settled or is_request
        return True


def too_early(method: str) -> RpcError:
    """What a call before the handshake is refused with."""
    return RpcError.invalid_request(f"ACP initialization must complete before `{method}` can be used")


def is_version(value: Any) -> bool:
    """Whether `value` has the form of a protocol version."""
    return type(value) is int and 0 <= value <= _U16


def as_initialize_of(version: int, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The params of `initialize` as an agent of `version` reads them; None when they are fit as they came.

    Members of version 2 become those of version 1 where a client sent nothing else: markers are booleans there. What a
    client of a future version says of itself need not be understood.
    """
    asked = params.get("protocolVersion")
    if version == 1:
        fits = is_version(asked) and not ({"info", "capabilities"} & params.keys() and asked != 1)
        return None if fits else _as_version_1(params)
    if asked == version:
        return None
    info = params.get("info")
    named = isinstance(info, Mapping) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
    rest = {} if named else {"info": {"name": "unknown", "version": "unknown"}}
    return {**params, **rest, "protocolVersion": version}


def _as_version_1(params: Mapping[str, Any]) -> dict[str, Any]:
    result = {name: value for name, value in params.items() if name not in ("info", "capabilities")}
    result["protocolVersion"] = 1
    if "info" in params and result.get("clientInfo") is None:
        result["clientInfo"] = params["info"]
    given = params.get("capabilities")
    if isinstance(given, Mapping) and result.get("clientCapabilities") is None:
        capabilities = {"session": {"configOptions": {"boolean": {}}}, **given}  # each client of version 2 knows them
        if isinstance(given.get("auth"), Mapping):
            terminal = given["auth"].get("terminal")
            capabilities["auth"] = {**given["auth"], "terminal": terminal is not None and terminal is not False}
        result["clientCapabilities"] = capabilities
    return result
