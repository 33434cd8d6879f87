"""Answers to `session/request_permission`, chosen by the kind of option: ids and names are the agent's own words.

The answer is of the version of the question. Nothing else of the question is looked at, least of all its tool call,
which may never have been announced.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, overload

from acprt.runtime.messages import reply_type_of

if TYPE_CHECKING:
    from acprt.acp.schema import v1, v2

__all__ = ["allow_always", "allow_first", "cancelled", "reject", "select_option"]


@overload
def allow_first(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...


@overload
def allow_first(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse: ...


def allow_first(request: Any) -> Any:
    """Allow it once, else always, else take the first option; an empty list of options is answered `cancelled`."""
    return _first_of(request, "allow_once", "allow_always", otherwise_any=True)


@overload
def allow_always(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...


@overload
def allow_always(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse: ...


def allow_always(request: Any) -> Any:
    """Allow it and its like from now on, else once; `cancelled` where neither is offered."""
    return _first_of(request, "allow_always", "allow_once")


@overload
def reject(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...


@overload
def reject(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse: ...


def reject(request: Any) -> Any:
    """Reject it once, else always; `cancelled` where neither is offered."""
    return _first_of(request, "reject_once", "reject_always")


@overload
def select_option(request: v1.RequestPermissionRequest, option_id: str) -> v1.RequestPermissionResponse: ...


@overload
def select_option(request: v2.RequestPermissionRequest, option_id: str) -> v2.RequestPermissionResponse: ...


def select_option(request: Any, option_id: str) -> Any:
    """Take one option by its id. Raises ValueError for an id that was not offered."""
    offered = [option.option_id for option in request.options]
    if option_id not in offered:
        raise ValueError(f"{option_id!r} is not among the options offered: {', '.join(offered) or 'none'}")
    schema = _schema_of(request)
    return schema.RequestPermissionResponse(outcome=schema.SelectedPermissionOutcome(option_id=option_id))


@overload
def cancelled(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...


@overload
def cancelled(request: v2.RequestPermissionRequest) -> v2.RequestPermissionResponse: ...


def cancelled(request: Any) -> Any:
    """The turn is being cancelled: nothing was chosen."""
    schema = _schema_of(request)
    return schema.RequestPermissionResponse(outcome=schema.CancelledPermissionOutcome())


def _first_of(request: Any, *kinds: str, otherwise_any: bool = False) -> Any:
    for kind in kinds:
        for option in request.options:
            if option.kind == kind:
                return select_option(request, option.option_id)
    if otherwise_any and request.options:
        return select_option(request, request.options[0].option_id)
    return cancelled(request)


def _schema_of(request: Any) -> Any:
    """The module that the question, and so its answer, is of."""
    return sys.modules[reply_type_of(request).__module__]
