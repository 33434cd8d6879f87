"""The tap: what passed, in which direction, when. Sinks decide what to do with it.

`ACPRT_TRACE=FILE` appends every message of every connection of a process to FILE as JSON lines. Without a sink nothing
here runs.
"""

from acprt.trace.file_sink import FileSink, sink_from_environment, wants_process_events
from acprt.trace.tap import Tap, TraceEvent, TraceSink

__all__ = ["FileSink", "Tap", "TraceEvent", "TraceSink", "sink_from_environment", "wants_process_events"]
