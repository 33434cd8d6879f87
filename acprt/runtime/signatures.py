"""Reads a handler's message type from its first parameter and checks its shape when it is registered.

A wrong signature fails here, with the line of the contract it breaks, never at the first message.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ForwardRef, TypeVar, Union, get_args, get_origin

from acprt.runtime.messages import Notification, Request, is_message_type, method_of

__all__ = ["Taken", "check_parameters", "first_annotation", "taken_messages"]

Taken = dict[str, Any]
"""Wire method -> message type, or None for untyped params."""


def check_parameters(handler: Callable[..., Any], allowed: tuple[tuple[str, ...], ...], decorator: str) -> int:
    """How many positional arguments `handler` takes; TypeError unless that is one of the shapes in `allowed`."""
    if not callable(handler):
        raise TypeError(f"@{decorator} decorates a function, not {handler!r}")
    counts = {len(shape) for shape in allowed}
    parameters = list(inspect.signature(handler).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    keyword_only = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    fitting = [n for n in sorted(counts, reverse=True) if len(required) <= n and (takes_any or n <= len(positional))]
    if keyword_only or not fitting:
        shapes = " or ".join(f"({', '.join(shape)})" for shape in allowed)
        have = ", ".join(p.name for p in parameters)
        raise TypeError(f"@{decorator}: {_name(handler)}({have}) must take {shapes}")
    return fitting[0]


def first_annotation(handler: Callable[..., Any], scope: types.FrameType) -> Any:
    """The annotation of the first parameter, resolved through globals, closure and the registering frame (DEC-5).

    `scope` is that frame. `inspect.Parameter.empty` when there is no annotation.
    """
    parameters = list(inspect.signature(handler).parameters.values())
    annotation = parameters[0].annotation if parameters else inspect.Parameter.empty
    if annotation is inspect.Parameter.empty:
        return inspect.Parameter.empty
    if not isinstance(annotation, str | ForwardRef):
        return annotation
    text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
    function = _function_behind(handler)
    names = dict(scope.f_locals) | _closure_of(function)
    try:
        return eval(text, getattr(function, "__globals__", {}), names)  # noqa: S307  # the author's own annotation
    except Exception as error:  # whatever evaluating it may raise: an unknown name, a `|` between strings
        raise TypeError(
            f"{_name(handler)}: cannot resolve the annotation {text!r} of its first parameter: {error}"
        ) from None


def taken_messages(
    annotation: Any, base: type | tuple[type, ...], handler: Callable[..., Any], decorator: str
) -> Taken:
    """The messages that an annotation stands for: one class, or a union of classes of `base`."""
    wanted = " or ".join(f"acprt.{cls.__name__}" for cls in (base if isinstance(base, tuple) else (base,)))
    if annotation is inspect.Parameter.empty:
        raise TypeError(
            f"@{decorator}: annotate the first parameter of {_name(handler)} with a class of {wanted}, "
            f"or name what it takes: @{decorator}(…)"
        )
    taken: Taken = {}
    for member in _members(annotation):
        cls = get_origin(member) or member
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise TypeError(f"@{decorator}: {_name(handler)} takes {member!r}, which is not a class of {wanted}")
        taken[method_of(cls)] = member
    return taken


def _function_behind(handler: Any) -> Any:
    """The function that a method, a partial, a wrapper or a callable object leads to."""
    while not isinstance(handler, types.FunctionType) or hasattr(handler, "__wrapped__"):
        if isinstance(handler, partial):
            handler = handler.func
        elif isinstance(handler, types.MethodType):
            handler = handler.__func__
        elif hasattr(handler, "__wrapped__"):
            handler = handler.__wrapped__
        elif isinstance(handler, types.WrapperDescriptorType | types.BuiltinFunctionType):
            break  # written in C: it has no scope
        else:
            handler = type(handler).__call__
    return handler


def _closure_of(function: Any) -> dict[str, Any]:
    names = {}
    for name, cell in zip(
        getattr(getattr(function, "__code__", None), "co_freevars", ()),
        getattr(function, "__closure__", None) or (),
        strict=False,
    ):
        with suppress(ValueError):  # not assigned yet: defined further down
            names[name] = cell.cell_contents
    return names


def _members(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, TypeVar):
        return tuple(annotation.__constraints__)
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(member for part in get_args(annotation) for member in _members(part))
    return (annotation,)


def _name(handler: Any) -> str:
    return getattr(handler, "__qualname__", None) or type(handler).__qualname__


def is_request_type(value: Any) -> bool:
    """Whether `value` is a subclass of `Request`."""
    return is_message_type(value) and issubclass(get_origin(value) or value, Request)


def is_notification_type(value: Any) -> bool:
    """Whether `value` is a subclass of `Notification`."""
    return is_message_type(value) and issubclass(get_origin(value) or value, Notification)
