"""The testing kit: peers that do what they are told, and a look at what a test leaves behind.

Nothing of acprt needs this room. The scripted programs are rooms of their own: import the one you want, such as
`acprt.testing.testy`. With pytest, `acprt.testing.plugin` has the kit as fixtures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acprt.testing.clock import FakeClockLoop, run_on_fake_clock
    from acprt.testing.leaks import assert_no_leaks
    from acprt.testing.pairs import AcpPair, EndpointPair, acp_pair, endpoint_pair
    from acprt.testing.processes import SpawnedAgent, spawned_agent
    from acprt.testing.scripted import ScriptedPeer
    from acprt.testing.transcripts import Transcript

_ROOMS = {
    "AcpPair": "pairs",
    "EndpointPair": "pairs",
    "FakeClockLoop": "clock",
    "ScriptedPeer": "scripted",
    "SpawnedAgent": "processes",
    "Transcript": "transcripts",
    "acp_pair": "pairs",
    "assert_no_leaks": "leaks",
    "endpoint_pair": "pairs",
    "run_on_fake_clock": "clock",
    "spawned_agent": "processes",
}

__all__ = [
    "AcpPair",
    "EndpointPair",
    "FakeClockLoop",
    "ScriptedPeer",
    "SpawnedAgent",
    "Transcript",
    "acp_pair",
    "assert_no_leaks",
    "endpoint_pair",
    "run_on_fake_clock",
    "spawned_agent",
]


def __getattr__(name: str) -> Any:
    """A name of the kit, its room imported now: a scripted program has no need for any of them."""
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
