"""The benchmark program runs and gives numbers. What they are is for a machine at rest to say, never for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "benchmarks" / "core.py"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_quick_run_of_one_workload_yields_ratios(tmp_path):
    """acprt and the limit each give a sample, and the goal between them is judged."""
    pytest.importorskip("uvloop", reason="both peers of this run are on uvloop")
    archive, page = tmp_path / "run.json", tmp_path / "run.md"
    options = ["--quick", "--only", "w1", "--rounds", "1", "--peers", "acprt,limit"]

    outcome = subprocess.run(
        [sys.executable, str(CORE), *options, "--json", str(archive), "--markdown", str(page)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert outcome.returncode == 0, outcome.stderr
    run = json.loads(archive.read_bytes())
    assert {(record["workload"], record["peer"]) for record in run["records"]} == {
        (workload, peer) for workload in ("w1", "w1-p50") for peer in ("acprt", "limit")
    }
    assert all(record["sample"]["count"] > 0 and record["sample"]["seconds"] > 0 for record in run["records"])
    (judged,) = [verdict for verdict in run["verdicts"] if verdict["goal"]["against"] == "limit"]
    assert judged["word"].startswith(("pass", "FAIL"))
    assert all(ratio > 0 for ratio in judged["measured"]["values"])
    assert page.read_text().rstrip() == outcome.stdout.rstrip()


def test_missing_incumbent_is_named_not_hidden(tmp_path):
    """A peer that is not installed stands in the report as skipped, with what to do about it."""
    absent = tmp_path / "python"
    options = ["--quick", "--only", "w5-import", "--rounds", "1", "--peers", "incumbent,blocking"]

    outcome = subprocess.run(
        [sys.executable, str(CORE), *options, "--incumbent-python", str(absent)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert outcome.returncode == 0, outcome.stderr
    assert f"skipped: incumbent: there is no {absent}" in outcome.stdout
    assert "make peers" in outcome.stdout
