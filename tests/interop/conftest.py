"""Where `make interop` puts the programs of other projects; a test that needs an absent one is skipped, by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(os.environ.get("ACPRT_PEERS") or ROOT / ".peers").absolute()


@pytest.fixture
def python_package() -> str:
    """A Python that has the PyPI package `agent-client-protocol`."""
    program = INSTALLED / "python" / "bin" / "python"
    if not program.exists():
        pytest.skip("the PyPI package agent-client-protocol is not installed: make interop")
    return str(program)


@pytest.fixture
def python_examples() -> Path:
    """The examples that the source package of `agent-client-protocol` ships."""
    examples = INSTALLED / "agent-client-protocol" / "examples"
    if not examples.exists():
        pytest.skip("the source package of agent-client-protocol is not installed: make interop")
    return examples


@pytest.fixture
def node_package() -> Path:
    """The folder whose node_modules has the npm package `@agentclientprotocol/sdk`."""
    folder = INSTALLED / "node"
    if not (folder / "node_modules" / "@agentclientprotocol" / "sdk").exists():
        pytest.skip("the npm package @agentclientprotocol/sdk is not installed: make interop")
    if shutil.which("node") is None:
        pytest.skip("there is no node on PATH")
    return folder
