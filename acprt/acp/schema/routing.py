"""What the routing unions share: messages told apart by their method, never by the shape of their params.

A `Router` knows the members of one union by wire method. Messages of extensions, whose methods begin with `_`, keep
their full names and their JSON as it came. No I/O happens here, and no answer is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Raw

from acprt.errors import RpcError
from acprt.runtime.messages import method_of, reply_type_of
from acprt.wire.frames import NO_PARAMS
from acprt.wire.payloads import decode_params, decode_result, decoder_for

__all__ = ["AnswerRouter", "ExtNotification", "ExtRequest", "ExtResponse", "RawJson", "Router"]

U = TypeVar("U")

RawJson: TypeAlias = Raw | bytes | None
"""JSON text not yet decoded; None for params that are absent."""


class ExtRequest(msgspec.Struct, frozen=True):
    """A request of an extension. `method` is the full wire method with its leading `_`, `params` raw JSON or None.

    It is sent as it came: `cx.send_request(request.method, request.params)`.
    """

    method: str
    params: Raw | None = None

    def encode_params(self) -> bytes:
        """The params as JSON text; `null` when there are none."""
        return _text(self.params)


class ExtNotification(msgspec.Struct, frozen=True):
    """A notification of an extension. `method` is the full wire method with its leading `_`, `params` raw JSON or None.

    It is sent as it came: `cx.send_notification(note.method, note.params)`.
    """

    method: str
    params: Raw | None = None

    def encode_params(self) -> bytes:
        """The params as JSON text; `null` when there are none."""
        return _text(self.params)


class ExtResponse(msgspec.Struct, frozen=True):
    """The result of an extension's request, as raw JSON."""

    result: Raw


class Router(Generic[U]):
    """The messages of one routing union, by wire method."""

    def __init__(self, union: Any) -> None:
        """`union` is the union of message classes; one of `ExtRequest` and `ExtNotification` may be among them."""
        self._union = union

    @cached_property
    def classes(self) -> dict[str, Any]:
        """Wire method -> message class."""
        return {method_of(cls): cls for cls in _typed_members(self._union)}

    @cached_property
    def _extension(self) -> Any:
        return next((cls for cls in _members(self._union) if cls in (ExtRequest, ExtNotification)), None)

    def decode(self, method: str, params: RawJson, unstable: bool) -> U:
        """The message that `method` and `params` are.

        Raises RpcError: -32601 for a method that is not in the union, or is unstable and `unstable` is false; -32602
        for params of the wrong shape, -32700 for params that are not JSON.
        """
        raw = _raw(params)
        if method.startswith("_") and self._extension is not None:
            return cast("U", self._extension(method, None if raw is NO_PARAMS else raw))
        cls = _permitted(self.classes, method, unstable)
        return cast("U", decode_params(decoder_for(cls), raw))


class AnswerRouter(Generic[U]):
    """The results that answer the requests of one routing union, by the wire method of the request."""

    def __init__(self, requests: Any) -> None:
        """`requests` is the union of the request classes."""
        self._requests = requests

    @cached_property
    def classes(self) -> dict[str, Any]:
        """Wire method of the request -> request class."""
        return {method_of(cls): cls for cls in _typed_members(self._requests)}

    def decode(self, method: str, result: Raw | bytes, unstable: bool) -> U:
        """The answer to a request of `method`.

        Raises RpcError: -32601 for a method that is not in the union, or is unstable and `unstable` is false; -32603
        for a result of the wrong shape.
        """
        raw = _raw(result)
        if method.startswith("_"):
            return cast("U", ExtResponse(raw))
        cls = _permitted(self.classes, method, unstable)
        return cast("U", decode_result(decoder_for(reply_type_of(cls)), raw))


def _permitted(classes: dict[str, Any], method: str, unstable: bool) -> Any:
    cls = classes.get(method)
    if cls is None or (cls.__acprt_unstable__ and not unstable):
        raise RpcError.method_not_found(method)
    return cls


def _members(union: Any) -> tuple[Any, ...]:
    return get_args(union) or (union,)


def _typed_members(union: Any) -> Iterator[Any]:
    return (cls for cls in _members(union) if hasattr(cls, "__acprt_method__"))


def _raw(text: RawJson) -> Raw:
    if text is None or not bytes(text):
        return NO_PARAMS
    return text if isinstance(text, Raw) else Raw(text)


def _text(params: Raw | None) -> bytes:
    return b"null" if params is None else bytes(params)
