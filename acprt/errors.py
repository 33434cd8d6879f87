"""Errors a user of acprt can meet, drawn as one tree.

    Exception
    ├── RpcError                 an error with a JSON-RPC shape: it came from the peer, or may be sent to it
    └── RuntimeError
        ├── DispatchLoopBlocked  a wait that would have stopped the dispatch loop for ever
        └── AlreadyConsumed      the answer of a SentRequest was taken twice

The first kind travels; the others are programming errors of this process and are never sent to a peer.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

import msgspec

__all__ = [
    "INCOMING_TRANSPORT_CLOSED",
    "AlreadyConsumed",
    "DispatchLoopBlocked",
    "EndFacts",
    "ErrorCode",
    "RpcError",
    "for_another_peer",
    "is_incoming_transport_closed",
    "mask_secrets",
]

INCOMING_TRANSPORT_CLOSED = "incoming_transport_closed"
"""`data["reason"]` of the error that pending requests get at clean EOF (EO-03)."""

_STR_LIMIT = 2000  # DEC-21: an error text fits on a screen; `.data` stays complete
_TAIL_SHARE = 1200  # of those, what the end of a stderr tail may take: the last lines say why a child died
# Every gap is bounded, so that masking takes time in proportion to the text; what stands before the word is kept. A
# value is a quoted text up to its quote, or a word; in protocol messages an environment is a list of names and values.
# After the quoted name of a JSON member only a text is masked: a count of tokens, an object or an array is no secret.
_MASKED = (  # compiled by `re` when first needed: that takes a millisecond (bench-core w5)
    r"""(?P<name>(?:KEY|TOKEN|SECRET|PASSWORD|AUTHORIZATION)\w{0,40}"""
    r"""(?:\s{0,8}[=:]\s{0,8}(?P<quote>\\?["'])?"""
    r"""|\\?["'](?:\s{0,8}[=:]|\s{0,8},\s{0,8}\\?["']value\\?["']\s{0,8}:)\s{0,8}(?P<text>\\?["'])))"""
    r"""(?(quote)[^"'\n\\]+|(?(text)[^"'\n\\]+|[^\s"',;{}\[\]\\]+))"""
    r"""|(?P<option>--[\w-]{0,40}?(?:KEY|TOKEN|SECRET|PASSWORD)[\w-]{0,40}\s{1,8})[^\s"',;-][^\s"',;]*"""
    r"""|\bsk-[A-Za-z0-9_-]{6,}"""
)

_SECRET_WORDS = ("key", "token", "secret", "password", "authorization", "sk-")  # no match is without one


class ErrorCode(IntEnum):
    """Error codes of JSON-RPC 2.0 and those ACP adds; any other integer is legal too (ER-06)."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002


class RpcError(Exception):
    """A JSON-RPC error: `code` (any int), `message`, and `data` (any JSON value, None when there is none).

    Raise it in a handler to answer with exactly that error; catch it around a request to see the peer's.
    `str(error)` shows code, message and a bounded excerpt of `data` with secrets masked; `data` is never cut.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = int(code)
        self.message = message
        self.data = data

    @classmethod
    def parse_error(cls, data: Any = None) -> RpcError:
        """-32700: the text is not one JSON value."""
        return cls(ErrorCode.PARSE_ERROR, "Parse error", data)

    @classmethod
    def invalid_request(cls, data: Any = None) -> RpcError:
        """-32600: JSON, but not a JSON-RPC request."""
        return cls(ErrorCode.INVALID_REQUEST, "Invalid request", data)

    @classmethod
    def method_not_found(cls, method: str | None = None) -> RpcError:
        """-32601 with the bare method name as `data` (UN-01)."""
        return cls(ErrorCode.METHOD_NOT_FOUND, "Method not found", method)

    @classmethod
    def invalid_params(cls, data: Any = None) -> RpcError:
        """-32602: the params do not have the shape that the method asks for."""
        return cls(ErrorCode.INVALID_PARAMS, "Invalid params", data)

    @classmethod
    def internal_error(cls, data: Any = None) -> RpcError:
        """-32603: the handler failed; `data` is free text or an object with a `reason`."""
        return cls(ErrorCode.INTERNAL_ERROR, "Internal error", data)

    @classmethod
    def request_cancelled(cls, data: Any = None) -> RpcError:
        """-32800: the peer asked to cancel the request."""
        return cls(ErrorCode.REQUEST_CANCELLED, "Request cancelled", data)

    @classmethod
    def auth_required(cls, data: Any = None) -> RpcError:
        """-32000: authenticate first (ACP)."""
        return cls(ErrorCode.AUTH_REQUIRED, "Authentication required", data)

    @classmethod
    def resource_not_found(cls, uri: str | None = None) -> RpcError:
        """-32002 with `data` `{"uri": …}` when a uri is given (ACP)."""
        return cls(ErrorCode.RESOURCE_NOT_FOUND, "Resource not found", None if uri is None else {"uri": uri})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RpcError):
            return NotImplemented
        return (self.code, self.message, self.data) == (other.code, other.message, other.data)

    __hash__ = None  # type: ignore[assignment]  # compared by value, and `data` may be a dict

    def __str__(self) -> str:
        text = f"[{self.code}] {mask_secrets(self.message[:_STR_LIMIT]) or '(no message)'}"
        data = self.data
        if data is not None:
            tail = ""
            if isinstance(data, dict) and isinstance(data.get("stderr_tail"), str):
                tail = data["stderr_tail"].rstrip()
                data = {name: value for name, value in data.items() if name != "stderr_tail"}
            text += f": {_excerpt(data)}"
            if tail:
                masked = mask_secrets(tail)  # before it is cut: a cut could part a secret from its name
                shown = masked[-_TAIL_SHARE:]
                cut = "…" if len(shown) < len(masked) else ""
                text = f"{text[: _STR_LIMIT - len(shown) - 40]}\nstderr of the peer ends: {cut}{shown}"
        return text if len(text) <= _STR_LIMIT else text[: _STR_LIMIT - 1] + "…"

    def __repr__(self) -> str:
        return f"RpcError({self.code}, {mask_secrets(self.message[:_STR_LIMIT])!r}, {_excerpt(self.data)})"


class DispatchLoopBlocked(RuntimeError):
    """A handler waited, inside the dispatch loop, for something that only the same loop can bring (DL-09, OB-15).

    Take the answer with `on_receiving_result`, or move the wait into `cx.spawn(…)` or a `method` handler.
    """


class AlreadyConsumed(RuntimeError):
    """The answer of a `SentRequest` was already taken in one of the four ways (PY-23)."""


class EndFacts(dict[str, Any]):
    """The `data` of an error that acprt makes for the end of a connection: a `reason`, and what is known of it. A type
    of its own, so that a copy of the error has the mark, and nothing that a peer writes.
    """

    __slots__ = ()


def for_another_peer(error: RpcError) -> RpcError:
    """`error` as a peer may be told it. The end of one connection is no statement about another, and what is known of
    it (a local error, a child's stderr) is not for the peer of that (SR-11); every other error is told as it is.
    """
    known = error.data
    if type(known) is not EndFacts:
        return error
    told = {"reason": "downstream_failed" if known.get("reason") == "connection_failed" else "downstream_closed"}
    if "method" in known:
        told["method"] = known["method"]
    return RpcError.internal_error(told)


def is_incoming_transport_closed(error: BaseException | None) -> bool:
    """Whether `error` says that the peer closed its side while the request was pending (EO-03). An error that came from
    a peer never does, whatever it says: it came over a connection that was open.
    """
    return (
        isinstance(error, RpcError)
        and type(error.data) is EndFacts
        and error.data.get("reason") == INCOMING_TRANSPORT_CLOSED
    )


def mask_secrets(text: str) -> str:
    """`text` with the values of secret-looking names (`API_KEY=…`, `"token": "…"`) and `sk-…` words masked (DEC-21)."""
    folded = text.casefold()  # as the pattern reads it, where a long s is an s
    if not any(word in folded for word in _SECRET_WORDS):
        return text  # the search costs twenty times as much, and a trace asks for every message
    return re.sub(_MASKED, lambda found: f"{found['name'] or found['option'] or ''}***", text, flags=re.IGNORECASE)


def _excerpt(data: Any, limit: int = 600) -> str:
    try:
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    except RecursionError:
        text = f"{type(data).__name__}, nested too deeply to show"
    except (TypeError, ValueError):
        text = repr(data)
    text = mask_secrets(text[: 4 * limit])
    return text if len(text) <= limit else text[: limit - 1] + "…"
