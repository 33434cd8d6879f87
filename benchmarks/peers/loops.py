"""Which loop a program runs on, by name. Imports asyncio alone: cold starts of agents are measured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["loop_factory"]


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the loop of that name; None is stock asyncio."""
    if name != "uvloop":
        return None
    import uvloop  # not needed, so not paid for, by a stock run

    return uvloop.new_event_loop
