"""The benchmark of this stream runs and tells its ratios; what they are is for a machine at rest to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_benchmark_tells_its_ratios() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "benchmarks" / "claude_decode.py"), "2"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=50)
    assert (done.stderr, done.returncode) == ("", 0)
    rows = re.findall(r"^  (\w+) +\d+ ns +[\d.]+ x bare +[\d.]+ x json$", done.stdout, re.MULTILINE)
    assert rows == ["json", "bare", "decode", "client", *["json", "bare", "decode"] * 2]
