"""The pytest plugin: `pytest_plugins = ["acprt.testing.plugin"]` in a `conftest.py`, and the kit comes as fixtures.

They need no plugin for asyncio and work with any: each gives something to use in a coroutine, however that is run. What
is not used is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acprt.testing.pairs import AcpPair
    from acprt.testing.processes import SpawnedAgent
    from acprt.testing.scripted import ScriptedPeer
    from acprt.testing.transcripts import Transcript

__all__ = ["acp_pair", "assert_no_leaks", "golden_transcript", "scripted_peer", "spawned_agent"]


@pytest.fixture
def acp_pair() -> Callable[..., AbstractAsyncContextManager[AcpPair]]:
    """`async with acp_pair(agent, client) as pair:` joins them in memory; see `acprt.testing.acp_pair`."""
    from acprt.testing.pairs import acp_pair

    return acp_pair


@pytest.fixture
def spawned_agent() -> Callable[..., AbstractAsyncContextManager[SpawnedAgent]]:
    """`async with spawned_agent(*argv) as agent:` starts a child; see `acprt.testing.spawned_agent`."""
    from acprt.testing.processes import spawned_agent

    return spawned_agent


@pytest.fixture
def scripted_peer() -> type[ScriptedPeer]:
    """`async with scripted_peer.as_client_of(agent) as peer:`, or `as_agent_of`; see `acprt.testing.ScriptedPeer`."""
    from acprt.testing.scripted import ScriptedPeer

    return ScriptedPeer


@pytest.fixture
def assert_no_leaks() -> Iterator[None]:
    """The test that asks for it must leave nothing behind; see `acprt.testing.assert_no_leaks`."""
    from acprt.testing.leaks import assert_no_leaks

    with assert_no_leaks():
        yield


@pytest.fixture
def golden_transcript(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transcript]:
    """A `Transcript` to trace an endpoint with. After the test it is compared with `golden/NAME-OF-THE-TEST.txt` beside
    the test's file, its temporary folder named `<tmp_path>`; a test that failed is not compared.
    """
    from acprt.testing.transcripts import Transcript

    transcript = Transcript()
    failed = request.session.testsfailed
    yield transcript
    if request.session.testsfailed == failed:
        folders = {str(tmp_path): "<tmp_path>"}
        name = "".join(each if each.isalnum() or each in "._-" else "_" for each in request.node.name)
        transcript.assert_golden(Path(request.path).parent / "golden" / f"{name}.txt", folders)
