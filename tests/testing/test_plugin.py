"""The pytest plugin, used as a project uses it: named in a conftest, its fixtures asked for by tests of all kinds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import asyncio, os, sys
import pytest
from acprt import acp
from acprt.testing import testy

def test_pair(acp_pair, assert_no_leaks):
    async def main():
        async with acp_pair(testy.agent_v1()) as pair, acp.session(pair.client, cwd="/tmp") as session:
            assert await session.prompt("echo hi").text() == "hi"
    asyncio.run(main())

def test_spawned(spawned_agent):
    async def main():
        async with spawned_agent(sys.executable, "-m", "acprt.testing.testy") as agent:
            assert agent.cx.peer.info.name == "testy"
    asyncio.run(main())

def test_scripted(scripted_peer):
    async def main():
        async with scripted_peer.as_client_of(testy.agent_v1()) as peer:
            id = peer.request("initialize", {"protocolVersion": 1})
            await peer.expect_result(id, {"protocolVersion": 1})
    asyncio.run(main())

def test_leak(assert_no_leaks, tmp_path):
    os.open(tmp_path / "left_open", os.O_CREAT)

@pytest.mark.parametrize("text", ["a", "b/c"])
def test_golden(acp_pair, golden_transcript, text, tmp_path):
    client = acp.Client("c", version="1")
    client.trace(golden_transcript)
    async def main():
        async with acp_pair(testy.agent_v1(), client) as pair, acp.session(pair.client, cwd=str(tmp_path)) as session:
            await session.prompt("echo " + os.environ.get("SAY", "hi")).text()
    asyncio.run(main())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tmp_path.joinpath("conftest.py").write_text('pytest_plugins = ["acprt.testing.plugin"]\n', encoding="utf-8")
    tmp_path.joinpath("test_agent.py").write_text(TESTS, encoding="utf-8")
    return tmp_path


def run_pytest(project: Path, *words: str, **env: str) -> tuple[int, str]:
    """Without the summary at the end, which says every failure again, cut to the terminal or not, as `CI` is set."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rN", "-W", "error", "-p", "no:cacheprovider", *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=50,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_fixture_works_in_a_project(project: Path) -> None:
    """And a test that leaves a descriptor open is the only one that has an error."""
    code, output = run_pytest(project, "--deselect", "test_agent.py::test_golden")
    assert code == 1, output
    assert "4 passed, 2 deselected, 1 error" in output, output
    assert output.count("  open descriptor ") == 1
    assert "left_open" in output


def test_a_golden_transcript_is_written_once_and_compared_after(project: Path) -> None:
    """The file has the name of the test, and no folder of the run in it."""
    assert "there is no" in run_pytest(project, "-k", "golden")[1]
    code, output = run_pytest(project, "-k", "golden", ACPRT_UPDATE_GOLDEN="1")
    assert code == 0, output
    assert sorted(path.name for path in project.joinpath("golden").iterdir()) == [
        "test_golden_a_.txt",
        "test_golden_b_c_.txt",
    ]
    golden = project.joinpath("golden/test_golden_a_.txt").read_text(encoding="utf-8")
    assert '"cwd":"<tmp_path>"' in golden
    assert run_pytest(project, "-k", "golden")[0] == 0
    code, output = run_pytest(project, "-k", "golden", SAY="something else")
    assert code == 1
    assert "the transcript has changed" in output


def test_it_costs_a_project_no_import_that_it_does_not_use(project: Path) -> None:
    project.joinpath("test_agent.py").write_text(
        "import sys\ndef test_nothing():\n    assert not [m for m in sys.modules if m.startswith('acprt.acp')]\n"
    )
    code, output = run_pytest(project)
    assert code == 0, output
