"""`Ok` and `Err`: the two outcomes of a request as values, for callbacks that get either."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

import msgspec

from acprt.errors import RpcError

__all__ = ["Err", "Ok", "Result"]

T = TypeVar("T")


class Ok(msgspec.Struct, Generic[T], frozen=True):
    """Success: `case acprt.Ok(value)`."""

    value: T

    def unwrap(self) -> T:
        """The value."""
        return self.value


class Err(msgspec.Struct, frozen=True):
    """Failure: `case acprt.Err(error)`."""

    error: RpcError

    def unwrap(self) -> NoReturn:
        """Raise the error."""
        raise self.error


Result = Ok[T] | Err
