"""Fixtures of the tests that run real processes."""

from __future__ import annotations

import pytest

from tests.conftest import LOOPS


@pytest.fixture(params=LOOPS)
def loop_name(request: pytest.FixtureRequest) -> str:
    """Both loops, in the child."""
    return request.param
