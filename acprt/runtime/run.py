"""`acprt.run`: serve an endpoint on this process's stdio, from an empty process to its exit.

It owns the loop, the signals and the last second of the process. Whatever its handlers do, it ends.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from acprt.limits import Limits
from acprt.runtime.tasks import cancelled_and_gone
from acprt.transports.descriptors import open_closed_descriptors
from acprt.transports.stdio import stdio

if TYPE_CHECKING:
    from acprt.runtime.endpoint import Endpoint

__all__ = ["run"]

logger = logging.getLogger("acprt.dispatch")

_SIGNAL_DRAIN_SECONDS = 1.0  # an editor that signals wants the process gone; its next step is SIGKILL
_PARENT_POLL_SECONDS = 1.0  # only where the kernel cannot tell when the parent ends
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # nothing is wrong with the program: no traceback helps


def run(endpoint: Endpoint, *, limits: Limits | None = None, exit_with_parent: bool = False) -> None:
    """Serve `endpoint` on stdin and stdout until EOF, SIGTERM or SIGINT; then drain, bounded, and return.

    uvloop is used when it can be imported. `print` and the output of children go to stderr meanwhile. A reader that
    has gone ends it quietly (DEC-26); stdout on a disk that is full exits with one line on stderr and code 1.
    `exit_with_parent=True` also ends it when the process that started it dies.
    """
    _require_no_running_loop()
    open_closed_descriptors()
    loop = _new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        last_words = loop.run_until_complete(_serve(endpoint, limits or endpoint.limits, exit_with_parent))
    finally:
        try:
            loop.run_until_complete(_end_remaining_tasks())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
    if last_words is not None:
        sys.exit(last_words)


def _require_no_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("acprt.run() makes its own event loop: in a running one, await endpoint.serve(acprt.stdio())")


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(endpoint: Endpoint, limits: Limits, exit_with_parent: bool) -> str | None:
    """Serve to the end. Raises what the connection failed of; returns what the process has to say when it exits."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop.set)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            logger.debug("signal %s keeps its default: this is no place to handle it", number)
    forget_parent = _watch_parent(loop, stop) if exit_with_parent else None
    try:
        cx = endpoint.open_connection(stdio(), limits)
        finished = loop.create_task(cx.ends.finished(limits.drain_seconds))
        stopped = loop.create_task(stop.wait())
        try:
            await asyncio.wait([finished, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not finished.done():
                await cx.ends.last_call(_SIGNAL_DRAIN_SECONDS)
        finally:
            finished.cancel()
            stopped.cancel()
            await cx.aclose()
    finally:
        if forget_parent is not None:
            forget_parent()
    error = cx.ends.cause or cx.ends.last_error
    if isinstance(error, BrokenPipeError | ConnectionResetError):
        logger.info("%s: the reader of stdout has gone", endpoint.name)
    elif isinstance(error, OSError) and error is cx.ends.last_error and error.errno in _NO_ROOM:
        return f"acprt: the output cannot be written: {error.strerror}"
    elif error is not None:
        raise error
    return None


async def _end_remaining_tasks() -> None:
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    for task in await cancelled_and_gone(tasks):
        logger.error("task %s did not end although it was cancelled twice; it is left behind", task.get_name())


def _watch_parent(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> Callable[[], None]:
    """Set `stop` when the parent process ends; returns how to stop watching."""
    parent = os.getppid()
    if sys.platform == "linux":
        try:
            descriptor = os.pidfd_open(parent)
        except OSError:
            logger.debug("cannot watch parent %d by descriptor", parent)
        else:
            if os.getppid() != parent:
                stop.set()

            def ended() -> None:
                loop.remove_reader(descriptor)  # it stays readable: the loop would spin until the agent has closed
                stop.set()

            loop.add_reader(descriptor, ended)

            def forget() -> None:
                loop.remove_reader(descriptor)
                os.close(descriptor)

            return forget
    done = threading.Event()

    def poll() -> None:
        while not done.wait(_PARENT_POLL_SECONDS):
            if os.getppid() != parent:
                loop.call_soon_threadsafe(stop.set)
                return

    threading.Thread(target=poll, name="acprt-parent-watch", daemon=True).start()
    return done.set
