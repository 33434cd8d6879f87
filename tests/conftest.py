"""Fixtures of the whole suite: each async test runs on stock asyncio and on uvloop, bounded in time."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import hypothesis
import pytest

from tests.programs import ignore_slow_callbacks

T = TypeVar("T")
Run = Callable[..., Any]

hypothesis.settings.register_profile(  # a busy machine is no finding
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("any machine")

LOOPS = ["asyncio", "uvloop"] if importlib.util.find_spec("uvloop") else ["asyncio"]


WISHES = ["FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"]
WISHES += ["COLUMNS", "LINES", "PY_COLORS", "PYTEST_ADDOPTS", "ACPRT_TRACE", "ACPRT_TRACE_PROCESS"]
"""What whoever starts the suite may want of programs in general; a test that is about one of them sets it."""


@pytest.hookimpl(trylast=True)  # pytest itself has looked at them by then
def pytest_configure(config: pytest.Config) -> None:
    """Make what this process was given, and what its children inherit, the same wherever the suite is started."""
    for name in WISHES:
        os.environ.pop(name, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job of a shell script: its Ctrl-C says nothing
        signal.signal(signal.SIGINT, signal.default_int_handler)
    ignore_slow_callbacks()


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Leave what collection and earlier modules made out of later garbage collections: `run` makes one per test."""
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
