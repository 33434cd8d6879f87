"""The tap: what passed, in which direction, when. Sinks decide what to do with it.

`ACPRT_TRACE=FILE` appends every message of every connection of a process to FILE as JSON lines. Without a sink nothing
here runs.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from acprt.trace.tap import Tap, TraceEvent, TraceSink

if TYPE_CHECKING:
    from acprt.trace.file_sink import FileSink

__all__ = ["Tap", "TraceEvent", "TraceSink", "sink_from_environment", "wants_process_events"]

logger = logging.getLogger("acprt.trace")


def sink_from_environment() -> FileSink | None:
    """The file sink that `ACPRT_TRACE` asks for, one per path and process; none when that file cannot be opened."""
    path = os.environ.get("ACPRT_TRACE")
    if not path:
        return None
    try:
        return _file_sink(path)
    except OSError as error:
        logger.warning("ACPRT_TRACE: nothing is traced: %s", error)
        return None


def wants_process_events() -> bool:
    """Whether `ACPRT_TRACE_PROCESS` asks that stderr, start and exit of children are traced as well."""
    return os.environ.get("ACPRT_TRACE_PROCESS", "") not in ("", "0")


@lru_cache(maxsize=8)
def _file_sink(path: str) -> FileSink:
    from acprt.trace.file_sink import FileSink  # a start without a trace does not pay for it (bench-core w5)

    return FileSink(path)
