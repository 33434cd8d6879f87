"""Fixtures of the whole suite: each async test runs on stock asyncio and on uvloop, bounded in time."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Run = Callable[..., Any]

LOOPS = ["asyncio", "uvloop"] if importlib.util.find_spec("uvloop") else ["asyncio"]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what collection made out of every later garbage collection: `run` makes a full one per test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """`run(coroutine, timeout=20)`: run it to its end on a loop of its own; fail if the loop swallowed an exception."""
    swallowed: list[dict[str, Any]] = []
    factory = importlib.import_module("uvloop").new_event_loop if request.param == "uvloop" else None

    def run_coroutine(coroutine: Coroutine[Any, Any, T], timeout: float = 20.0) -> T:
        async def bounded() -> T:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: swallowed.append(context))
            return await asyncio.wait_for(coroutine, timeout)

        with asyncio.Runner(loop_factory=factory) as runner:
            result = runner.run(bounded())
        gc.collect()
        return result

    yield run_coroutine
    assert not swallowed, f"the loop's exception handler was called: {swallowed}"
