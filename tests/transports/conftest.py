"""Fixtures of the tests that run real processes."""

from __future__ import annotations

import os
import signal

import pytest

from tests.conftest import LOOPS
from tests.transports import children


@pytest.fixture(params=LOOPS)
def loop_name(request: pytest.FixtureRequest) -> str:
    """Both loops, in the child."""
    return request.param


@pytest.fixture(autouse=True)
def _children_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "children_before", children.children())


@pytest.fixture
def signals(monkeypatch):
    """Every signal that is sent, as (target, signal)."""
    sent: list[tuple[int, signal.Signals]] = []
    for name in ("kill", "killpg"):
        real = getattr(os, name)

        def record(target, number, real=real):
            sent.append((target, number))
            real(target, number)

        monkeypatch.setattr(os, name, record)
    return sent
