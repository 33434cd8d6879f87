"""The generated classes come from the schemas that the npm package `@agentclientprotocol/sdk` ships."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.acp.schema.wording import shared_runs
from tests.interop.turn import ROOT

pytestmark = [pytest.mark.node, pytest.mark.timeout(120)]


@pytest.fixture
def schemas(node_package):
    return node_package / "node_modules" / "@agentclientprotocol" / "sdk" / "schema"


def test_committed_modules_are_what_the_generator_makes_of_them(schemas, tmp_path) -> None:
    """Nobody edited them by hand, and they are of that release."""
    generator = ROOT / "tools" / "generate_acp_schema.py"
    subprocess.run([sys.executable, generator, schemas, tmp_path], check=True, timeout=100)
    for name in ("v1.py", "v2.py"):
        committed = ROOT / "acprt" / "acp" / "schema" / name
        assert (tmp_path / name).read_text("utf-8") == committed.read_text("utf-8"), f"{name}: run {generator.name}"


def test_no_sentence_is_taken_from_them(schemas) -> None:
    assert shared_runs(schemas) == set()
