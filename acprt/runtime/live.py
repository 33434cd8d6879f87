"""The connections of this process that are open, and a dump of them on a signal: what to ask of an agent that hangs.

It holds no connection alive and does nothing for one after its start, so it costs nothing while messages pass.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["dump_on_signal", "live_connections", "opened"]

_STACK_FRAMES = 8  # innermost, of where the signal found the main thread
_ATTEMPTS = 5  # at a snapshot of a connection that another thread is at work on

_opened: weakref.WeakSet[Connection] = weakref.WeakSet()


def opened(cx: Connection) -> None:
    """Remember a connection for as long as it lives."""
    _opened.add(cx)


def live_connections() -> list[Connection]:
    """Those that are open, of every loop and thread, by name. `status()` of each tells what it waits for."""
    found: list[Connection] = []
    for _ in range(_ATTEMPTS):
        try:
            found = list(_opened)
            break
        except RuntimeError:  # another thread opened one meanwhile
            continue
    return sorted((cx for cx in found if cx.ends.state.name != "ENDED"), key=lambda cx: cx.name)


def dump_on_signal(number: int | None = None, *, write: Callable[[str], object] | None = None) -> Callable[[], None]:
    """Write the status of all live connections whenever signal `number` (default SIGUSR1) comes; returns how to stop.

    `write` gets the whole text and runs in the signal handler: it must be quick and take no lock. Without it the text
    goes to file descriptor 2 at once, past any buffer; where nobody reads that, a full pipe makes the process wait. It
    also works while a handler blocks the event loop, and tells where that is. From the main thread only (ValueError),
    and where there are signals to users (elsewhere `number` must be given).
    """
    if number is None:
        number = getattr(signal, "SIGUSR1", None)
        if number is None:
            raise ValueError("this system has no SIGUSR1: name a signal")

    def dump(_number: int, frame: FrameType | None) -> None:
        (write or _to_stderr)(_text(frame))

    previous: Any = signal.signal(number, dump)
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(number, False)  # no call of this program is disturbed by being looked at

    def stop() -> None:
        if signal.getsignal(number) is dump:
            signal.signal(number, signal.SIG_DFL if previous is None else previous)

    return stop


def _text(frame: FrameType | None) -> str:
    connections = live_connections()
    count = f"{len(connections)} live connection{'' if len(connections) == 1 else 's'}"
    parts = [f"acprt: {count} in pid {os.getpid()} at {time.strftime('%H:%M:%S')}"]
    parts += [_status(cx) for cx in connections]
    if frame is not None:
        stack = traceback.extract_stack(frame)[-_STACK_FRAMES:]
        parts.append("the main thread is at:\n" + "".join(traceback.format_list(stack)).rstrip())
    return "\n".join(parts) + "\n"


def _status(cx: Connection) -> str:
    for _ in range(_ATTEMPTS):
        try:
            return str(cx.status())
        except RuntimeError:  # its thread changed a table meanwhile
            continue
    return f"{cx.name}: too busy in another thread for a snapshot"


def _to_stderr(text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        return  # nobody can be told
