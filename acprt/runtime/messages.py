"""Bases of typed messages: a class is bound to its wire method, a request also to the type of its reply.

They know nothing of connections; a message is plain msgspec data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ForwardRef, Generic, TypeVar, cast, dataclass_transform, get_args, get_origin

import msgspec

from acprt.wire.frames import notification_template, request_template
from acprt.wire.payloads import Decoder, decoder_for

__all__ = ["Notification", "Request", "Shape", "is_message_type", "method_of", "reply_type_of", "shape_of"]

R = TypeVar("R")

Rename = str | Callable[[str], str | None] | Mapping[str, str]
Tag = str | int | bool | Callable[[str], str | int]
Options = dict[str, Any]


class _MessageMeta(msgspec.StructMeta):
    """msgspec's metaclass plus `method=`; fields are keyword-only unless a class says otherwise (DEC-3)."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        method: str | None = None,
        kw_only: bool = True,
        tag: Tag | None = None,
        tag_field: str | None = None,
        rename: Rename | None = None,
        omit_defaults: bool | None = None,
        forbid_unknown_fields: bool | None = None,
        frozen: bool | None = None,
        eq: bool | None = None,
        order: bool | None = None,
        repr_omit_defaults: bool | None = None,
        array_like: bool | None = None,
        gc: bool | None = None,
        weakref: bool | None = None,
        dict: bool | None = None,
        cache_hash: bool | None = None,
    ) -> _MessageMeta:
        options: Options = {
            "tag": tag,
            "tag_field": tag_field,
            "rename": rename,
            "omit_defaults": omit_defaults,
            "forbid_unknown_fields": forbid_unknown_fields,
            "frozen": frozen,
            "eq": eq,
            "order": order,
            "repr_omit_defaults": repr_omit_defaults,
            "array_like": array_like,
            "gc": gc,
            "weakref": weakref,
            "dict": dict,
            "cache_hash": cache_hash,
        }
        given = {name: value for name, value in options.items() if value is not None}  # msgspec inherits what is absent
        cls = super().__new__(mcls, name, bases, namespace, kw_only=kw_only, **given)
        if method is not None:
            cls.__acprt_method__ = method  # type: ignore[attr-defined]  # method_of reads it back
        cls.__acprt_shape__ = None  # type: ignore[attr-defined]  # of this class, never of a base; made by shape_of
        return cls


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class _Message(msgspec.Struct, metaclass=_MessageMeta, rename="camel", omit_defaults=True):
    """What requests and notifications share."""

    if TYPE_CHECKING:  # the class keywords once more: type checkers look for them here, not in the metaclass

        def __init_subclass__(
            cls,
            *,
            method: str | None = None,
            kw_only: bool = True,
            tag: Tag | None = None,
            tag_field: str | None = None,
            rename: Rename | None = None,
            omit_defaults: bool = True,
            forbid_unknown_fields: bool = False,
            frozen: bool = False,
            eq: bool = True,
            order: bool = False,
            repr_omit_defaults: bool = False,
            array_like: bool = False,
            gc: bool = True,
            weakref: bool = False,
            dict: bool = False,
            cache_hash: bool = False,
        ) -> None: ...


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Request(_Message, Generic[R]):
    """Base of a typed request whose reply is `R`: `class Hello(acprt.Request[HelloReply], method="hello/say")`.

    A msgspec Struct: snake_case here, camelCase on the wire, keyword-only, defaults omitted. Without `method=` it is
    a base for further classes and cannot be sent or registered.
    """


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Notification(_Message):
    """Base of a typed notification: `class Progress(acprt.Notification, method="hello/progress")`."""


class Shape(msgspec.Struct, frozen=True):
    """What sending the messages of one class takes, worked out once and kept on the class (bench-core w1, w3)."""

    method: str
    line: bytes  # to be filled by `fill_request` or `fill_notification`
    is_request: bool
    decoder: Decoder | None  # of the reply; None leaves plain values


def shape_of(cls: Any) -> Shape:
    """The shape of a message class. Raises TypeError for what is none, has no method or a reply without decoder."""
    method = method_of(cls)
    if issubclass(cls, Request):
        reply_type = reply_type_of(cls)
        decoder = None if reply_type is Any else decoder_for(reply_type)
        shape = Shape(method, request_template(method), True, decoder)
    else:
        shape = Shape(method, notification_template(method), False, None)
    cls.__acprt_shape__ = shape
    return shape


def is_message_type(value: Any) -> bool:
    """Whether `value` is a subclass of `Request` or `Notification`, possibly with its type parameters filled in."""
    value = get_origin(value) or value
    return isinstance(value, type) and issubclass(value, (Request, Notification))


def method_of(message: Any) -> str:
    """The wire method of a message class or instance. Raises TypeError when it is bound to none."""
    cls = message if isinstance(message, type) else type(message)
    method = getattr(cls, "__acprt_method__", None)
    if method is None:
        if is_message_type(cls):
            raise TypeError(f"{cls.__qualname__} has no wire method: declare it with `method=…` in the class statement")
        raise TypeError(f"{cls.__qualname__} is not an acprt.Request or acprt.Notification")
    return cast("str", method)


def reply_type_of(message: Any) -> Any:
    """The reply type of a request class or instance; `Any` when the class names none. Raises TypeError for others."""
    cls = message if isinstance(message, type) or get_origin(message) else type(message)
    origin = get_origin(cls) or cls
    if not (isinstance(origin, type) and issubclass(origin, Request)):
        raise TypeError(
            f"{getattr(origin, '__qualname__', origin)} is not an acprt.Request: only requests have a reply"
        )
    if origin is not cls:
        return _settled(_reply_of(cls), origin)
    known = origin.__dict__.get("__acprt_reply__", msgspec.UNSET)
    if known is not msgspec.UNSET:
        return known
    reply = _settled(_declared_reply(origin), origin)
    origin.__acprt_reply__ = reply
    return reply


def _declared_reply(cls: type) -> Any:
    """The reply that a class names by its bases; it may still be, or contain, a type variable."""
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        origin = get_origin(base) or base
        if isinstance(origin, type) and issubclass(origin, Request):
            return _reply_of(base)
    return Any


def _reply_of(base: Any) -> Any:
    """The reply of one base, as written: a class, or a generic class with its parameters filled in."""
    origin, arguments = get_origin(base) or base, get_args(base)
    if origin is Request:
        return arguments[0] if arguments else Any
    reply = _declared_reply(origin)
    filled = dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False))
    if isinstance(reply, TypeVar):
        return filled.get(reply, reply)
    inner = getattr(reply, "__parameters__", ())
    return reply[tuple(filled.get(parameter, Any) for parameter in inner)] if inner else reply


def _settled(reply: Any, cls: type) -> Any:
    if isinstance(reply, ForwardRef):
        return _resolved(reply, cls)
    return Any if isinstance(reply, TypeVar) else reply


def _resolved(reply: ForwardRef, cls: type) -> Any:
    """A reply named by a string, `Request["HelloReply"]`, looked up in the module of the class."""
    try:
        return eval(reply.__forward_arg__, vars(sys.modules[cls.__module__]))  # noqa: S307  # the author's own annotation
    except NameError as error:
        raise TypeError(
            f"{cls.__qualname__}: cannot resolve its reply type {reply.__forward_arg__!r}: {error}"
        ) from None
