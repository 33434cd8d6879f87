"""What a message costs stays within its budget. Counted, never timed: a busy machine gives the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.guard import BUDGETS, budgets_of

GUARD = Path(__file__).resolve().parents[1] / "benchmarks" / "guard.py"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(scope="module")
def costs() -> dict[str, float]:
    """Counted in an interpreter of its own: dev mode and coverage change what is called and kept."""
    done = subprocess.run(
        [sys.executable, str(GUARD), "--json"],
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE_"))},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_no_message_costs_more_than_its_budget(costs) -> None:
    """Calls per message and bytes per request, on both sides. A change that is worth more raises the budget with it."""
    budgets = budgets_of(VERSION)
    if not budgets:
        pytest.skip(f"{BUDGETS.name} has no budgets for Python {VERSION}")
    assert budgets.keys() == costs.keys()
    exceeded = {name: f"{cost} > {budgets[name]}" for name, cost in costs.items() if cost > budgets[name]}
    assert not exceeded, f"`python benchmarks/guard.py` shows where the calls are: {exceeded}"


def test_budgets_are_not_far_above_the_costs(costs) -> None:
    """What became cheaper stays cheaper: a budget with much room above it guards nothing."""
    budgets = budgets_of(VERSION)
    if not budgets:
        pytest.skip(f"{BUDGETS.name} has no budgets for Python {VERSION}")
    roomy = {
        name: f"{cost} of {budgets[name]}"
        for name, cost in costs.items()
        if not name.startswith("bytes left") and cost < budgets[name] * 0.8
    }
    assert not roomy, f"`python benchmarks/guard.py --write` lowers these budgets: {roomy}"


def test_message_of_a_burst_costs_no_more_than_one_alone(costs) -> None:
    """What is done per read, per write and per turn of the loop is shared by the messages of a burst."""
    for side in ("agent", "client"):
        assert costs[f"calls, w2 {side}"] < costs[f"calls, w1 {side}"]


def test_answered_request_leaves_nothing_behind(costs) -> None:
    """On either side, apart from tables that were resized: a set entry per request would be more than that."""
    for side in ("agent", "client"):
        assert costs[f"bytes left per request, {side}"] < 0.1 * costs[f"bytes held per request, {side}"]


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_supported_python_has_budgets(version) -> None:
    """Or the guard would be silently off where nobody looks."""
    assert budgets_of(version)
